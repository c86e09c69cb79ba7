package zookeeper

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"gregor/compat/harness"
	"gregor/compat/jars"
	"gregor/compat/peer"
)

const ourID = 2 // gregor's; that of Apache Kafka is 1

// pair is a cluster of an Apache Kafka, which is its controller, and a gregor.
type pair struct {
	t       *testing.T
	zk      string
	version string
	kafka   *peer.Kafka
	gregor  *harness.Broker
	have    map[string]int // records in topics
}

// TestObeys: with Apache Kafka as the controller gregor leads what it is told to, clients of either broker are sent to it for that, and what is deleted goes.
func TestObeys(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) { obeys(t, version) })
	}
}

func obeys(t *testing.T, version string) {
	p := &pair{t: t, zk: peer.ZooKeeper(t), version: version, have: map[string]int{}}
	p.kafka = p.startKafka(t.TempDir())
	p.gregor = harness.Start(t, harness.Config{Set: []string{"zookeeper.connect=" + p.zk, "broker.id=2", "zookeeper.session.timeout.ms=6000",
		"offsets.topic.num.partitions=4", "offsets.topic.replication.factor=1"}})
	p.create("mixed", 2, 1, 2)
	p.create("ours", 2, 2)
	p.leaders("mixed", 2, 1, 2)
	p.leaders("ours", 2, 2)
	p.use("mixed")
	p.use("ours")
	p.java("mixed")
	group := p.groupHere()
	p.commit(group, "mixed", 5)

	t.Log("kill -9 and a restart of gregor")
	p.gregor.Kill(t)
	p.gregor.Up(t)
	p.leaders("mixed", 2, 1, 2)
	p.leaders("ours", 2, 2)
	if got := p.committed(group, "mixed"); got != 5 {
		t.Errorf("committed offset is %d after the restart, want 5", got)
	}
	p.commit(group, "mixed", 6)
	p.use("mixed")

	t.Log("partitions are added, topics deleted and made again")
	p.grow("mixed", 4)
	p.use("mixed")
	p.remove("ours")
	p.create("ours", 2)
	p.leaders("ours", 2)
	p.have["ours"] = 0
	p.use("ours")

	t.Log("a topic with replicas on both")
	p.createAs("both", []int32{1, 2}, []int32{2, 1})
	p.inSync("both", 1)
	p.use("both")

	t.Log("a restart of the controller")
	p.kafka.Stop(t)
	p.kafka = p.startKafka(p.kafka.Dir)
	p.leaders("mixed", p.mixed()...)
	p.use("mixed")
	p.use("ours")
	if got := p.committed(group, "mixed"); got != 6 {
		t.Errorf("committed offset is %d after the restart of Kafka, want 6", got)
	}
}

func (p *pair) startKafka(dir string) *peer.Kafka {
	p.t.Helper()
	k := peer.StartOn(p.t, p.version, p.zk, dir, "zookeeper.session.timeout.ms=6000", "offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0")
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("end of what Kafka printed:\n%s", k.Output())
		}
	})
	return k
}

// seeds are each broker by itself.
func (p *pair) seeds() []string { return []string{p.kafka.Addr(), p.gregor.Addr()} }

func (p *pair) client(seed string, opts ...kgo.Opt) *kgo.Client {
	p.t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(seed), kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		p.t.Fatal(err)
	}
	return client
}

// create makes a topic whose partitions have one replica, on the given brokers.
func (p *pair) create(topic string, on ...int32) {
	p.t.Helper()
	replicas := make([][]int32, len(on))
	for i, id := range on {
		replicas[i] = []int32{id}
	}
	p.createAs(topic, replicas...)
}

func (p *pair) createAs(topic string, replicas ...[]int32) {
	p.t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.TimeoutMillis = 20000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	for n, on := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(n), on
		rt.ReplicaAssignment = append(rt.ReplicaAssignment, a)
	}
	r.Topics = append(r.Topics, rt)
	client := p.client(p.kafka.Addr())
	defer client.Close()
	p.wait("creating "+topic, func(ctx context.Context) error {
		resp, err := r.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	})
}

