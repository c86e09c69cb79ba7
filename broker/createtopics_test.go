package broker

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func createRequest(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Topics = topics
	return r
}

// newTopic is a topic for CreateTopics with configuration keys and values in turn.
func newTopic(name string, partitions int32, replication int16, config ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replication
	for i := 0; i < len(config); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = config[i], &config[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

// create makes one topic.
func (c *client) create(name string, partitions int32, config ...string) kmsg.CreateTopicsResponseTopic {
	c.t.Helper()
	t := ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(newTopic(name, partitions, 1, config...))).Topics[0]
	if t.ErrorCode != 0 {
		c.t.Fatalf("creating %s: error %d, %s", name, t.ErrorCode, text(t.ErrorMessage))
	}
	return t
}

func text(s *string) string {
	if s == nil {
		return "<null>"
	}
	return *s
}

// described asks Metadata for a topic.
func (c *client) described(name string) kmsg.MetadataResponseTopic {
	c.t.Helper()
	r := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &name
	r.Topics = append(r.Topics, rt)
	return ask[*kmsg.MetadataResponse](c, 12, r).Topics[0]
}

func TestCreateTopicsAtEveryVersion(t *testing.T) {
	b := startBroker(t, t.TempDir(), "num.partitions", "3")
	c := b.dial()
	for v := int16(0); v <= 7; v++ {
		name := "v" + string('0'+rune(v))
		resp := ask[*kmsg.CreateTopicsResponse](c, v, createRequest(newTopic(name, 2, 1, "retention.ms", "77"), newTopic(name+"-default", -1, -1), newTopic("bad name", 1, 1)))
		good, byDefault, bad := &resp.Topics[0], &resp.Topics[1], &resp.Topics[2]
		if good.ErrorCode != 0 || byDefault.ErrorCode != 0 || bad.ErrorCode != kerr.InvalidTopicException.Code {
			t.Fatalf("v%d: errors %d, %d, %d", v, good.ErrorCode, byDefault.ErrorCode, bad.ErrorCode)
		}
		if got := bad.ErrorMessage != nil; got != (v >= 1) {
			t.Errorf("v%d: message %s", v, text(bad.ErrorMessage))
		}
		if v >= 5 {
			if good.NumPartitions != 2 || good.ReplicationFactor != 1 || byDefault.NumPartitions != 3 || bad.NumPartitions != -1 || bad.ReplicationFactor != -1 {
				t.Errorf("v%d: numbers %d, %d, %d", v, good.NumPartitions, byDefault.NumPartitions, bad.NumPartitions)
			}
			i := slices.IndexFunc(good.Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool { return c.Name == "retention.ms" })
			if i < 0 || text(good.Configs[i].Value) != "77" || good.Configs[i].Source != 1 || len(good.Configs) < 30 {
				t.Errorf("v%d: configuration %+v", v, good.Configs)
			}
		}
		m := c.described(name)
		if m.ErrorCode != 0 || len(m.Partitions) != 2 || m.TopicID == [16]byte{} {
			t.Errorf("v%d: metadata %+v", v, m)
		}
		if v >= 7 && good.TopicID != m.TopicID {
			t.Errorf("v%d: topic id %x, metadata has %x", v, good.TopicID, m.TopicID)
		}
		if got := c.produce(name, 1, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 {
			t.Errorf("v%d: produce right after the creation: error %d", v, got.ErrorCode)
		}
	}
}

func TestCreateTopicsRefusals(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.create("there", 1)
	assigned := newTopic("assigned", -1, -1)
	for p := range int32(2) {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = p, []int32{c.described("there").Partitions[0].Leader}
		assigned.ReplicaAssignment = append(assigned.ReplicaAssignment, a)
	}
	nothing := newTopic("null", 1, 1, "flush.ms", "")
	nothing.Configs[0].Value = nil
	resp := ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(
		newTopic("twice", 1, 1), newTopic("there", 1, 1), newTopic("twice", 1, 1), newTopic("unknown", 1, 1, "nope", "1"),
		newTopic("wrong", 1, 1, "segment.bytes", "abc"), nothing, newTopic("zero", 0, 1), newTopic("far", 1, 3), assigned))
	want := map[string]struct {
		code int16
		text string
	}{
		"twice":    {42, "Duplicate topic name."},
		"there":    {36, "Topic 'there' already exists."},
		"unknown":  {40, "Unknown topic config name: nope"},
		"wrong":    {40, "Invalid value abc for configuration segment.bytes: Not a number of type INT"},
		"null":     {40, "Null value not supported for topic configs: flush.ms"},
		"zero":     {37, "Number of partitions was set to an invalid non-positive value."},
		"far":      {38, "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) are registered."},
		"assigned": {0, "<null>"},
	}
	if len(resp.Topics) != len(want) {
		t.Errorf("%d answers, want %d", len(resp.Topics), len(want))
	}
	for _, got := range resp.Topics {
		if w := want[got.Topic]; got.ErrorCode != w.code || text(got.ErrorMessage) != w.text {
			t.Errorf("%s: error %d %q, want %d %q", got.Topic, got.ErrorCode, text(got.ErrorMessage), w.code, w.text)
		}
		if got.ErrorCode != 0 && (got.TopicID != [16]byte{} || len(got.Configs) != 0) {
			t.Errorf("%s: refused with %+v", got.Topic, got)
		}
	}
	if n := len(c.described("assigned").Partitions); n != 2 {
		t.Errorf("assigned topic has %d partitions", n)
	}
}

func TestCreateTopicsValidateOnly(t *testing.T) {
	c := startBroker(t, t.TempDir(), "auto.create.topics.enable", "false").dial()
	r := createRequest(newTopic("a", 2, 1), newTopic("b", 0, 1))
	r.ValidateOnly = true
	for v := int16(1); v <= 7; v++ {
		resp := ask[*kmsg.CreateTopicsResponse](c, v, r)
		if resp.Topics[0].ErrorCode != 0 || resp.Topics[1].ErrorCode != kerr.InvalidPartitions.Code {
			t.Errorf("v%d: errors %d, %d", v, resp.Topics[0].ErrorCode, resp.Topics[1].ErrorCode)
		}
	}
	if got := c.described("a").ErrorCode; got != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("validated topic: error %d", got)
	}
}
