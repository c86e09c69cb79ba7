package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// TestGroupsComeBack: after a kill members, generation and offsets are what they were; the members go on with heartbeats.
func TestGroupsComeBack(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir)
	c.createTopic("t")
	j := c.member("g")
	r := commitRequest("g", "t", 0, 42)
	r.Generation, r.MemberID = j.Generation, j.MemberID
	if got := ask[*kmsg.OffsetCommitResponse](c, 8, r).Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Fatalf("commit: error %d", got)
	}
	c.commitOne("other", "t", 7)
	b.abandon()

	b, c = groupBroker(t, dir)
	waitFor(t, func() bool { return loaded(b) })
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.Generation, h.MemberID = "g", j.Generation, j.MemberID
	if got := ask[*kmsg.HeartbeatResponse](c, 4, h).ErrorCode; got != 0 {
		t.Errorf("heartbeat: error %d", got)
	}
	if got := c.fetchOne("g", "t").Offset; got != 42 {
		t.Errorf("offset is %d", got)
	}
	if got := c.fetchOne("other", "t").Offset; got != 7 {
		t.Errorf("offset of the simple group is %d", got)
	}
	if d := b.describeGroup("g", 0); d.State != "Stable" || len(d.Members) != 1 || string(d.Members[0].MemberAssignment) != "all" {
		t.Errorf("group is %+v", d)
	}
}

func loaded(b *testBroker) bool {
	for _, p := range b.groups.all() {
		if p.usable() != nil {
			return false
		}
	}
	return true
}

// TestLoading: while a partition is read its groups answer so, but heartbeats are good, and lists are not short.
func TestLoading(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	for _, p := range b.groups.all() {
		p.state.Store(stateLoading)
	}
	loading := kerr.CoordinatorLoadInProgress.Code
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group = "g"
	if got := ask[*kmsg.HeartbeatResponse](c, 4, h).ErrorCode; got != 0 {
		t.Errorf("heartbeat: error %d", got)
	}
	if got := ask[*kmsg.JoinGroupResponse](c, 9, joinRequest("g", "")).ErrorCode; got != loading {
		t.Errorf("join: error %d", got)
	}
	if got := c.commitOne("g", "t", 1); got != loading {
		t.Errorf("commit: error %d", got)
	}
	for v := int16(0); v <= 9; v++ {
		got := ask[*kmsg.OffsetFetchResponse](c, v, fetchOffsetsRequest("g", "t", 0))
		switch {
		case v < 2 && got.Topics[0].Partitions[0].ErrorCode != loading, v >= 2 && v < 8 && (got.ErrorCode != loading || len(got.Topics) > 0),
			v >= 8 && got.Groups[0].ErrorCode != loading:
			t.Errorf("fetch v%d: %+v", v, got)
		}
	}
	if got := ask[*kmsg.ListGroupsResponse](c, 4, kmsg.NewPtrListGroupsRequest()).ErrorCode; got != loading {
		t.Errorf("list: error %d", got)
	}
	d := kmsg.NewPtrDescribeGroupsRequest()
	d.Groups = []string{"g"}
	if got := ask[*kmsg.DescribeGroupsResponse](c, 5, d).Groups[0].ErrorCode; got != loading {
		t.Errorf("describe: error %d", got)
	}
}

// TestFastLoad: 100,000 offsets are read in well under a second.
func TestFastLoad(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir, "num.partitions", "100")
	c.createTopic("t")
	for i := range 100 {
		var records []group.Record
		g := group.New(fmt.Sprint("group-", i), &b.groups.conf)
		commit := &group.Commit{Generation: -1}
		for n := range 1000 {
			commit.Offsets = append(commit.Offsets, group.PartitionOffset{
				Partition: group.Partition{Topic: "t", Number: int32(n)}, Offset: group.Offset{Offset: int64(n), LeaderEpoch: -1, Expires: -1}})
		}
		for _, w := range g.Commit(group.Instant{}, nil, commit).Writes {
			records = append(records, w.Records...)
		}
		p, _ := b.groups.find(g.ID())
		if _, err := p.appendRecords(records); err != nil {
			t.Fatal(err)
		}
	}
	b.stopClean()
	begin := time.Now()
	b, c = groupBroker(t, dir)
	waitFor(t, func() bool { return loaded(b) })
	took := time.Since(begin)
	for i := range 100 {
		got := ask[*kmsg.OffsetFetchResponse](c, 7, fetchOffsetsRequest(fmt.Sprint("group-", i), "t", 999)).Topics[0].Partitions[0]
		if got.Offset != 999 {
			t.Fatalf("group %d has %+v", i, got)
		}
	}
	t.Logf("start and load took %v", took)
	if took > 30*time.Second { // far above what it takes, for slow machines and the race detector
		t.Errorf("start and load took %v", took)
	}
}

// TestDamagedPartition: groups of a partition that cannot be read wait, a list is not short, the others go on.
func TestDamagedPartition(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir)
	c.createTopic("t")
	// "a", "b" and so on are in partitions of their own.
	c.commitOne("a", "t", 1)
	c.commitOne("b", "t", 2)
	b.stopClean()
	file := filepath.Join(dir, fmt.Sprintf("%s-%d", offsetsTopic, partitionForKey("a", 4)), "00000000000000000000.log")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-3] ^= 1
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, c = groupBroker(t, dir)
	waitFor(t, func() bool { return c.fetchOne("b", "t").Offset == 2 })
	if got := ask[*kmsg.OffsetFetchResponse](c, 7, fetchOffsetsRequest("a", "t", 0)).ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("fetch: error %d", got)
	}
	if got := ask[*kmsg.ListGroupsResponse](c, 4, kmsg.NewPtrListGroupsRequest()); got.ErrorCode != kerr.CoordinatorNotAvailable.Code || len(got.Groups) > 0 {
		t.Errorf("list: %+v", got)
	}
}

