package controller

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Paths of Kafka's ZooKeeper schema. Frozen: other tools read them.
const (
	pathCluster       = "/cluster/id"
	pathController    = "/controller"
	pathEpoch         = "/controller_epoch"
	pathBrokers       = "/brokers/ids"
	pathTopics        = "/brokers/topics"
	pathTopicConfigs  = "/config/topics"
	pathBrokerConfigs = "/config/brokers"
	pathDeletions     = "/admin/delete_topics"
	pathProducerIDs   = "/latest_producer_id_block"
)

// rootPaths are what Kafka makes at its first start, parents first.
func rootPaths() []string {
	return []string{
		"/consumers", "/brokers", pathBrokers, pathTopics, "/brokers/seqid",
		"/config", pathTopicConfigs, pathBrokerConfigs, "/config/clients", "/config/users", "/config/ips", "/config/changes",
		"/admin", pathDeletions, "/cluster",
		"/isr_change_notification", "/log_dir_event_notification", pathProducerIDs,
	}
}

func topicPath(topic string) string       { return pathTopics + "/" + topic }
func topicConfigPath(topic string) string { return pathTopicConfigs + "/" + topic }
func partitionsPath(topic string) string  { return topicPath(topic) + "/partitions" }
func deletionPath(topic string) string    { return pathDeletions + "/" + topic }
func brokerPath(id int32) string          { return pathBrokers + "/" + strconv.Itoa(int(id)) }

func partitionPath(topic string, p int) string { return partitionsPath(topic) + "/" + strconv.Itoa(p) }
func statePath(topic string, p int) string     { return partitionPath(topic, p) + "/state" }

// clusterNode is /cluster/id.
type clusterNode struct {
	Version string `json:"version"`
	ID      string `json:"id"`
}

// controllerNode is /controller, version 1.
type controllerNode struct {
	Version   int    `json:"version"`
	BrokerID  int32  `json:"brokerid"`
	Timestamp string `json:"timestamp"`
}

// brokerNode is /brokers/ids/<id>, version 5. Host and port are those of a PLAINTEXT listener and are for old clients.
type brokerNode struct {
	Protocols map[string]string `json:"listener_security_protocol_map"`
	Endpoints []string          `json:"endpoints"`
	Rack      string            `json:"rack,omitempty"`
	JMXPort   int               `json:"jmx_port"`
	Features  struct{}          `json:"features"`
	Host      *string           `json:"host"`
	Port      int32             `json:"port"`
	Version   int               `json:"version"`
	Timestamp string            `json:"timestamp"`
}

// topicNode is /brokers/topics/<topic>, version 3. Version 2 has no topic id, version 1 no reassignment either.
type topicNode struct {
	Removing   map[string][]int32 `json:"removing_replicas"`
	Partitions map[string][]int32 `json:"partitions"`
	TopicID    string             `json:"topic_id,omitempty"`
	Adding     map[string][]int32 `json:"adding_replicas"`
	Version    int                `json:"version"`
}

// stateNode is /brokers/topics/<topic>/partitions/<p>/state, version 1.
type stateNode struct {
	ControllerEpoch int32   `json:"controller_epoch"`
	Leader          int32   `json:"leader"`
	Version         int     `json:"version"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
}

// configNode is /config/topics/<topic> and /config/brokers/<id>, version 1.
type configNode struct {
	Version int               `json:"version"`
	Config  map[string]string `json:"config"`
}

// producerIDNode is /latest_producer_id_block, version 1. Both ends belong to the block.
type producerIDNode struct {
	Version int    `json:"version"`
	Broker  int32  `json:"broker"`
	Start   string `json:"block_start"`
	End     string `json:"block_end"`
}

// encode makes a node's data. The types above cannot fail.
func encode(node any) []byte {
	b, err := json.Marshal(node)
	if err != nil {
		panic(fmt.Sprintf("controller: encoding %T: %v", node, err))
	}
	return b
}

// decode reads a node's data.
func decode(path string, data []byte, node any) error {
	if err := json.Unmarshal(data, node); err != nil {
		return fmt.Errorf("metadata node %s does not parse: %w", path, err)
	}
	return nil
}

func timestamp(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// decodeTopic reads /brokers/topics/<name>. Partitions have no state yet.
func decodeTopic(name string, data []byte) (Topic, error) {
	var n topicNode
	if err := decode(topicPath(name), data, &n); err != nil {
		return Topic{}, err
	}
	t := Topic{Name: name, Partitions: make([]Partition, len(n.Partitions))}
	if n.TopicID != "" {
		id, err := ParseID(n.TopicID)
		if err != nil {
			return Topic{}, fmt.Errorf("metadata node %s: %w", topicPath(name), err)
		}
		t.ID = id
	}
	for i := range t.Partitions {
		replicas, ok := n.Partitions[strconv.Itoa(i)]
		if !ok || len(replicas) == 0 {
			return Topic{}, fmt.Errorf("metadata node %s: %d partitions, but none with number %d that has replicas", topicPath(name), len(t.Partitions), i)
		}
		t.Partitions[i] = Partition{Replicas: replicas, Leader: -1, LeaderEpoch: -1}
	}
	return t, nil
}

// encodeTopic is the reverse of decodeTopic.
func encodeTopic(t *Topic) []byte {
	n := topicNode{Version: 3, TopicID: FormatID(t.ID), Partitions: make(map[string][]int32, len(t.Partitions)),
		Adding: map[string][]int32{}, Removing: map[string][]int32{}}
	for i := range t.Partitions {
		n.Partitions[strconv.Itoa(i)] = t.Partitions[i].Replicas
	}
	return encode(&n)
}

func encodeConfig(config map[string]string) []byte {
	if config == nil {
		config = map[string]string{}
	}
	return encode(&configNode{Version: 1, Config: config})
}
