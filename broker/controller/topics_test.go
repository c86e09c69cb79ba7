package controller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/meta"
)

func TestCreatedTopicsAreKafkasNodesAndComeBack(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	res, err := c.CreateTopics(t.Context(), []NewTopic{
		{Name: "b", Partitions: 2, Replication: 1, Config: given(map[string]string{"cleanup.policy": "compact"})},
		{Name: "bad name", Partitions: 1, Replication: 1},
		{Name: "a", Partitions: -1, Replication: -1},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, res[1].Err, kerr.InvalidTopicException, "Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
	id := FormatID(res[0].Topic.ID)
	want := map[string]string{
		"/brokers/topics/b":                    `{"partitions":{"0":[1],"1":[1]},"topic_id":"` + id + `","adding_replicas":{},"removing_replicas":{},"version":3}`,
		"/brokers/topics/b/partitions/1/state": `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`,
		"/config/topics/b":                     `{"version":1,"config":{"cleanup.policy":"compact"}}`,
		"/config/topics/a":                     `{"version":1,"config":{}}`,
	}
	for path, data := range want {
		if got := get(t, tree, path); got != data {
			t.Errorf("%s is\n%s, want\n%s", path, got, data)
		}
	}
	c, _ = reload(t, tree, path)
	got := c.mustLoad(t)
	if want := []Topic{res[2].Topic, res[0].Topic}; !reflect.DeepEqual(got, want) {
		t.Errorf("loaded\n%+v, want\n%+v", got, want)
	}
	if len(got[0].Partitions) != 3 {
		t.Errorf("default number of partitions gave %d", len(got[0].Partitions))
	}
}

func TestValidateOnlyWritesNothing(t *testing.T) {
	c := start(t)
	res, err := c.CreateTopics(t.Context(), []NewTopic{auto("a", 2, 1), auto("b", 0, 1)}, true)
	if err != nil || res[0].Err != nil || len(res[0].Topic.Partitions) != 2 || res[1].Err == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	c.mustCreate(t, "c", 1)
	if _, err := c.CreatePartitions(t.Context(), "c", 5, nil, true); err != nil {
		t.Error(err)
	}
	topics := c.mustLoad(t)
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		t.Errorf("topics are %+v", topics)
	}
}

func TestDeletionSurvivesACrashAtEachStep(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	c.mustCreate(t, "keep", 2)
	old := c.mustCreate(t, "gone", 3)
	if err := c.DeleteTopics(t.Context(), []string{"gone", "never was", "gone"}[:2]); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteTopics(t.Context(), []string{"gone"}); err != nil {
		t.Errorf("marking again: %v", err)
	}
	c, tree = reload(t, tree, path)
	topics := c.mustLoad(t)
	if len(topics) != 2 || !topics[0].Deleting || topics[0].Name != "gone" || len(topics[0].Partitions) != 3 || topics[1].Deleting {
		t.Fatalf("after the mark: %+v", topics)
	}
	_, err := c.CreateTopic(t.Context(), "gone", 1, 1, nil)
	wantRefusal(t, err, kerr.TopicAlreadyExists, "Topic 'gone' already exists.")
	if err := c.CompleteDelete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := c.CompleteDelete(t.Context(), "gone"); err != nil {
		t.Errorf("completing again: %v", err)
	}
	for _, path := range []string{meta.TopicPath("gone"), meta.TopicConfigPath("gone"), meta.DeleteTopicPath("gone"), meta.PartitionsPath("gone")} {
		if exists(t, tree, path) {
			t.Errorf("%s is left", path)
		}
	}
	c, _ = reload(t, tree, path)
	if again := c.mustCreate(t, "gone", 1); again.ID == old.ID {
		t.Error("a new topic has the id of a deleted one")
	}
	if topics := c.mustLoad(t); len(topics) != 2 || topics[0].Deleting || len(topics[0].Partitions) != 1 {
		t.Errorf("after all: %+v", topics)
	}
}

func TestCreatePartitions(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	created := c.mustCreate(t, "a", 2)
	grown, err := c.CreatePartitions(t.Context(), "a", 4, nil, false)
	if err != nil || len(grown.Partitions) != 4 || grown.ID != created.ID || grown.Config["retention.ms"] != "5" {
		t.Fatalf("%+v, %v", grown, err)
	}
	grown, err = c.CreatePartitions(t.Context(), "a", 5, [][]int32{{1}}, false)
	if err != nil {
		t.Fatal(err)
	}
	refusals := []struct {
		topic      string
		count      int32
		assignment [][]int32
		code       *kerr.Error
		message    string
	}{
		{"a", 5, nil, kerr.InvalidPartitions, "Topic already has 5 partition(s)."},
		{"a", 2, nil, kerr.InvalidPartitions, "The topic a currently has 5 partition(s); 2 would not be an increase."},
		{"a", -1, nil, kerr.InvalidPartitions, "The topic a currently has 5 partition(s); -1 would not be an increase."},
		{"a", 1<<31 - 1, nil, kerr.PolicyViolation, "Excessively large number of additional partitions per request."},
		{"b", 5, nil, kerr.UnknownTopicOrPartition, "This server does not host this topic-partition."},
		{"a", 7, [][]int32{{1}}, kerr.InvalidReplicaAssignment, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."},
		{"a", 6, [][]int32{{2}}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker 2, but no such broker is registered."},
		{"a", 6, [][]int32{{}}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list."},
		{"a", 6, [][]int32{{1, 1}}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker 1 more than once."},
	}
	for _, tt := range refusals {
		_, err := c.CreatePartitions(t.Context(), tt.topic, tt.count, tt.assignment, false)
		wantRefusal(t, err, tt.code, tt.message)
	}
	c, _ = reload(t, tree, path)
	if got := c.mustLoad(t); !reflect.DeepEqual(got, []Topic{grown}) {
		t.Errorf("loaded\n%+v, want\n%+v", got, grown)
	}
}

func TestTopicsMadeByOldToolsAreCompleted(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	// What kafka-topics --zookeeper of Kafka 2.3 writes: assignment and configuration only.
	err := tree.Multi(t.Context(), meta.CreateOp("/brokers/topics/old", []byte(`{"version":1,"partitions":{"1":[1],"0":[2,1]}}`), meta.Persistent))
	if err != nil {
		t.Fatal(err)
	}
	first := c.mustLoad(t)
	if len(first) != 1 || first[0].ID == [16]byte{} || first[0].Partitions[0].Leader != 1 || !slices.Equal(first[0].Partitions[0].ISR, []int32{1}) {
		t.Fatalf("%+v", first)
	}
	c, _ = reload(t, tree, path)
	if again := c.mustLoad(t); !reflect.DeepEqual(again, first) {
		t.Errorf("loaded\n%+v, want\n%+v", again, first)
	}
}

func TestBumpLeaderEpochs(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	c.mustCreate(t, "a", 2)
	c.mustCreate(t, "b", 1)
	topics := c.mustLoad(t)
	for want := int32(1); want <= 2; want++ { // twice: the versions are kept right
		if err := c.BumpLeaderEpochs(t.Context(), topics); err != nil {
			t.Fatal(err)
		}
		if got := topics[0].Partitions[1].LeaderEpoch; got != want {
			t.Errorf("epoch %d, want %d", got, want)
		}
	}
	stale := c.mustLoad(t)
	if err := c.BumpLeaderEpochs(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	if err := c.BumpLeaderEpochs(t.Context(), stale); err == nil {
		t.Error("an epoch that someone else raised is raised from an old state")
	}
	c, _ = reload(t, tree, path)
	if got := c.mustLoad(t); !reflect.DeepEqual(got, topics) || got[1].Partitions[0].LeaderEpoch != 3 {
		t.Errorf("loaded\n%+v, want\n%+v", got, topics)
	}
	if err := c.BumpLeaderEpochs(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestConfigs(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	c.mustCreate(t, "a", 1)
	own := map[string]string{"flush.ms": "7"}
	if err := c.AlterTopicConfig(t.Context(), "a", own); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, c.AlterTopicConfig(t.Context(), "b", own), kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	for name, value := range map[string]string{ClusterDefault: "1", BrokerName(1): "2"} {
		for _, v := range []string{"0", value} {
			if err := c.AlterBrokerConfig(t.Context(), name, map[string]string{"log.flush.interval.ms": v}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, tree = reload(t, tree, path)
	if got := c.mustLoad(t)[0].Config; !maps.Equal(got, own) {
		t.Errorf("topic has %v, want %v", got, own)
	}
	for name, want := range map[string]string{ClusterDefault: "1", BrokerName(1): "2", BrokerName(2): ""} {
		got, err := c.BrokerConfig(t.Context(), name)
		if err != nil || got["log.flush.interval.ms"] != want {
			t.Errorf("%s has %v, %v", name, got, err)
		}
	}
	if got, want := get(t, tree, "/config/brokers/<default>"), `{"version":1,"config":{"log.flush.interval.ms":"1"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := c.AlterTopicConfig(t.Context(), "a", nil); err != nil || len(c.mustLoad(t)[0].Config) != 0 {
		t.Errorf("clearing: %v", err)
	}
}

func TestProducerIDsNeverRepeat(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	want := int64(0)
	for range 3 {
		for range 2 {
			first, count, err := c.AllocateProducerIDs(t.Context())
			if err != nil || first != want || count != 1000 {
				t.Fatalf("block %d of %d, %v; want %d", first, count, err, want)
			}
			want += count
		}
		c, tree = reload(t, tree, path)
	}
	if got, want := get(t, tree, "/latest_producer_id_block"), `{"version":1,"broker":1,"block_start":"5000","block_end":"5999"}`; got != want {
		t.Errorf("node is %s, want %s", got, want)
	}
	for _, end := range []string{"x", "9223372036854775807", "-2"} {
		node := fmt.Sprintf(`{"version":1,"broker":1,"block_start":"0","block_end":%q}`, end)
		if err := tree.Multi(t.Context(), meta.SetOp("/latest_producer_id_block", []byte(node), meta.AnyVersion)); err != nil {
			t.Fatal(err)
		}
		if first, _, err := c.AllocateProducerIDs(t.Context()); err == nil {
			t.Errorf("after block_end %q: block from %d", end, first)
		}
	}
}

func TestConcurrentChanges(t *testing.T) {
	c := start(t)
	var wg sync.WaitGroup
	ids := make(chan int64, 100)
	for i := range 8 {
		wg.Go(func() {
			name := "t" + strconv.Itoa(i)
			if _, err := c.CreateTopic(t.Context(), name, 2, 1, nil); err != nil {
				t.Error(err)
			}
			first, _, err := c.AllocateProducerIDs(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids <- first
			if i%2 == 0 {
				if err := c.DeleteTopics(t.Context(), []string{name}); err != nil {
					t.Error(err)
				}
				if err := c.CompleteDelete(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(ids)
	seen := map[int64]bool{}
	for id := range ids {
		if seen[id] {
			t.Errorf("producer id block %d given twice", id)
		}
		seen[id] = true
	}
	if got := len(c.mustLoad(t)); got != 4 {
		t.Errorf("%d topics, want 4", got)
	}
}

// thousand makes topics with partitions in a tree and reports how long its steps took.
func thousand(t testing.TB, topics, partitions int) *Controller {
	c := start(t)
	var batch []NewTopic
	for i := range topics {
		batch = append(batch, NewTopic{Name: fmt.Sprintf("topic-%04d", i), Partitions: int32(partitions), Replication: 1})
	}
	began := time.Now()
	if _, err := c.CreateTopics(t.Context(), batch, false); err != nil {
		t.Fatal(err)
	}
	t.Logf("creating %d × %d: %v", topics, partitions, time.Since(began))
	return c
}

func TestThousandPartitions(t *testing.T) {
	for _, shape := range [][2]int{{1000, 1}, {1, 1000}} {
		c := thousand(t, shape[0], shape[1])
		began := time.Now()
		topics := c.mustLoad(t)
		t.Logf("loading: %v", time.Since(began))
		began = time.Now()
		if err := c.BumpLeaderEpochs(t.Context(), topics); err != nil {
			t.Fatal(err)
		}
		t.Logf("raising epochs: %v", time.Since(began))
		if len(topics) != shape[0] || len(topics[0].Partitions) != shape[1] || topics[0].Partitions[shape[1]-1].LeaderEpoch != 1 {
			t.Errorf("%v: %d topics, first has %d partitions", shape, len(topics), len(topics[0].Partitions))
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, shape := range [][2]int{{1000, 1}, {1, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(b *testing.B) {
			c := thousand(b, shape[0], shape[1])
			for b.Loop() {
				c.mustLoad(b)
			}
		})
	}
}