// TestTransactionalOffsets: commits that Kafka wrote in a transaction count when it was committed; of several the last commit counts, whichever marker came first.
func TestTransactionalOffsets(t *testing.T) {
	b, _ := groupBroker(t, t.TempDir())
	l := newLoader(b.groups.all()[0])
	key := kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t"}
	next := int64(0)
	write := func(raw []byte, err error) {
		batch.Stamp(raw, next, 0)
		next++
		if err == nil {
			err = l.replay.one(raw, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	offset := func(producer, n int64) {
		var w batch.Builder
		w.Reset(batch.Options{LeaderEpoch: -1, Producer: &batch.Producer{ID: producer}, Transactional: true})
		v := kmsg.OffsetCommitValue{Version: 3, Offset: n, LeaderEpoch: -1}
		w.Append(1, key.AppendTo(nil), v.AppendTo(nil))
		write(w.Finish(nil))
	}
	end := func(producer int64, commit bool) {
		write(batch.AppendMarker(nil, batch.Producer{ID: producer}, 1, 0, commit), nil)
	}
	offset(1, 10)
	offset(2, 20)
	offset(3, 30)
	offset(4, 40)
	end(4, true)
	end(1, true)
	end(2, false)
	g := l.groups["g"]
	if g == nil {
		t.Fatal("no group")
	}
	if o, ok := g.Committed(group.Partition{Topic: "t"}); !ok || o.Offset != 40 {
		t.Errorf("offset is %d, want that of the last commit", o.Offset)
	}
	if !l.p.foreign.Load() {
		t.Error("a partition with transactions would be rewritten")
	}
}

// TestCommitOnFullDisk: the commit is refused and not seen, and works again when there is room.
func TestCommitOnFullDisk(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), quickGroups()...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.findCoordinator("g")
	c.createTopic("t")
	c.commitOne("g", "t", 1)
	room := faults.Add(faultfs.Rule{Kind: faultfs.Write, Path: "*.log", Err: syscall.ENOSPC})
	if got := c.commitOne("g", "t", 2); got != kerr.NotCoordinator.Code {
		t.Errorf("commit on a full disk: error %d", got)
	}
	if got := c.fetchOne("g", "t").Offset; got != 1 {
		t.Errorf("offset is %d", got)
	}
	room()
	if got := c.commitOne("g", "t", 3); got != 0 {
		t.Errorf("commit with room again: error %d", got)
	}
	if got := c.fetchOne("g", "t").Offset; got != 3 {
		t.Errorf("offset is %d", got)
	}
}

// TestCompaction: what is alive is written again, the log begins there, and nothing is lost, with commits going on.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir, "offsets.topic.num.partitions", "1")
	c.createTopic("t")
	c.member("live")
	for i := range 50 {
		c.commitOne(fmt.Sprint("simple-", i), "t", int64(i))
	}
	var stop atomic.Bool
	var committed atomic.Int64
	var wg sync.WaitGroup
	busy := b.dial()
	wg.Go(func() {
		for n := int64(1); !stop.Load(); n++ {
			if busy.commitOne("busy", "t", n) == 0 {
				committed.Store(n)
			}
		}
	})
	waitFor(t, func() bool { return committed.Load() > 0 })
	p := b.groups.all()[0]
	for range 5 {
		before := p.part.log.StartOffset()
		if err := p.compact(); err != nil {
			t.Fatal(err)
		}
		if p.part.log.StartOffset() <= before {
			t.Errorf("log start stays at %d", before)
		}
	}
	stop.Store(true)
	wg.Wait()
	b.abandon()
	b, c = groupBroker(t, dir)
	waitFor(t, func() bool { return loaded(b) })
	for i := range 50 {
		if got := c.fetchOne(fmt.Sprint("simple-", i), "t").Offset; got != int64(i) {
			t.Errorf("group %d has offset %d", i, got)
		}
	}
	if got := c.fetchOne("busy", "t").Offset; got < committed.Load() {
		t.Errorf("busy group has offset %d, acknowledged was %d", got, committed.Load())
	}
	if d := b.describeGroup("live", 0); d.State != "Stable" || len(d.Members) != 1 {
		t.Errorf("group is %+v", d)
	}
}

// TestExpiry: the housekeeper's look.
func TestExpiry(t *testing.T) {
	b, c := groupBroker(t, t.TempDir(), "offsets.retention.minutes", "1")
	c.createTopic("t")
	c.commitOne("g", "t", 1)
	b.groups.expire()
	if got := c.fetchOne("g", "t").Offset; got != 1 {
		t.Errorf("offset is %d", got)
	}
	short := commitRequest("short", "t", 0, 2)
	short.RetentionTimeMillis = 0
	ask[*kmsg.OffsetCommitResponse](c, 3, short)
	b.groups.expire()
	waitFor(t, func() bool { return b.describeGroup("short", 0).State == "Dead" })
}
