package meta

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ConfigChange is /config/changes/config_change_<n>: the configuration of one entity was changed.
type ConfigChange struct {
	// Entity is the path below /config: topics/<topic>, brokers/<id>, users/<user>, users/<user>/clients/<client>, clients/<client> or ips/<ip>, the
	// names sanitized as they are there. brokers/<default> stands for all brokers.
	Entity string
}

type configChangeJSON struct {
	Version int    `json:"version"`
	Path    string `json:"entity_path,omitempty"`
	Type    string `json:"entity_type,omitempty"` // version 1
	Name    string `json:"entity_name,omitempty"` // version 1
}

// Encode writes version 2, as Kafka from 0.10.1 on does.
func (n ConfigChange) Encode() []byte { return encode(configChangeJSON{Version: 2, Path: n.Entity}) }

// DecodeConfigChange reads a ConfigChange of version 1 or 2.
func DecodeConfigChange(b []byte) (ConfigChange, error) {
	var j configChangeJSON
	if err := decode("config change", b, &j); err != nil {
		return ConfigChange{}, err
	}
	switch j.Version {
	case 1:
		j.Path = j.Type + "/" + j.Name
	case 2:
	default:
		return ConfigChange{}, fmt.Errorf("%w: config change: version %d is not 1 or 2", ErrBadNode, j.Version)
	}
	kind, name, ok := strings.Cut(j.Path, "/")
	if !ok || kind == "" || name == "" || strings.HasSuffix(name, "/") || !ValidPath("/"+j.Path) {
		return ConfigChange{}, fmt.Errorf("%w: config change: %.100q is not kind/name", ErrBadNode, j.Path)
	}
	return ConfigChange{Entity: j.Path}, nil
}

// TopicPartition is one partition as several nodes name it.
type TopicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type partitionsJSON struct {
	Version    int              `json:"version"`
	Partitions []TopicPartition `json:"partitions"`
}

func decodePartitions(what string, b []byte) ([]TopicPartition, error) {
	var j partitionsJSON
	if err := decode(what, b, &j); err != nil {
		return nil, err
	}
	for _, p := range j.Partitions {
		if p.Topic == "" || p.Partition < 0 {
			return nil, fmt.Errorf("%w: %s: topic %.100q, partition %d", ErrBadNode, what, p.Topic, p.Partition)
		}
	}
	return j.Partitions, nil
}

func encodePartitions(partitions []TopicPartition) []byte {
	if partitions == nil {
		partitions = []TopicPartition{}
	}
	return encode(partitionsJSON{Version: 1, Partitions: partitions})
}

// EncodeISRChange writes /isr_change_notification/isr_change_<n>: a leader changed the in-sync replicas of these partitions.
func EncodeISRChange(partitions []TopicPartition) []byte { return encodePartitions(partitions) }

// DecodeISRChange reads /isr_change_notification/isr_change_<n>.
func DecodeISRChange(b []byte) ([]TopicPartition, error) { return decodePartitions("isr change", b) }

// EncodePreferredElection writes /admin/preferred_replica_election.
func EncodePreferredElection(partitions []TopicPartition) []byte { return encodePartitions(partitions) }

// DecodePreferredElection reads /admin/preferred_replica_election: partitions that are to be led by their preferred replicas.
func DecodePreferredElection(b []byte) ([]TopicPartition, error) {
	return decodePartitions("preferred replica election", b)
}

// Reassignment is what one partition of /admin/reassign_partitions is to be moved to.
type Reassignment struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas"`
}

type reassignmentJSON struct {
	Version    int            `json:"version"`
	Partitions []Reassignment `json:"partitions"`
}

// EncodeReassignment writes /admin/reassign_partitions.
func EncodeReassignment(partitions []Reassignment) []byte {
	if partitions == nil {
		partitions = []Reassignment{}
	}
	return encode(reassignmentJSON{Version: 1, Partitions: partitions})
}

