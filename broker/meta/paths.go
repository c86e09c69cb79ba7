package meta

import (
	"context"
	"errors"
	"strconv"
)

// Fixed paths of Kafka's schema.
const (
	ControllerPath      = "/controller"
	ControllerEpochPath = "/controller_epoch"
	ClusterIDPath       = "/cluster/id"
	BrokersPath         = "/brokers/ids"
	TopicsPath          = "/brokers/topics"
	BrokerSequencePath  = "/brokers/seqid"
	TopicConfigsPath    = "/config/topics"
	DeleteTopicsPath    = "/admin/delete_topics"
	ProducerIDBlockPath = "/latest_producer_id_block"
	FeaturePath         = "/feature"

	// Parents of sequential notifications: each prefix is for a SequentialOp.
	ConfigChangesPath     = "/config/changes"
	ConfigChangePrefix    = ConfigChangesPath + "/config_change_"
	ISRChangesPath        = "/isr_change_notification"
	ISRChangePrefix       = ISRChangesPath + "/isr_change_"
	LogDirEventsPath      = "/log_dir_event_notification"
	LogDirEventPrefix     = LogDirEventsPath + "/log_dir_event_"
	ReassignmentPath      = "/admin/reassign_partitions"
	PreferredElectionPath = "/admin/preferred_replica_election"
)

// TopicPath is the node with a topic's assignment.
func TopicPath(topic string) string { return TopicsPath + "/" + topic }

// PartitionsPath is the parent of a topic's partitions.
func PartitionsPath(topic string) string { return TopicPath(topic) + "/partitions" }

// PartitionPath is the parent of a partition's state.
func PartitionPath(topic string, partition int32) string {
	return PartitionsPath(topic) + "/" + strconv.Itoa(int(partition))
}

// PartitionStatePath is the node with a partition's leader and in-sync replicas.
func PartitionStatePath(topic string, partition int32) string {
	return PartitionPath(topic, partition) + "/state"
}

// TopicConfigPath is the node with a topic's own keys.
func TopicConfigPath(topic string) string { return TopicConfigsPath + "/" + topic }

// BrokerPath is the ephemeral node of a running broker.
func BrokerPath(id int32) string { return BrokersPath + "/" + strconv.Itoa(int(id)) }

// BrokerConfigPath is the node with a broker's dynamic keys.
func BrokerConfigPath(id int32) string { return "/config/brokers/" + strconv.Itoa(int(id)) }

// DefaultBrokerConfigPath is the node with the dynamic keys of all brokers.
const DefaultBrokerConfigPath = "/config/brokers/<default>"

// DeleteTopicPath marks a topic that is to be deleted.
func DeleteTopicPath(topic string) string { return DeleteTopicsPath + "/" + topic }

// rootPaths are the persistent nodes that Kafka makes at its start, parents first.
func rootPaths() []string {
	return []string{
		"/consumers", "/brokers", BrokersPath, TopicsPath, BrokerSequencePath, "/config", ConfigChangesPath, TopicConfigsPath,
		"/config/clients", "/config/users", "/config/brokers", "/config/ips", "/admin", DeleteTopicsPath, ISRChangesPath,
		ProducerIDBlockPath, LogDirEventsPath, "/cluster",
	}
}

// EnsureRoot makes the persistent nodes that Kafka makes at its start, those that are missing and the given further ones, in one step.
func EnsureRoot(ctx context.Context, t Tree, more ...Op) error {
	var ops []Op
	for _, path := range rootPaths() {
		_, _, err := t.Get(ctx, path)
		switch {
		case errors.Is(err, ErrNoNode):
			ops = append(ops, CreateOp(path, nil, Persistent))
		case err != nil:
			return err
		}
	}
	if ops = append(ops, more...); len(ops) == 0 {
		return nil
	}
	return t.Multi(ctx, ops...)
}
