package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"gregor/compat/harness"
	"gregor/compat/jars"
	"gregor/compat/peer"
)

// TestBeside: gregor is the controller of a cluster with an Apache Kafka, then Kafka is, then gregor again.
func TestBeside(t *testing.T) {
	p := &pair{t: t, zk: peer.ZooKeeper(t) + "/beside", version: "3.9.1", have: map[string]int{}}
	p.gregor = harness.Start(t, harness.Config{Set: onZooKeeper(p.zk, ourID)})
	p.kafka = p.startKafka(t.TempDir())
	p.controller(ourID)
	tools := jars.NewShell(t, "2.8.2")

	t.Log("topics made by kafka-topics through either, with a replica on either broker")
	for n, seed := range p.seeds() {
		topic := fmt.Sprint("made-", n)
		out := tools.Run("kafka.admin.TopicCommand", "--bootstrap-server", seed, "--create", "--topic", topic, "--replica-assignment", "1,2,1,2", "--config", "retention.ms=99999999")
		if !strings.Contains(strings.Join(out, " "), "Created topic "+topic) {
			t.Errorf("kafka-topics at %s: %q", seed, out)
		}
		p.leaders(topic, 1, 2, 1, 2)
		p.use(topic)
	}
	p.java("made-0")
	p.balanced(tools)

	t.Log("what is made with two replicas is refused; deletion with replicas on both")
	out := tools.Run("kafka.admin.TopicCommand", "--bootstrap-server", p.kafka.Addr(), "--create", "--topic", "both", "--partitions", "1", "--replication-factor", "2")
	if !strings.Contains(strings.Join(out, " "), "replication between brokers is not built") {
		t.Errorf("two replicas: %q", out)
	}
	for _, topic := range []string{"made-1", "anywhere"} {
		out := tools.Run("kafka.admin.TopicCommand", "--bootstrap-server", p.kafka.Addr(), "--delete", "--topic", topic)
		if len(out) > 0 && strings.Contains(strings.Join(out, " "), "Error") {
			t.Errorf("kafka-topics --delete: %q", out)
		}
		p.gone(topic)
	}

	t.Log("kill -9 of Kafka, and its restart")
	p.kafka.Kill(t)
	p.leadersAt(p.gregor.Addr(), "made-0", -1, 2, -1, 2)
	p.kafka = p.startKafka(p.kafka.Dir)
	p.leaders("made-0", 1, 2, 1, 2)
	p.use("made-0")

	t.Log("kill -9 of gregor: Kafka becomes the controller; gregor obeys when it is back")
	p.gregor.Kill(t)
	p.leadersAt(p.kafka.Addr(), "made-0", 1, -1, 1, -1)
	p.gregor.Up(t)
	p.controller(1)
	p.leaders("made-0", 1, 2, 1, 2)
	p.use("made-0")
	p.create("of-kafka", 2, 1)
	p.leaders("of-kafka", 2, 1)
	p.use("of-kafka")

	t.Log("kill -9 of Kafka: gregor becomes the controller; Kafka obeys when it is back")
	p.kafka.Kill(t)
	p.leadersAt(p.gregor.Addr(), "made-0", -1, 2, -1, 2)
	p.kafka = p.startKafka(p.kafka.Dir)
	p.controller(ourID)
	p.leaders("made-0", 1, 2, 1, 2)
	p.use("made-0")
	p.use("of-kafka")
	p.create("last", 1, 2)
	p.use("last")
}

// controller waits until both brokers say who it is, and know of each other.
func (p *pair) controller(want int32) {
	p.t.Helper()
	for _, seed := range p.seeds() {
		p.wait("brokers at "+seed, func(ctx context.Context) error {
			client := p.client(seed)
			defer client.Close()
			m, err := kadm.NewClient(client).BrokerMetadata(ctx)
			if err != nil {
				return err
			}
			var all []string
			for _, b := range m.Brokers {
				all = append(all, fmt.Sprintf("%s:%d", b.Host, b.Port))
			}
			both := p.seeds()
			slices.Sort(both)
			slices.Sort(all)
			if !slices.Equal(all, both) || m.Controller != want {
				return fmt.Errorf("controller %d, brokers %v; want %d, %v", m.Controller, all, want, both)
			}
			return nil
		})
	}
}

// leadersAt waits until one broker tells of these leaders.
func (p *pair) leadersAt(seed, topic string, want ...int32) {
	p.t.Helper()
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

// balanced: topics made without an assignment have replicas on both brokers.
func (p *pair) balanced(tools *jars.Shell) {
	p.t.Helper()
	tools.Run("kafka.admin.TopicCommand", "--bootstrap-server", p.gregor.Addr(), "--create", "--topic", "anywhere", "--partitions", "4", "--replication-factor", "1")
	p.wait("a topic on both", func(ctx context.Context) error {
		detail, err := p.topic(ctx, p.kafka.Addr(), "anywhere")
		if err != nil {
			return err
		}
		on := map[int32]int{}
		for _, part := range detail.Partitions {
			on[part.Leader]++
		}
		if on[1] != 2 || on[2] != 2 {
			return fmt.Errorf("leaders %v", on)
		}
		return nil
	})
	p.use("anywhere")
}