// wait tries until it works.
func (p *pair) wait(what string, try func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// topic is what a broker tells of one.
func (p *pair) topic(ctx context.Context, seed, topic string) (kadm.TopicDetail, error) {
	client := p.client(seed)
	defer client.Close()
	all, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	return all[topic], all[topic].Err
}

// leaders waits until both brokers tell of the same leaders.
func (p *pair) leaders(topic string, want ...int32) {
	p.t.Helper()
	for _, seed := range p.seeds() {
		p.wait(fmt.Sprintf("leaders of %s at %s", topic, seed), func(ctx context.Context) error {
			detail, err := p.topic(ctx, seed, topic)
			if err != nil {
				return err
			}
			var got []int32
			for _, part := range detail.Partitions.Sorted() {
				got = append(got, part.Leader)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("leaders are %v, want %v", got, want)
			}
			return nil
		})
	}
}

// inSync waits until one replica alone is in sync, at both brokers.
func (p *pair) inSync(topic string, want int32) {
	p.t.Helper()
	for _, seed := range p.seeds() {
		p.wait(fmt.Sprintf("in-sync replicas of %s at %s", topic, seed), func(ctx context.Context) error {
			detail, err := p.topic(ctx, seed, topic)
			for n, part := range detail.Partitions {
				if part.Leader != want || !slices.Equal(part.ISR, []int32{want}) || !slices.Equal(part.OfflineReplicas, []int32{ourID}) {
					err = fmt.Errorf("partition %d: leader %d, in sync %v, offline %v", n, part.Leader, part.ISR, part.OfflineReplicas)
				}
			}
			return err
		})
	}
}

// mixed are the leaders of that topic now.
func (p *pair) mixed() (leaders []int32) {
	detail, err := p.topic(p.t.Context(), p.gregor.Addr(), "mixed")
	if err != nil {
		p.t.Fatal(err)
	}
	for n := range detail.Partitions.Sorted() {
		leaders = append(leaders, detail.Partitions[int32(n)].Replicas[0])
	}
	return leaders
}

// use produces to all partitions of a topic through each broker, and reads all that there should be through each.
func (p *pair) use(topic string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	detail, err := p.topic(ctx, p.gregor.Addr(), topic)
	if err != nil {
		p.t.Fatalf("%s: %v", topic, err)
	}
	for _, seed := range p.seeds() {
		client := p.client(seed)
		var records []*kgo.Record
		for n := range 20 {
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(n % len(detail.Partitions)), Value: fmt.Appendf(nil, "%d", n)})
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			p.t.Fatalf("producing to %s through %s: %v", topic, seed, err)
		}
		client.Close()
		p.have[topic] += len(records)
	}
	for _, seed := range p.seeds() {
		client := p.client(seed, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		read := 0
		for read < p.have[topic] {
			fetches := client.PollFetches(ctx)
			if errs := fetches.Errors(); len(errs) > 0 {
				p.t.Fatalf("%s through %s: read %d of %d: %v", topic, seed, read, p.have[topic], errs)
			}
			read += fetches.NumRecords()
		}
		client.Close()
		if read != p.have[topic] {
			p.t.Errorf("%s through %s: read %d records, want %d", topic, seed, read, p.have[topic])
		}
	}
}

