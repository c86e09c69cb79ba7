package zookeeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// onZooKeeper are the settings that a gregor on ZooKeeper has in all tests.
func onZooKeeper(connect string, id int, more ...string) []string {
	return append([]string{"zookeeper.connect=" + connect, fmt.Sprint("broker.id=", id), "zookeeper.session.timeout.ms=6000", "offsets.topic.num.partitions=4",
		"offsets.topic.replication.factor=1", "transaction.state.log.num.partitions=4", "transaction.state.log.replication.factor=1",
		"group.initial.rebalance.delay.ms=0"}, more...)
}

// TestTakeover: gregor serves the topics of an Apache Kafka with its broker id, its ZooKeeper and its log directory, and Kafka those of gregor.
func TestTakeover(t *testing.T) {
	zk, dir := peer.ZooKeeper(t)+"/over/there", t.TempDir()
	kafka := peer.StartOn(t, "3.9.1", zk, dir, "zookeeper.session.timeout.ms=6000", "offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0")
	o := &owned{t: t, records: map[string]int{}}
	var topics []string
	for n := range 20 {
		topics = append(topics, o.create(kafka.Addr(), fmt.Sprintf("of-kafka-%02d", n), n))
	}
	o.limits(kafka.Addr())
	for _, topic := range topics {
		o.produce(kafka.Addr(), topic, 30)
	}
	o.commit(kafka.Addr(), "readers", topics, 7)
	before := o.describe(kafka.Addr())
	kafka.Stop(t)

	gregor := harness.Start(t, harness.Config{Dir: dir, Set: onZooKeeper(zk, 1)})
	o.same("gregor after Kafka", before, o.describe(gregor.Addr()))
	for n, topic := range topics {
		o.read(gregor.Addr(), topic)
		if n%3 == 0 {
			o.produce(gregor.Addr(), topic, 12)
		}
	}
	o.remove(gregor.Addr(), topics[19])
	topics = topics[:19]
	o.alter(gregor.Addr(), topics[0], "retention.ms", "123456789")
	for n := range 3 {
		topics = append(topics, o.create(gregor.Addr(), fmt.Sprintf("of-gregor-%02d", n), n))
		o.produce(gregor.Addr(), topics[len(topics)-1], 25)
	}
	o.commit(gregor.Addr(), "readers", topics, 9)
	o.commit(gregor.Addr(), "later readers", topics[:5], 3)
	before = o.describe(gregor.Addr())
	gregor.Stop(t)

	kafka = peer.StartOn(t, "3.9.1", zk, dir, "zookeeper.session.timeout.ms=6000", "offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0")
	o.same("Kafka after gregor", before, o.describe(kafka.Addr()))
	for _, topic := range topics {
		o.read(kafka.Addr(), topic)
		o.produce(kafka.Addr(), topic, 5)
	}
	kafka.Stop(t)

	gregor.Up(t)
	for _, topic := range topics {
		o.read(gregor.Addr(), topic)
	}
}

// owned is what one broker has, and another is to have.
type owned struct {
	t       *testing.T
	records map[string]int // by topic
}

func (o *owned) client(addr string, opts ...kgo.Opt) *kgo.Client {
	o.t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))...)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(client.Close)
	return client
}

func (o *owned) create(addr, topic string, n int) string {
	o.t.Helper()
	configs := map[string]*string{}
	for key, value := range [...]map[string]string{
		{"retention.ms": "987654321", "max.message.bytes": "2000000"},
		{"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.9"},
		{"segment.bytes": "1048576", "compression.type": "lz4", "flush.messages": "10"},
		{"message.timestamp.type": "LogAppendTime", "unclean.leader.election.enable": "true"},
	}[n%4] {
		configs[key] = &value
	}
	admin := kadm.NewClient(o.client(addr))
	if _, err := admin.CreateTopic(o.t.Context(), int32(n%3+1), 1, configs, topic); err != nil {
		o.t.Fatalf("creating %s at %s: %v", topic, addr, err)
	}
	return topic
}

// limits sets a quota and a dynamic configuration of all brokers.
func (o *owned) limits(addr string) {
	o.t.Helper()
	admin := kadm.NewClient(o.client(addr))
	user, clientID, size := "ann", "batch", "524288"
	if _, err := admin.AlterClientQuotas(o.t.Context(), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &user}, {Type: "client-id", Name: &clientID}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1 << 20}},
	}}); err != nil {
		o.t.Fatal(err)
	}
	if _, err := admin.AlterBrokerConfigs(o.t.Context(), []kadm.AlterConfig{{Name: "message.max.bytes", Value: &size}}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *owned) produce(addr, topic string, count int) {
	o.t.Helper()
	client := o.client(addr)
	defer client.Close()
	var records []*kgo.Record
	for range count {
		n := o.records[topic]
		o.records[topic]++
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, n), Value: fmt.Appendf(nil, "%s %d", topic, n)})
	}
	if err := client.ProduceSync(o.t.Context(), records...).FirstErr(); err != nil {
		o.t.Fatalf("producing to %s at %s: %v", topic, addr, err)
	}
}

