package groups

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestCommand: kafka-consumer-groups of two versions lists, describes, resets and deletes; what it prints is compared.
func TestCommand(t *testing.T) {
	b := harness.Shared(t, settings())
	for _, version := range []string{"2.8.2", "4.4.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			newCommandTest(t, b, version).all()
		})
	}
}

// commandTest has two topics of ten records in each of two partitions, a group with a member that reads the first, and one without members.
type commandTest struct {
	*testing.T
	broker  *harness.Broker
	shell   *jars.Shell
	command string // class of kafka-consumer-groups
	old     bool   // the command of 2.8
	topic   string
	other   string
	group   string // with a member
	idle    string
	member  string
	id      int32 // of the broker
	adm     *kadm.Client
	started time.Time
}

const recordsEach = 10

func newCommandTest(t *testing.T, b *harness.Broker, version string) *commandTest {
	c := &commandTest{T: t, broker: b, shell: jars.NewShell(t, version), command: groupCommand(version), old: version < "3", topic: harness.Topic("a"), other: harness.Topic("b"),
		group: harness.Topic("live"), idle: harness.Topic("idle"), adm: kadm.NewClient(b.Client(t)), started: time.Now()}
	b.Create(t, 2, nil, c.topic, c.other)
	meta, err := c.adm.BrokerMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.id = meta.Controller
	fillTopic(t, b, c.topic, recordsEach)
	fillTopic(t, b, c.other, recordsEach)
	c.commit(c.group, c.topic, 4, 10)
	c.commit(c.idle, c.topic, 4, 10)
	c.commit(c.idle, c.other, 1, 2)
	return c
}

// groupCommand is the class of kafka-consumer-groups.
func groupCommand(version string) string {
	if version < "3" {
		return "kafka.admin.ConsumerGroupCommand"
	}
	return "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
}

