package zookeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"gregor/compat/harness"
	"gregor/compat/jars"
	"gregor/compat/peer"
)

// toolPatience is how soon a broker must have followed what a tool wrote to ZooKeeper; the machine may stand still meanwhile.
const toolPatience = 20 * time.Second

// watched is a gregor on ZooKeeper that tools write to behind its back.
type watched struct {
	t     *testing.T
	admin *kadm.Client
	zk    string
	tools *jars.Shell
}

// tool runs one of Kafka 2.4's commands with --zookeeper, which must say want.
func (w *watched) tool(want, class string, args ...string) {
	w.t.Helper()
	out := strings.Join(w.tools.Run(class, append([]string{"--zookeeper", w.zk}, args...)...), "\n")
	if !strings.Contains(out, want) {
		w.t.Errorf("%s %v does not say %q:\n%s", class, args, want, out)
	}
}

// follows waits until the broker has followed, and prints how long that took.
func (w *watched) follows(what string, check func(context.Context) (string, error), want string) {
	w.t.Helper()
	began := time.Now()
	for {
		got, err := check(w.t.Context())
		if err == nil && got == want {
			w.t.Logf("%s: followed within %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > toolPatience {
			w.t.Fatalf("%s: is %q, %v; want %q", what, got, err, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *watched) partitions(topic string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		topics, err := w.admin.ListTopics(ctx, topic)
		if err != nil {
			return "", err
		}
		d := topics[topic]
		for _, p := range d.Partitions {
			if p.Leader != 1 {
				return fmt.Sprintf("partition %d is led by %d", p.Partition, p.Leader), nil
			}
		}
		return fmt.Sprint(len(d.Partitions), " ", d.ID), nil
	}
}

func (w *watched) config(topic, key string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		configs, err := w.admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return "", err
		}
		for _, c := range configs[0].Configs {
			if c.Key == key {
				return c.MaybeValue() + " " + c.Source.String(), nil
			}
		}
		return "", nil
	}
}

func (w *watched) quotas(ctx context.Context) (string, error) {
	found, err := w.admin.DescribeClientQuotas(ctx, false, nil)
	return fmt.Sprint(found), err
}

// TestToolsOnZooKeeper: what Kafka 2.4's tools write to ZooKeeper is followed, and they see what gregor wrote.
func TestToolsOnZooKeeper(t *testing.T) {
	zk := peer.ZooKeeper(t) + "/tools"
	b := harness.Start(t, harness.Config{Set: onZooKeeper(zk, 1)})
	w := &watched{t: t, admin: kadm.NewClient(b.Client(t)), zk: zk, tools: jars.NewShell(t, "2.4.1")}
	const topics, configs = "kafka.admin.TopicCommand", "kafka.admin.ConfigCommand"

	w.tool("Created topic made", topics, "--create", "--topic", "made", "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=12345")
	var id kadm.TopicID
	w.follows("a new topic", func(ctx context.Context) (string, error) {
		list, err := w.admin.ListTopics(ctx, "made")
		if err == nil {
			id = list["made"].ID
		}
		return fmt.Sprint(len(list["made"].Partitions)), err
	}, "3")
	w.follows("its leaders", w.partitions("made"), fmt.Sprint(3, " ", id))
	w.follows("its configuration", w.config("made", "retention.ms"), "12345 DYNAMIC_TOPIC_CONFIG")
	w.tool("Adding partitions succeeded", topics, "--alter", "--topic", "made", "--partitions", "5")
	w.follows("new partitions, the id stays", w.partitions("made"), fmt.Sprint(5, " ", id))
	w.tool("Completed Updating config for entity: topic 'made'", configs, "--alter", "--entity-type", "topics", "--entity-name", "made", "--add-config", "max.message.bytes=54321", "--delete-config", "retention.ms")
	w.follows("another configuration", w.config("made", "max.message.bytes"), "54321 DYNAMIC_TOPIC_CONFIG")
	w.follows("a deleted key", w.config("made", "retention.ms"), "604800000 DEFAULT_CONFIG")
	w.tool("Completed Updating config", configs, "--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "producer_byte_rate=1024")
	w.tool("Completed Updating config", configs, "--alter", "--entity-type", "clients", "--entity-name", "<default>", "--add-config", "consumer_byte_rate=2048")
	w.follows("quotas", func(ctx context.Context) (string, error) {
		got, err := w.quotas(ctx)
		return fmt.Sprint(strings.Contains(got, "1024"), strings.Contains(got, "2048")), err
	}, "true true")
	w.tool("Completed Updating config", configs, "--alter", "--entity-type", "users", "--entity-name", "ann", "--delete-config", "producer_byte_rate")
	w.follows("a quota that is gone", func(ctx context.Context) (string, error) {
		got, err := w.quotas(ctx)
		return fmt.Sprint(strings.Contains(got, "1024")), err
	}, "false")
	w.reassign("made")

	retention := "777777"
	if _, err := w.admin.CreateTopic(t.Context(), 4, 1, map[string]*string{"retention.ms": &retention}, "of-gregor"); err != nil {
		t.Fatal(err)
	}
	w.tool("PartitionCount: 4 ReplicationFactor: 1 Configs: retention.ms=777777", topics, "--describe", "--topic", "of-gregor")
	w.tool("Partition: 3 Leader: 1 Replicas: 1 Isr: 1", topics, "--describe", "--topic", "of-gregor")
	w.tool("consumer_byte_rate=2048", configs, "--describe", "--entity-type", "clients")

	w.tool("is marked for deletion", topics, "--delete", "--topic", "made")
	w.follows("a deletion", func(ctx context.Context) (string, error) {
		list, err := w.admin.ListTopics(ctx)
		return fmt.Sprint(list.Has("made")), err
	}, "false")
	w.follows("the end of its directories", func(context.Context) (string, error) {
		left, err := filepath.Glob(filepath.Join(b.Dir(), "made-?"))
		return fmt.Sprint(len(left)), err
	}, "0")
	w.tool("of-gregor", topics, "--list")
}

// reassign has the tools ask for the replicas that there are, and for a preferred leader.
func (w *watched) reassign(topic string) {
	w.t.Helper()
	plan := map[string]any{"version": 1, "partitions": []any{map[string]any{"topic": topic, "partition": 0, "replicas": []int{1}}}}
	text, err := json.Marshal(plan)
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.tool("Successfully started reassignment of partitions", "kafka.admin.ReassignPartitionsCommand", "--reassignment-json-file", file, "--execute")
	w.follows("a reassignment", func(context.Context) (string, error) {
		out := strings.Join(w.tools.Run("kafka.admin.ReassignPartitionsCommand", "--zookeeper", w.zk, "--reassignment-json-file", file, "--verify"), "\n")
		return fmt.Sprint(strings.Contains(out, "completed successfully")), nil
	}, "true")
	w.tool("Created preferred replica election path", "kafka.admin.PreferredReplicaLeaderElectionCommand")
	w.follows("an election", func(context.Context) (string, error) {
		return fmt.Sprint(strings.Contains(peer.ZooKeeperShell(w.t, w.zk, "ls /admin\n"), "preferred_replica_election")), nil
	}, "false")
}

// TestOldConsumersOnZooKeeper: clients of Kafka 0.8 that look for brokers in ZooKeeper, and keep their offsets there.
func TestOldConsumersOnZooKeeper(t *testing.T) {
	zk := peer.ZooKeeper(t) + "/old"
	b := harness.Start(t, harness.Config{Set: onZooKeeper(zk, 1)})
	lib, err := jars.Tools("0.8.2.2").Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := func(stdin, class, args string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := jars.Java(ctx, lib+"/*", class, strings.Fields(args)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v\n%s", class, args, err, out)
		}
		return string(out)
	}
	says(t, run("", "kafka.admin.TopicCommand", "--zookeeper "+zk+" --create --topic old --partitions 2 --replication-factor 1"), "Created topic")
	o := &owned{t: t, records: map[string]int{}}
	o.produce(b.Addr(), "old", 30)
	run("one\ntwo\nthree\n", "kafka.tools.ConsoleProducer", "--broker-list "+b.Addr()+" --topic old")
	group := filepath.Join(t.TempDir(), "group.properties")
	if err := os.WriteFile(group, []byte("group.id=grandfathers\nauto.commit.interval.ms=200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run("", "kafka.tools.ConsoleConsumer", "--zookeeper "+zk+" --topic old --from-beginning --max-messages 33 --consumer.config "+group)
	says(t, out, "Consumed 33 messages")
	says(t, out, "three")
	says(t, peer.ZooKeeperShell(t, zk, "ls /consumers/grandfathers/offsets/old\n"), "[0, 1]")
	out = run("", "kafka.tools.ConsumerOffsetChecker", "--zookeeper "+zk+" --group grandfathers --topic old")
	says(t, out, "grandfathers")
	run("four\n", "kafka.tools.ConsoleProducer", "--broker-list "+b.Addr()+" --topic old")
	out = run("", "kafka.tools.ConsoleConsumer", "--zookeeper "+zk+" --topic old --max-messages 1 --consumer.config "+group)
	says(t, out, "four")
	says(t, run("", "kafka.admin.TopicCommand", "--zookeeper "+zk+" --describe --topic old"), "Leader: 1")
}