// read checks that a topic has each record once.
func (o *owned) read(addr, topic string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	client := o.client(addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	seen := map[string]int{}
	for len(seen) < o.records[topic] {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			o.t.Fatalf("%s at %s: %d of %d records, then %v", topic, addr, len(seen), o.records[topic], errs)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
	}
	for n := range o.records[topic] {
		if value := fmt.Sprintf("%s %d", topic, n); seen[value] != 1 {
			o.t.Fatalf("%s at %s: record %q is there %d times", topic, addr, value, seen[value])
		}
	}
}

func (o *owned) commit(addr, group string, topics []string, at int64) {
	o.t.Helper()
	var offsets kadm.Offsets
	for _, topic := range topics {
		offsets.AddOffset(topic, 0, at, -1)
	}
	if err := kadm.NewClient(o.client(addr)).CommitAllOffsets(o.t.Context(), group, offsets); err != nil {
		o.t.Fatalf("committing at %s: %v", addr, err)
	}
}

func (o *owned) remove(addr, topic string) {
	o.t.Helper()
	if _, err := kadm.NewClient(o.client(addr)).DeleteTopic(o.t.Context(), topic); err != nil {
		o.t.Fatalf("deleting %s at %s: %v", topic, addr, err)
	}
	delete(o.records, topic)
}

func (o *owned) alter(addr, topic, key, value string) {
	o.t.Helper()
	responses, err := kadm.NewClient(o.client(addr)).AlterTopicConfigs(o.t.Context(), []kadm.AlterConfig{{Name: key, Value: &value}}, topic)
	if err != nil || responses[0].Err != nil {
		o.t.Fatalf("altering %s at %s: %v %v", topic, addr, err, responses)
	}
}

// ends waits until everything has a leader: Kafka listens before that.
func (o *owned) ends(ctx context.Context, admin *kadm.Client) kadm.ListedOffsets {
	o.t.Helper()
	for {
		ends, err := admin.ListEndOffsets(ctx, slices.Collect(maps.Keys(o.records))...)
		if err == nil {
			err = ends.Error()
		}
		if err == nil {
			return ends
		}
		select {
		case <-ctx.Done():
			o.t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// describe is all that is not records: topics with ids, configurations and ends, committed offsets, quotas, the cluster's id.
func (o *owned) describe(addr string) []string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	client := o.client(addr)
	admin := kadm.NewClient(client)
	ends := o.ends(ctx, admin)
	metadata, err := admin.Metadata(ctx, slices.Collect(maps.Keys(o.records))...)
	if err != nil {
		o.t.Fatal(err)
	}
	lines := []string{"cluster " + metadata.Cluster}
	ends.Each(func(e kadm.ListedOffset) {
		lines = append(lines, fmt.Sprintf("end of %s-%d is %d", e.Topic, e.Partition, e.Offset))
	})
	for _, topic := range metadata.Topics {
		lines = append(lines, fmt.Sprintf("topic %s id %s, %d partitions, replicas %v", topic.Topic, topic.ID, len(topic.Partitions), topic.Partitions[0].Replicas))
	}
	configs, err := admin.DescribeTopicConfigs(ctx, slices.Collect(maps.Keys(o.records))...)
	if err != nil {
		o.t.Fatal(err)
	}
	own := func(what string, all kadm.ResourceConfigs, source kmsg.ConfigSource) {
		for _, c := range all {
			for _, e := range c.Configs {
				if e.Source == source {
					lines = append(lines, fmt.Sprintf("%s %s has %s=%s", what, c.Name, e.Key, *e.Value))
				}
			}
		}
	}
	own("topic", configs, kmsg.ConfigSourceDynamicTopicConfig)
	if configs, err = admin.DescribeBrokerConfigs(ctx, 1); err != nil {
		o.t.Fatal(err)
	}
	own("broker", configs, kmsg.ConfigSourceDynamicDefaultBrokerConfig)
	for _, group := range []string{"readers", "later readers"} {
		committed, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			o.t.Fatal(err)
		}
		committed.Each(func(r kadm.OffsetResponse) {
			lines = append(lines, fmt.Sprintf("%s is at %d in %s-%d", group, r.At, r.Topic, r.Partition))
		})
	}
	quotas, err := admin.DescribeClientQuotas(ctx, false, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, q := range quotas {
		lines = append(lines, fmt.Sprintf("quota of %v: %v", q.Entity, q.Values))
	}
	slices.Sort(lines)
	return lines
}

func (o *owned) same(who string, want, got []string) {
	o.t.Helper()
	if len(want) < 60 || !slices.Equal(want, got) {
		o.t.Errorf("%s: metadata differs:\nbefore\n%s\nnow\n%s", who, strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}