// DecodeReassignment reads /admin/reassign_partitions. Whether the replicas make sense is not looked at: empty and doubled ones are there as they were
// written.
func DecodeReassignment(b []byte) ([]Reassignment, error) {
	var j reassignmentJSON
	if err := decode("reassignment", b, &j); err != nil {
		return nil, err
	}
	for i := range j.Partitions {
		p := &j.Partitions[i]
		if p.Topic == "" || p.Partition < 0 {
			return nil, fmt.Errorf("%w: reassignment: topic %.100q, partition %d", ErrBadNode, p.Topic, p.Partition)
		}
		if p.Replicas == nil {
			p.Replicas = []int32{}
		}
	}
	return j.Partitions, nil
}

// LogDirEvent is /log_dir_event_notification/log_dir_event_<n>: log directories of a broker cannot be used any more.
type LogDirEvent struct {
	Version int   `json:"version"`
	Broker  int32 `json:"broker"`
	Event   int   `json:"event"`
}

// LogDirFailure is the only event that there is.
const LogDirFailure = 1

// Encode writes the node as Kafka does; Version and Event are set.
func (n LogDirEvent) Encode() []byte {
	n.Version, n.Event = 1, LogDirFailure
	return encode(n)
}

// DecodeLogDirEvent reads a LogDirEvent.
func DecodeLogDirEvent(b []byte) (LogDirEvent, error) {
	var n LogDirEvent
	if err := decode("log directory event", b, &n); err != nil {
		return LogDirEvent{}, err
	}
	if n.Broker < 0 || n.Event != LogDirFailure {
		return LogDirEvent{}, fmt.Errorf("%w: log directory event: broker %d, event %d", ErrBadNode, n.Broker, n.Event)
	}
	return n, nil
}

// FeatureNode is /feature: the finalized features of the cluster (KIP-584).
type FeatureNode struct {
	Version int // 1: levels have a minimum; 2, from Kafka 3.3 on: they do not
	Enabled bool
	// Levels are the finalized levels by the features' names, never nil after decoding.
	Levels map[string]FeatureLevels
}

// FeatureLevels are the finalized levels of one feature. Min is 0 in version 2.
type FeatureLevels struct {
	Min int16 `json:"min_version_level"`
	Max int16 `json:"max_version_level"`
}

type featureJSON[L any] struct {
	Features map[string]L `json:"features"`
	Version  int          `json:"version"`
	Status   int          `json:"status"`
}

// Encode writes the node as Kafka does; anything but version 1 is version 2.
func (n FeatureNode) Encode() []byte {
	status := 0
	if n.Enabled {
		status = 1
	}
	if n.Version == 1 {
		j := featureJSON[FeatureLevels]{Features: n.Levels, Version: 1, Status: status}
		if j.Features == nil {
			j.Features = map[string]FeatureLevels{}
		}
		return encode(j)
	}
	j := featureJSON[int16]{Features: map[string]int16{}, Version: 2, Status: status}
	for name, l := range n.Levels {
		j.Features[name] = l.Max
	}
	return encode(j)
}

// DecodeFeature reads a FeatureNode of version 1 or 2.
func DecodeFeature(b []byte) (FeatureNode, error) {
	var j featureJSON[json.RawMessage]
	if err := decode("features", b, &j); err != nil {
		return FeatureNode{}, err
	}
	if j.Version != 1 && j.Version != 2 || j.Status != 0 && j.Status != 1 {
		return FeatureNode{}, fmt.Errorf("%w: features: version %d, status %d", ErrBadNode, j.Version, j.Status)
	}
	n := FeatureNode{Version: j.Version, Enabled: j.Status == 1, Levels: map[string]FeatureLevels{}}
	for name, raw := range j.Features {
		var l FeatureLevels
		var into any = &l.Max
		if n.Version == 1 {
			into = &l
		}
		if err := decode("feature "+name, raw, into); err != nil {
			return FeatureNode{}, err
		}
		n.Levels[name] = l
	}
	return n, nil
}
