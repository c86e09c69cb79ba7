package meta

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ErrBadNode is the content of a node that does not follow Kafka's schema.
var ErrBadNode = errors.New("node content is not valid")

// Replicas are the brokers of each partition, the preferred leader first.
type Replicas map[int32][]int32

// MarshalJSON writes partitions in the order of their numbers.
func (r Replicas) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, p := range slices.Sorted(maps.Keys(r)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(p), 10)
		b = append(b, '"', ':')
		b = appendIDs(b, r[p])
	}
	return append(b, '}'), nil
}

func appendIDs(b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

// TopicNode is /brokers/topics/<topic>: the assignment, version 3 (KIP-516). Before version 3 there was no ID, before 2 no Adding and Removing.
type TopicNode struct {
	ID       [16]byte // all zero for none
	Replicas Replicas
	// Adding and Removing are the replicas that a reassignment adds and takes away.
	Adding   Replicas
	Removing Replicas
}

type topicJSON struct {
	Partitions Replicas `json:"partitions"`
	TopicID    string   `json:"topic_id,omitempty"`
	Adding     Replicas `json:"adding_replicas"`
	Removing   Replicas `json:"removing_replicas"`
	Version    int      `json:"version"`
}

// Encode writes the node as Kafka 3.9 does.
func (n TopicNode) Encode() []byte {
	j := topicJSON{Partitions: n.Replicas, Adding: n.Adding, Removing: n.Removing, Version: 2}
	if n.ID != [16]byte{} {
		j.TopicID, j.Version = base64.RawURLEncoding.EncodeToString(n.ID[:]), 3
	}
	return encode(j)
}

// DecodeTopic reads a TopicNode of version 1 to 3.
func DecodeTopic(b []byte) (TopicNode, error) {
	var j topicJSON
	if err := decode("topic", b, &j); err != nil {
		return TopicNode{}, err
	}
	n := TopicNode{Replicas: j.Partitions, Adding: j.Adding, Removing: j.Removing}
	for p, replicas := range j.Partitions {
		if p < 0 || len(replicas) == 0 {
			return TopicNode{}, fmt.Errorf("%w: topic: partition %d has replicas %v", ErrBadNode, p, replicas)
		}
	}
	if j.TopicID == "" {
		return n, nil
	}
	id, err := base64.RawURLEncoding.Strict().DecodeString(j.TopicID)
	if err != nil || len(id) != len(n.ID) {
		return TopicNode{}, fmt.Errorf("%w: topic: topic_id %.40q is not 22 characters of base64url", ErrBadNode, j.TopicID)
	}
	copy(n.ID[:], id)
	return n, nil
}

// PartitionState is /brokers/topics/<topic>/partitions/<partition>/state.
type PartitionState struct {
	ControllerEpoch int32   `json:"controller_epoch"`
	Leader          int32   `json:"leader"` // -1 for none
	Version         int     `json:"version"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
}

// Encode writes the node as Kafka does; Version is set.
func (n PartitionState) Encode() []byte {
	n.Version = 1
	if n.ISR == nil {
		n.ISR = []int32{}
	}
	return encode(n)
}

// DecodePartitionState reads a PartitionState.
func DecodePartitionState(b []byte) (PartitionState, error) {
	var n PartitionState
	if err := decode("partition state", b, &n); err != nil {
		return PartitionState{}, err
	}
	if n.LeaderEpoch < 0 || n.Leader < -1 {
		return PartitionState{}, fmt.Errorf("%w: partition state: leader %d, epoch %d", ErrBadNode, n.Leader, n.LeaderEpoch)
	}
	return n, nil
}

type configJSON struct {
	Version int               `json:"version"`
	Config  map[string]string `json:"config"`
}

// EncodeConfig writes the keys of a topic or broker, /config/<kind>/<name>.
func EncodeConfig(keys map[string]string) []byte {
	if keys == nil {
		keys = map[string]string{}
	}
	return encode(configJSON{Version: 1, Config: keys})
}

// DecodeConfig reads the keys of a topic or broker. The map is never nil.
func DecodeConfig(b []byte) (map[string]string, error) {
	var j configJSON
	if err := decode("config", b, &j); err != nil {
		return nil, err
	}
	if j.Config == nil {
		j.Config = map[string]string{}
	}
	return j.Config, nil
}

// ControllerNode is /controller.
type ControllerNode struct {
	Broker    int32
	Timestamp int64 // milliseconds since 1970
}

type controllerJSON struct {
	Version   int   `json:"version"`
	Broker    int32 `json:"brokerid"`
	Timestamp text  `json:"timestamp"`
	KRaft     int   `json:"kraftControllerEpoch"`
}

// Encode writes the node as Kafka 3.9 does.
func (n ControllerNode) Encode() []byte {
	return encode(controllerJSON{Version: 2, Broker: n.Broker, Timestamp: text(n.Timestamp), KRaft: -1})
}

// DecodeController reads a ControllerNode.
func DecodeController(b []byte) (ControllerNode, error) {
	var j controllerJSON
	err := decode("controller", b, &j)
	return ControllerNode{Broker: j.Broker, Timestamp: int64(j.Timestamp)}, err
}

// EncodeEpoch writes /controller_epoch.
func EncodeEpoch(epoch int32) []byte { return strconv.AppendInt(nil, int64(epoch), 10) }

// DecodeEpoch reads /controller_epoch.
func DecodeEpoch(b []byte) (int32, error) {
	n, err := strconv.ParseInt(string(b), 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: controller epoch %.40q", ErrBadNode, b)
	}
	return int32(n), nil
}

type clusterJSON struct {
	Version string `json:"version"`
	ID      string `json:"id"`
}

// EncodeClusterID writes /cluster/id.
func EncodeClusterID(id string) []byte { return encode(clusterJSON{Version: "1", ID: id}) }

// DecodeClusterID reads /cluster/id.
func DecodeClusterID(b []byte) (string, error) {
	var j clusterJSON
	if err := decode("cluster id", b, &j); err != nil {
		return "", err
	}
	if j.ID == "" {
		return "", fmt.Errorf("%w: cluster id is empty", ErrBadNode)
	}
	return j.ID, nil
}

// ProducerIDBlock is /latest_producer_id_block: the last block of producer ids that was handed out.
type ProducerIDBlock struct {
	Broker int32
	Start  int64
	End    int64 // the last of the block
}

type blockJSON struct {
	Version int   `json:"version"`
	Broker  int32 `json:"broker"`
	Start   text  `json:"block_start"`
	End     text  `json:"block_end"`
}

// Encode writes the node as Kafka does.
func (n ProducerIDBlock) Encode() []byte {
	return encode(blockJSON{Version: 1, Broker: n.Broker, Start: text(n.Start), End: text(n.End)})
}

// DecodeProducerIDBlock reads a ProducerIDBlock.
func DecodeProducerIDBlock(b []byte) (ProducerIDBlock, error) {
	var j blockJSON
	if err := decode("producer id block", b, &j); err != nil {
		return ProducerIDBlock{}, err
	}
	n := ProducerIDBlock{Broker: j.Broker, Start: int64(j.Start), End: int64(j.End)}
	if n.Start < 0 || n.End < n.Start {
		return ProducerIDBlock{}, fmt.Errorf("%w: producer id block %d to %d", ErrBadNode, n.Start, n.End)
	}
	return n, nil
}

// text is a number that Kafka writes as a string; older versions wrote some as numbers, which are read too.
type text int64

func (n text) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

func (n *text) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", b)
	}
	*n = text(v)
	return nil
}

// encode writes JSON as Kafka does: compact, without escapes of HTML. The types here cannot fail.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// decode reads JSON and leaves out fields that are not known.
func decode(what string, b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadNode, what, err)
	}
	return nil
}