// fillTopic writes records to each partition of a topic: one a minute, the last now.
func fillTopic(t *testing.T, b *harness.Broker, topic string, n int) {
	t.Helper()
	cl, now := b.Client(t), time.Now()
	meta, err := kadm.NewClient(cl).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for p := range meta[topic].Partitions {
			rec := &kgo.Record{Topic: topic, Partition: p, Timestamp: now.Add(-time.Duration(n-1-i) * time.Minute), Value: []byte("x")}
			if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// commit sets the offsets of a topic's two partitions.
func (c *commandTest) commit(group, topic string, first, second int64) {
	c.Helper()
	var all kadm.Offsets
	all.Add(kadm.Offset{Topic: topic, Partition: 0, At: first, LeaderEpoch: -1})
	all.Add(kadm.Offset{Topic: topic, Partition: 1, At: second, LeaderEpoch: -1})
	if err := c.adm.CommitAllOffsets(context.Background(), group, all); err != nil {
		c.Fatal(err)
	}
}

// live joins a member that reads nothing more and holds both partitions.
func (c *commandTest) live() *kgo.Client {
	c.Helper()
	cl := c.broker.Client(c.T, kgo.ClientID("reader"), kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(c.topic), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cl.PollFetches(ctx).Err(); err != nil {
		c.Fatal(err)
	}
	c.member, _ = cl.GroupMetadata()
	return cl
}

// prints demands that the command prints exactly these lines, in any order after the first.
func (c *commandTest) prints(args string, want ...string) {
	c.Helper()
	fill := strings.NewReplacer("{topic}", c.topic, "{other}", c.other, "{group}", c.group, "{idle}", c.idle, "{member}", c.member, "{id}", fmt.Sprint(c.id),
		"{addr}", c.broker.Addr(), "{host}", strings.Split(c.broker.Addr(), ":")[0])
	words := append([]string{"--bootstrap-server", c.broker.Addr()}, strings.Fields(fill.Replace(args))...)
	got := c.shell.Run(c.command, words...)
	var lines []string
	for _, line := range want {
		if only, rest, ok := strings.Cut(line, ": "); ok && (only == "2.8" || only == "4.4") {
			if c.old != (only == "2.8") {
				continue
			}
			line = rest
		}
		lines = append(lines, fill.Replace(line))
	}
	missing, extra := differ(lines, got)
	if len(missing)+len(extra) > 0 {
		c.Errorf("kafka-consumer-groups %s\nnot printed: %q\nnot wanted:  %q", args, missing, extra)
	}
}

// differ returns what is only in one of two lists.
func differ(want, got []string) (missing, extra []string) {
	count := map[string]int{}
	for _, line := range want {
		count[line]++
	}
	for _, line := range got {
		if count[line]--; count[line] < 0 {
			extra = append(extra, line)
		}
	}
	for line, n := range count {
		if n > 0 {
			missing = append(missing, line)
		}
	}
	return missing, extra
}

// has demands that the command prints these lines, whatever else.
func (c *commandTest) has(args string, want ...string) {
	c.Helper()
	words := append([]string{"--bootstrap-server", c.broker.Addr()}, strings.Fields(args)...)
	got := c.shell.Run(c.command, words...)
	if missing, _ := differ(want, got); len(missing) > 0 {
		c.Errorf("kafka-consumer-groups %s\nnot printed: %q\nprinted:     %q", args, missing, got)
	}
}

func (c *commandTest) all() {
	cl := c.live()
	c.lists()
	c.describes()
	c.refusals()
	cl.LeaveGroup()
	c.resets()
	c.deletes()
}

func (c *commandTest) lists() {
	c.has("--list", c.group, c.idle)
	c.has("--list --state", c.group+" Stable", c.idle+" Empty")
	c.has("--list --state Stable", c.group+" Stable")
	if !c.old {
		c.has("--list --type", c.group+" Classic", c.idle+" Classic")
		c.has("--list --type classic --state empty", c.idle+" Classic Empty")
	}
}

// Lines that Kafka prints for a group without members, and above tables.
const (
	noMembers    = "Consumer group '{idle}' has no active members."
	offsetsTable = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
	resetTable   = "GROUP TOPIC PARTITION NEW-OFFSET"
)

func (c *commandTest) describes() {
	live := []string{offsetsTable, "{group} {topic} 0 4 10 6 {member} /{host} reader", "{group} {topic} 1 10 10 0 {member} /{host} reader"}
	idle := []string{noMembers, offsetsTable, "{idle} {topic} 0 4 10 6 - - -", "{idle} {topic} 1 10 10 0 - - -", "{idle} {other} 0 1 10 9 - - -", "{idle} {other} 1 2 10 8 - - -"}
	c.prints("--describe --group {group}", live...)
	c.prints("--describe --group {idle}", idle...)
	c.prints("--describe --group {group} --group {idle} --offsets", append(live, idle...)...)
	c.prints("--describe --group {group} --members --verbose",
		"2.8: GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT",
		"2.8: {group} {member} /{host} reader 2 {topic}(0,1)",
		"4.4: GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT",
		"4.4: {group} {member} /{host} reader 2 - {topic}:0,1 - -")
	c.prints("--describe --group {idle} --members", noMembers, "4.4: GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS")
	c.prints("--describe --group {group} --state",
		"GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS", "{group} {addr} ({id}) range Stable 1")
	c.prints("--describe --group {idle} --state", noMembers,
		"GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS", "2.8: {idle} {addr} ({id}) Empty 0", "4.4: {idle} {addr} ({id}) - Empty 0")
	c.describesNobody("nothing")
	if !c.old {
		c.prints("--describe --group {group} --offsets --verbose", "GROUP TOPIC PARTITION LEADER-EPOCH CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID",
			"{group} {topic} 0 - 4 10 6 {member} /{host} reader", "{group} {topic} 1 - 10 10 0 {member} /{host} reader")
	}
}

func (c *commandTest) describesNobody(group string) {
	c.Helper()
	c.prints("--describe --group "+group, "2.8: Error: Consumer group '"+group+"' does not exist.",
		"4.4: Error: Executing consumer group command failed due to org.apache.kafka.common.errors.GroupIdNotFoundException: Group "+group+" not found.")
}

// Beginnings and ends of long lines.
const (
	notDeleted    = "Error: Deletion of some consumer groups failed:"
	oldCause      = "java.util.concurrent.ExecutionException: "
	errorsPackage = "org.apache.kafka.common.errors."
	subscribed    = errorsPackage + "GroupSubscribedToTopicException: Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
)

// refusals are what is not done to a group with members.
func (c *commandTest) refusals() {
	c.prints("--reset-offsets --group {group} --topic {topic} --to-earliest --execute",
		"Error: Assignments can only be reset if the group '{group}' is inactive, but the current state is Stable.", resetTable)
	c.notDeleted("{group}", "GroupNotEmptyException: The group is not empty.")
	c.prints("--delete-offsets --group {group} --topic {topic}",
		"2.8: Error: Encounter some partition level error, see the follow-up details:",
		"4.4: Error: Encountered some partition-level error, see the follow-up details.",
		"TOPIC PARTITION STATUS", "{topic} 0 Error: "+subscribed, "{topic} 1 Error: "+subscribed)
}

func (c *commandTest) notDeleted(group, why string) {
	c.Helper()
	c.prints("--delete --group "+group, notDeleted,
		"2.8: * Group '"+group+"' could not be deleted due to: "+oldCause+errorsPackage+why,
		"4.4: * Group '"+group+"' could not be deleted due to: "+errorsPackage+why)
}

func (c *commandTest) resets() {
	file := filepath.Join(c.TempDir(), "offsets.csv")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%s,0,3\n%s,1,8\n", c.topic, c.topic), 0o644); err != nil {
		c.Fatal(err)
	}
	when := c.started.Add(-150 * time.Second).UTC().Format("2006-01-02T15:04:05.000")
	for _, how := range []struct {
		option        string
		first, second int64
	}{
		{"--to-earliest", 0, 0}, {"--to-latest", 10, 10}, {"--to-current", 4, 10}, {"--to-offset 5", 5, 5}, {"--to-offset 100", 10, 10},
		{"--shift-by 2", 6, 10}, {"--shift-by -4", 0, 6}, {"--to-datetime " + when, 7, 7}, {"--by-duration PT2M30S", 7, 7}, {"--from-file " + file, 3, 8},
	} {
		c.commit(c.group, c.topic, 4, 10)
		want := []string{resetTable, fmt.Sprintf("{group} {topic} 0 %d", how.first), fmt.Sprintf("{group} {topic} 1 %d", how.second)}
		c.prints("--reset-offsets --group {group} --topic {topic} --dry-run "+how.option, want...)
		c.offsets(c.group, c.topic, 4, 10)
		c.prints("--reset-offsets --group {group} --topic {topic} --execute "+how.option, want...)
		c.offsets(c.group, c.topic, how.first, how.second)
	}
	c.commit(c.group, c.topic, 4, 10)
	c.prints("--reset-offsets --group {group} --topic {topic}:1 --to-earliest --execute", resetTable, "{group} {topic} 1 0")
	c.offsets(c.group, c.topic, 4, 0)
	c.prints("--reset-offsets --group {idle} --all-topics --to-current --export --dry-run", "{topic},0,4", "{topic},1,10", "{other},0,1", "{other},1,2")
	c.prints("--reset-offsets --group {idle} --all-topics --to-latest --execute", resetTable,
		"{idle} {topic} 0 10", "{idle} {topic} 1 10", "{idle} {other} 0 10", "{idle} {other} 1 10")
}

func (c *commandTest) deletes() {
	succeeded := "4.4: Request succeeded for deleting offsets from group {idle}."
	c.prints("--delete-offsets --group {idle} --topic {other}", "2.8: Request succeed for deleting offsets with topic {other} group {idle}", succeeded,
		"TOPIC PARTITION STATUS", "{other} 0 Successful", "{other} 1 Successful")
	c.prints("--delete-offsets --group {idle} --topic {topic}:1", "2.8: Request succeed for deleting offsets with topic {topic}:1 group {idle}", succeeded,
		"TOPIC PARTITION STATUS", "{topic} 1 Successful")
	c.prints("--describe --group {idle}", noMembers, offsetsTable, "{idle} {topic} 0 10 10 0 - - -")
	c.prints("--delete --group {idle}", "Deletion of requested consumer groups ('{idle}') was successful.")
	c.notDeleted("{idle}", "GroupIdNotFoundException: The group id does not exist.")
	c.describesNobody("{idle}")
}

// offsets checks what is committed.
func (c *commandTest) offsets(group, topic string, first, second int64) {
	c.Helper()
	got, err := c.adm.FetchOffsets(context.Background(), group)
	if err != nil || got[topic][0].At != first || got[topic][1].At != second {
		c.Errorf("offsets of %s are %v (%v), want %d and %d", topic, got[topic], err, first, second)
	}
}
