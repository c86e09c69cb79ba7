package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	offsetsTopic      = "__consumer_offsets"
	offsetsPartitions = 50
	groupTopic        = "of-groups"
)

// TestGroupsExchange: groups that one side stored are those of the other, with their offsets and metadata, and go on there.
func TestGroupsExchange(t *testing.T) {
	if harness.Foreign(t, "that groups of gregor are taken over by Apache Kafka and the other way round") {
		return
	}
	for _, version := range []string{"4.4.0", "3.9.1"} {
		t.Run("to Kafka "+version, func(t *testing.T) {
			ours := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0"}})
			makeGroups(t, ours)
			ours.Stop(t)
			dir := filepath.Join(t.TempDir(), "kafka")
			theirs := peer.Start(t, version, dir, "group.initial.rebalance.delay.ms=0")
			makeGroups(t, theirs.Broker, "another")
			theirs.Stop(t)
			move(t, ours.Dir(), dir, offsetsTopic, offsetsPartitions)
			theirs = peer.Start(t, version, dir, "group.initial.rebalance.delay.ms=0")
			checkGroups(t, theirs.Broker)
		})
	}
	t.Run("from Kafka 4.4.0", func(t *testing.T) {
		theirs := peer.Start(t, "4.4.0", filepath.Join(t.TempDir(), "kafka"), "group.initial.rebalance.delay.ms=0")
		makeGroups(t, theirs.Broker)
		theirs.Stop(t)
		ours := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0"}})
		makeGroups(t, ours, "another")
		ours.Stop(t)
		move(t, theirs.Dir, ours.Dir(), offsetsTopic, offsetsPartitions)
		ours.Up(t)
		checkGroups(t, ours)
	})
}

// makeGroups makes the topic, two groups that only commit and one that had a member; with names, only groups of these names that commit.
func makeGroups(t *testing.T, b *harness.Broker, only ...string) {
	t.Helper()
	b.Create(t, partitions, nil, groupTopic)
	adm := kadm.NewClient(b.Client(t))
	names := only
	if names == nil {
		names = []string{"first", "second"}
	}
	for i, name := range names {
		commitGroup(t, adm, name, int64(10*i))
	}
	if only == nil {
		joinAndLeave(t, b, "with members")
	}
}

func commitGroup(t *testing.T, adm *kadm.Client, name string, from int64) {
	t.Helper()
	var all kadm.Offsets
	for p := range int32(partitions) {
		all.Add(kadm.Offset{Topic: groupTopic, Partition: p, At: from + int64(p), LeaderEpoch: -1, Metadata: fmt.Sprint("note ", p)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := adm.CommitAllOffsets(ctx, name, all); err != nil {
		t.Fatalf("commit of %s: %v", name, err)
	}
}

// joinAndLeave is a member that reads one record, commits it and leaves.
func joinAndLeave(t *testing.T, b *harness.Broker, group string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.Client(t).ProduceSync(ctx, &kgo.Record{Topic: groupTopic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl := b.Client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(groupTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	fetches := cl.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if err := cl.CommitRecords(ctx, fetches.Records()...); err != nil {
		t.Fatal(err)
	}
	cl.Close()
}

// checkGroups looks at what makeGroups made on the other side, and goes on.
func checkGroups(t *testing.T, b *harness.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	adm := kadm.NewClient(b.Client(t))
	for i, name := range []string{"first", "second"} {
		got, err := adm.FetchOffsets(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		for p := range int32(partitions) {
			if o, _ := got.Lookup(groupTopic, p); o.Err != nil || o.At != int64(10*i)+int64(p) || o.Metadata != fmt.Sprint("note ", p) {
				t.Errorf("%s, partition %d: %+v", name, p, o)
			}
		}
	}
	d, err := adm.DescribeGroups(ctx, "with members", "first", "another")
	if err != nil {
		t.Fatal(err)
	}
	if g := d["with members"]; g.State != "Empty" || g.ProtocolType != "consumer" || len(g.Members) > 0 {
		t.Errorf("the group that had a member: %+v", g)
	}
	if g := d["first"]; g.State != "Empty" || g.ProtocolType != "" {
		t.Errorf("the group that only commits: %+v", g)
	}
	if g := d["another"]; g.State == "Empty" {
		t.Errorf("a group of before the move is there: %+v", g)
	}
	got, err := adm.FetchOffsets(ctx, "with members")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := got.Lookup(groupTopic, 0); o.At != 1 {
		t.Errorf("the member committed 1, the offset is %+v", o)
	}
	commitGroup(t, adm, "first", 100)
	joinAndLeave(t, b, "new here")
}
