package zookeeper

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// TestMoveMetadata takes a broker's metadata from its data directory to ZooKeeper with gregor meta, and back: the broker serves the same on either, and
// does not start on what was moved away.
func TestMoveMetadata(t *testing.T) {
	zk, dir := peer.ZooKeeper(t)+"/moved/here", t.TempDir()
	embedded := []string{"broker.id=1", "offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0"}
	meta := func(want int, texts []string, args ...string) string {
		t.Helper()
		code, output := harness.RunArgs(t, harness.Binary(t), append([]string{"meta"}, args...), time.Minute)
		for _, text := range texts {
			if code != want || !strings.Contains(output, text) {
				t.Fatalf("gregor meta %s: exit code %d, does not say %q:\n%s", strings.Join(args, " "), code, text, output)
			}
		}
		return output
	}
	there := []string{"--data-dir", dir, "--zookeeper", zk}
	do := func(want int, text, verb string, more ...string) {
		t.Helper()
		meta(want, []string{text}, append(append([]string{verb}, there...), more...)...)
	}

	b := harness.Start(t, harness.Config{Dir: dir, Set: embedded})
	o := &owned{t: t, records: map[string]int{}}
	var topics []string
	for n := range 12 {
		topics = append(topics, o.create(b.Addr(), fmt.Sprintf("topic-%d", n), n))
		o.produce(b.Addr(), topics[n], 20)
	}
	o.limits(b.Addr())
	o.commit(b.Addr(), "readers", topics, 7)
	before := o.describe(b.Addr())
	do(1, "in use", "export")
	b.Stop(t)
	refused(t, 20*time.Second, harness.Config{Dir: dir, Set: onZooKeeper(zk, 1)}, "has no cluster", "gregor meta export")

	do(0, "nothing was changed", "export", "--dry-run")
	do(0, "13 topics", "export")
	do(0, "0 nodes to be made, 0 set", "export") // again, as after a command that was cut short
	local := meta(0, nil, "get", "/brokers/topics/topic-2", "--data-dir", dir)
	meta(0, []string{local}, "get", "/brokers/topics/topic-2", "--zookeeper", zk)
	meta(0, []string{"topic-0\ntopic-1\n"}, "ls", "/brokers/topics", "--zookeeper", zk)
	refused(t, 20*time.Second, harness.Config{Dir: dir, Set: embedded}, "was moved to ZooKeeper at "+zk)

	b = harness.Start(t, harness.Config{Dir: dir, Set: onZooKeeper(zk, 1)})
	o.same("on ZooKeeper", before, o.describe(b.Addr()))
	for _, topic := range topics {
		o.read(b.Addr(), topic)
	}
	if got := peer.ZooKeeperShell(t, zk, "get /config/topics/topic-1\n"); !strings.Contains(got, `"config"`) {
		t.Errorf("Kafka's shell finds %s", got)
	}
	o.remove(b.Addr(), topics[11])
	topics = append(topics[:11], o.create(b.Addr(), "made-on-zookeeper", 1))
	o.produce(b.Addr(), "made-on-zookeeper", 15)
	o.alter(b.Addr(), topics[0], "retention.ms", "123456789")
	o.commit(b.Addr(), "readers", topics, 9)
	before = o.describe(b.Addr())
	do(1, "stop that process first", "import")
	b.Stop(t)

	do(0, "nothing was changed", "import", "--dry-run")
	do(0, "done", "import")
	refused(t, 20*time.Second, harness.Config{Dir: dir, Set: onZooKeeper(zk, 1)}, "was moved to "+dir)
	b = harness.Start(t, harness.Config{Dir: dir, Set: embedded})
	o.same("home again", before, o.describe(b.Addr()))
	for _, topic := range topics {
		o.read(b.Addr(), topic)
	}
}
