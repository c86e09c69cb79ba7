package controller

import (
	"strings"
	"testing"

	"gregor/broker/meta"
)

// TestKnownIDComesBack: Kafka 2.4's kafka-topics --alter writes a topic without its id.
func TestKnownIDComesBack(t *testing.T) {
	tree := openTree(t, treeFile(t))
	id := NewID()
	conf := testConfig()
	conf.KnownID = func(name string, partitions int) [16]byte {
		if name != "t" || partitions != 2 {
			t.Errorf("asked for %s with %d partitions", name, partitions)
		}
		return id
	}
	c, err := Start(t.Context(), tree, conf)
	must(t, err)
	must(t, tree.Multi(t.Context(), meta.CreateOp(meta.TopicPath("t"), []byte(`{"version":2,"partitions":{"0":[1],"1":[1]},"adding_replicas":{},"removing_replicas":{}}`), meta.Persistent)))
	topics, err := c.LoadTopics(t.Context(), "t")
	must(t, err)
	if topics[0].ID != id || !strings.Contains(get(t, tree, meta.TopicPath("t")), FormatID(id)) {
		t.Errorf("id %s, in the tree %s", FormatID(topics[0].ID), get(t, tree, meta.TopicPath("t")))
	}
	again, err := c.Load(t.Context())
	must(t, err)
	if leaders(&again[0]) != "1/0[1] 1/0[1]" {
		t.Error(leaders(&again[0]))
	}
}

// TestSharedConfigsAreNoticed: other brokers and tools are told of a changed configuration as Kafka tells them.
func TestSharedConfigsAreNoticed(t *testing.T) {
	tree := openTree(t, treeFile(t))
	conf := testConfig()
	conf.Shared = true
	c, err := Start(t.Context(), tree, conf)
	must(t, err)
	_, err = c.CreateTopic(t.Context(), "t", 1, 1, nil)
	must(t, err)
	must(t, c.AlterTopicConfig(t.Context(), "t", map[string]string{"retention.ms": "5"}))
	must(t, c.AlterBrokerConfig(t.Context(), ClusterDefault, map[string]string{"log.retention.ms": "5"}))
	value := "7"
	_, err = c.AlterEntity(t.Context(), "/config/users/u/clients/c", map[string]*string{"producer_byte_rate": &value})
	must(t, err)
	names, err := tree.Children(t.Context(), meta.ConfigChangesPath)
	must(t, err)
	var got []string
	for _, name := range names {
		n, err := meta.DecodeConfigChange([]byte(get(t, tree, meta.ConfigChangesPath+"/"+name)))
		must(t, err)
		got = append(got, n.Entity)
	}
	if want := "topics/t brokers/<default> users/u/clients/c"; strings.Join(got, " ") != want {
		t.Errorf("noticed %v, want %s", got, want)
	}
}

// TestBrokerIDs: each is given once, in a new cluster too.
func TestBrokerIDs(t *testing.T) {
	tree := openTree(t, treeFile(t))
	for want := int32(1001); want <= 1003; want++ {
		got, err := NextBrokerID(t.Context(), tree, 1000)
		must(t, err)
		if got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}
