package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// TestSlowSync: while a sync hangs, commits wait and are not seen; heartbeats, joins of other groups and reads go on.
func TestSlowSync(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), quickGroups("offsets.topic.num.partitions", "1")...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.findCoordinator("g")
	c.createTopic("t")
	j := c.member("g")
	c.commitOne("simple", "t", 1)

	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	for _, kind := range []faultfs.Kind{faultfs.Sync, faultfs.SyncAll} {
		faults.Add(faultfs.Rule{Kind: kind, Block: gate, Entered: entered})
	}
	slow := b.dial()
	r := commitRequest("simple", "t", 0, 2)
	r.SetVersion(8)
	slow.send(r)
	<-entered
	for _, id := range []string{"g", "simple"} {
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.Generation, h.MemberID = id, j.Generation, j.MemberID
		if got := ask[*kmsg.HeartbeatResponse](c, 4, h).ErrorCode; (got == 0) != (id == "g") {
			t.Errorf("heartbeat in %s: error %d", id, got)
		}
	}
	if got := c.fetchOne("simple", "t").Offset; got != 1 {
		t.Errorf("the waiting commit is seen: %d", got)
	}
	if got := ask[*kmsg.JoinGroupResponse](c, 3, joinRequest("third", "")); got.ErrorCode != 0 || got.Generation != 1 {
		t.Errorf("join of another group: %+v", got)
	}
	close(gate)
	if got := slow.receive(r, slow.next).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Errorf("commit: error %d", got)
	}
	if got := c.fetchOne("simple", "t").Offset; got != 2 {
		t.Errorf("offset is %d", got)
	}
}

// TestPipelinedCommits: many commits on one connection, all answered, the last one stands.
func TestPipelinedCommits(t *testing.T) {
	_, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	const n = 300
	requests := make([]*kmsg.OffsetCommitRequest, n)
	for i := range requests {
		requests[i] = commitRequest("g", "t", 0, int64(i))
		requests[i].SetVersion(7)
		c.send(requests[i])
	}
	for i, r := range requests {
		if got := c.receive(r, c.next-n+1+int32(i)).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; got != 0 {
			t.Fatalf("commit %d: error %d", i, got)
		}
	}
	if got := c.fetchOne("g", "t").Offset; got != n-1 {
		t.Errorf("offset is %d", got)
	}
}