// java has Kafka's console producer write through Kafka, and its console consumer read everything through gregor.
func (p *pair) java(topic string) {
	p.t.Helper()
	lib, err := jars.Tools("3.9.1").Ensure(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	write := jars.Java(p.t.Context(), lib+"/*", "kafka.tools.ConsoleProducer", "--bootstrap-server", p.kafka.Addr(), "--topic", topic, "--request-required-acks", "all",
		"--property", "parse.key=true", "--property", "key.separator=:")
	var in strings.Builder
	for n := range 100 {
		fmt.Fprintf(&in, "k%d:java %d\n", n, n)
	}
	write.Stdin = strings.NewReader(in.String())
	if out, err := write.CombinedOutput(); err != nil {
		p.t.Fatalf("console producer: %v\n%s", err, out)
	}
	p.have[topic] += 100
	read := jars.Java(p.t.Context(), lib+"/*", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", p.gregor.Addr(), "--topic", topic, "--from-beginning",
		"--max-messages", fmt.Sprint(p.have[topic]), "--timeout-ms", "30000")
	out, err := read.Output()
	if got := strings.Count(string(out), "java "); err != nil || got != 100 {
		p.t.Errorf("console consumer: %d lines of 100, %v\n%s", got, err, out)
	}
}

// groupHere finds a group that gregor coordinates, as both brokers say.
func (p *pair) groupHere() string {
	p.t.Helper()
	var group string
	for _, seed := range p.seeds() {
		client := p.client(seed)
		defer client.Close()
		p.wait("coordinators at "+seed, func(ctx context.Context) error {
			for n := range 20 {
				if group != "" {
					n = 0
				}
				name := group
				if name == "" {
					name = fmt.Sprint("group-", n)
				}
				r := kmsg.NewPtrFindCoordinatorRequest()
				r.CoordinatorKey, r.CoordinatorKeys = name, []string{name}
				resp, err := r.RequestWith(ctx, client)
				if err != nil {
					return err
				}
				node, code := resp.NodeID, resp.ErrorCode
				if len(resp.Coordinators) == 1 {
					node, code = resp.Coordinators[0].NodeID, resp.Coordinators[0].ErrorCode
				}
				if err := kerr.ErrorForCode(code); err != nil {
					return err
				}
				if node == ourID {
					group = name
					return nil
				}
			}
			return fmt.Errorf("gregor coordinates nothing of 20 groups")
		})
	}
	return group
}

// commit commits an offset of partition 0, through Kafka.
func (p *pair) commit(group, topic string, at int64) {
	p.t.Helper()
	client := p.client(p.kafka.Addr())
	defer client.Close()
	p.wait("commit", func(ctx context.Context) error {
		var offsets kadm.Offsets
		offsets.AddOffset(topic, 0, at, -1)
		resp, err := kadm.NewClient(client).CommitOffsets(ctx, group, offsets)
		if err != nil {
			return err
		}
		return resp.Error()
	})
}

// committed reads it, through Kafka.
func (p *pair) committed(group, topic string) (at int64) {
	p.t.Helper()
	// OffsetFetch 10 of gregor answers with ids, which kadm may ask a Kafka 2.8.2 about, and that cannot say.
	client := p.client(p.kafka.Addr(), kgo.MaxVersions(kversion.V3_9_0()))
	defer client.Close()
	p.wait("committed offsets", func(ctx context.Context) error {
		resp, err := kadm.NewClient(client).FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		o, _ := resp.Lookup(topic, 0)
		at = o.At
		return resp.Error()
	})
	return at
}

// grow adds partitions.
func (p *pair) grow(topic string, count int) {
	p.t.Helper()
	client := p.client(p.kafka.Addr())
	defer client.Close()
	p.wait("adding partitions", func(ctx context.Context) error {
		resp, err := kadm.NewClient(client).UpdatePartitions(ctx, count, topic)
		if err != nil {
			return err
		}
		return resp.Error()
	})
	p.wait("new partitions at gregor", func(ctx context.Context) error {
		detail, err := p.topic(ctx, p.gregor.Addr(), topic)
		if err == nil && len(detail.Partitions) != count {
			err = fmt.Errorf("%d partitions", len(detail.Partitions))
		}
		return err
	})
	p.leaders(topic, p.mixed()...)
}

// remove deletes a topic through Kafka and waits until it is nowhere.
func (p *pair) remove(topic string) {
	p.t.Helper()
	client := p.client(p.kafka.Addr())
	defer client.Close()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if resp, err := kadm.NewClient(client).DeleteTopics(ctx, topic); err != nil || resp.Error() != nil {
		p.t.Fatalf("deleting %s: %v %v", topic, err, resp.Error())
	}
	p.gone(topic)
}

// gone waits until a topic is nowhere: not at the brokers, not in their directories, not marked in ZooKeeper.
func (p *pair) gone(topic string) {
	p.t.Helper()
	for _, seed := range p.seeds() {
		p.wait("end of the topic at "+seed, func(ctx context.Context) error {
			if _, err := p.topic(ctx, seed, topic); err != kerr.UnknownTopicOrPartition {
				return fmt.Errorf("topic is there: %w", err)
			}
			return nil
		})
	}
	p.wait("end of the directories", func(context.Context) error {
		left, err := filepath.Glob(filepath.Join(p.gregor.Dir(), topic+"-[0-9]"))
		of, _ := filepath.Glob(filepath.Join(p.kafka.Dir, topic+"-[0-9]"))
		left = append(left, of...)
		if len(left) > 0 {
			err = fmt.Errorf("%v", left)
		}
		return err
	})
	p.wait("end of the topic in ZooKeeper", func(context.Context) error {
		if out := peer.ZooKeeperShell(p.t, p.zk, "ls /admin/delete_topics\n"); !strings.Contains(out, "[]") {
			return fmt.Errorf("still marked: %s", out)
		}
		return nil
	})
}
