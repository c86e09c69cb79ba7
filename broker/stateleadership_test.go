package broker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// neighbour is another live broker.
const neighbour = 7

// seeNeighbour puts the other broker into the view, with a listener.
func (b *testBroker) seeNeighbour() {
	v := *b.view.Load()
	v.brokers = append(v.brokers[:1:1], peer{id: neighbour, node: meta.BrokerNode{Endpoints: []meta.Endpoint{{Listener: "PLAINTEXT", Host: "there", Port: 99}}}})
	b.view.Store(&v)
}

// ledBy changes who leads a partition, as a controller would.
func (b *testBroker) ledBy(name string, n, leader, epoch int32) {
	b.admin.Lock()
	defer b.admin.Unlock()
	p := b.topics.name(name).partition(n)
	l := *p.lead.Load()
	l.leader, l.epoch, l.led = leader, epoch, leader == b.nodeID
	b.setLeadership(p, &l)
}

// settled waits until the coordinators have done what leadership asked for.
func (b *testBroker) settled() {
	b.t.Helper()
	waitFor(b.t, func() bool { return idle(&b.groups.stateTopic) && idle(&b.txns.stateTopic) })
}

func idle[P statePartition](s *stateTopic[P]) bool {
	s.mu.Lock()
	busy := len(s.leaving)+len(s.entering) > 0
	s.mu.Unlock()
	for _, p := range s.all() {
		busy = busy || p.base().state.Load() == stateLoading
	}
	return !busy
}

// coordinatorOfKey asks at a version.
func (c *client) coordinatorOfKey(version int16, kind int8, key string) (node int32, at string, code int16) {
	c.t.Helper()
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = kind, key, []string{key}
	resp := ask[*kmsg.FindCoordinatorResponse](c, version, r)
	if version < findsMany {
		return resp.NodeID, fmt.Sprintf("%s:%d", resp.Host, resp.Port), resp.ErrorCode
	}
	one := resp.Coordinators[0]
	return one.NodeID, fmt.Sprintf("%s:%d", one.Host, one.Port), one.ErrorCode
}

func heartbeatRequest(id string, j *kmsg.JoinGroupResponse) *kmsg.HeartbeatRequest {
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.Generation, h.MemberID = id, j.Generation, j.MemberID
	return h
}

// TestGroupMoves: when another broker leads a group's partition, who waits is told so, and clients are sent there; other groups go on. When it
// comes back the group is what it was.
func TestGroupMoves(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	b.seeNeighbour()
	c.createTopic("t")
	// "a" and "b" are in partitions of their own.
	at := int32(partitionForKey("a", 4))
	j := c.member("a")
	c.commitOne("a", "t", 5)
	r := commitRequest("a", "t", 0, 5)
	r.Generation, r.MemberID = j.Generation, j.MemberID
	if got := ask[*kmsg.OffsetCommitResponse](c, 8, r).Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Fatalf("commit: error %d", got)
	}
	c.commitOne("b", "t", 6)
	parked := b.dial()
	join := joinRequest("a", "")
	join.SetVersion(3)
	parked.send(join)
	waitFor(t, func() bool { return membersOf(b, "a") == 2 })

	b.ledBy(offsetsTopic, at, neighbour, 1)
	moved := kerr.NotCoordinator.Code
	if got := parked.receive(join, parked.next).(*kmsg.JoinGroupResponse).ErrorCode; got != moved {
		t.Errorf("parked join: error %d", got)
	}
	if got := ask[*kmsg.HeartbeatResponse](c, 4, heartbeatRequest("a", j)).ErrorCode; got != moved {
		t.Errorf("heartbeat: error %d", got)
	}
	if got := c.commitOne("a", "t", 7); got != moved {
		t.Errorf("commit: error %d", got)
	}
	if got := b.describeGroup("a", 6).ErrorCode; got != moved {
		t.Errorf("describe: error %d", got)
	}
	for _, version := range []int16{0, 3, 4, 6} {
		if node, where, code := c.coordinatorOfKey(version, coordinatorOfGroup, "a"); node != neighbour || where != "there:99" || code != 0 {
			t.Errorf("coordinator v%d is %d at %s, error %d", version, node, where, code)
		}
		if node, where, code := c.coordinatorOfKey(version, coordinatorOfGroup, "b"); node != b.nodeID || where != b.Addr() || code != 0 {
			t.Errorf("coordinator v%d of the other group is %d at %s, error %d", version, node, where, code)
		}
	}
	list := ask[*kmsg.ListGroupsResponse](c, 4, kmsg.NewPtrListGroupsRequest())
	if list.ErrorCode != 0 || len(list.Groups) != 1 || list.Groups[0].Group != "b" {
		t.Errorf("list is %+v", list)
	}
	if got := c.commitOne("b", "t", 8); got != 0 {
		t.Errorf("commit of the other group: error %d", got)
	}

	b.ledBy(offsetsTopic, at, b.nodeID, 2)
	b.settled()
	if got := c.fetchOne("a", "t").Offset; got != 5 {
		t.Errorf("offset is %d", got)
	}
	d := b.describeGroup("a", 0)
	if d.ErrorCode != 0 || len(d.Members) != 1 || d.Members[0].MemberID != j.MemberID {
		t.Errorf("group is %+v", d)
	}
	if got := ask[*kmsg.HeartbeatResponse](c, 4, heartbeatRequest("a", j)).ErrorCode; got != 0 {
		t.Errorf("heartbeat: error %d", got)
	}
	if got := c.commitOne("a", "t", 9); got == moved {
		t.Errorf("commit: error %d", got)
	}
	if node, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, "a"); node != b.nodeID || code != 0 {
		t.Errorf("coordinator is %d, error %d", node, code)
	}
}

// TestNewEpochKeepsGroups: a new leader epoch of the same leader changes nothing for those who wait.
func TestNewEpochKeepsGroups(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	c.commitOne("a", "t", 1)
	at := int32(partitionForKey("a", 4))
	before := b.groups.at("a")
	b.ledBy(offsetsTopic, at, b.nodeID, 3)
	if b.groups.at("a") != before || before.usable() != nil {
		t.Error("the partition is loaded again")
	}
	if got := c.commitOne("a", "t", 2); got != 0 {
		t.Errorf("commit: error %d", got)
	}
	if got, _ := b.topics.name(offsetsTopic).partition(at).log.LatestEpoch(); got != 3 {
		t.Errorf("epoch of the last batch is %d", got)
	}
}

// TestNobodyLeads: without a live leader there is no coordinator.
func TestNobodyLeads(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	at := int32(partitionForKey("a", 4))
	want := kerr.CoordinatorNotAvailable.Code
	for _, leader := range []int32{noLeader, neighbour} { // who does not live
		b.ledBy(offsetsTopic, at, leader, 1)
		if node, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, "a"); node != -1 || code != want {
			t.Errorf("leader %d: coordinator is %d, error %d", leader, node, code)
		}
	}
	v := *b.view.Load()
	v.brokers = append(v.brokers[:1:1], peer{id: neighbour, node: meta.BrokerNode{Endpoints: []meta.Endpoint{{Listener: "OTHER", Host: "there", Port: 99}}}})
	b.view.Store(&v)
	if node, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, "a"); node != -1 || code != want {
		t.Errorf("leader without the listener: coordinator is %d, error %d", node, code)
	}
}

// slowDisk is a broker whose reads or syncs can be held.
func slowDisk(t *testing.T, dir string, settings ...string) (*testBroker, *faultfs.FS) {
	t.Helper()
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, dir, settings...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	return b, faults
}

// TestLostWhileLoading: a load ends when its partition goes away, and what it read is dropped; gained, lost and gained again in a row ends well.
func TestLostWhileLoading(t *testing.T) {
	b, faults := slowDisk(t, t.TempDir(), quickGroups()...)
	c := b.dial()
	c.findCoordinator("g")
	c.createTopic("t")
	c.commitOne("a", "t", 5)
	at := int32(partitionForKey("a", 4))
	lose := func(epoch int32) { b.ledBy(offsetsTopic, at, neighbour, epoch) }
	gain := func(epoch int32) { b.ledBy(offsetsTopic, at, b.nodeID, epoch) }

	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	release := faults.Add(faultfs.Rule{Kind: faultfs.Read, Path: fmt.Sprintf("%s-%d/", offsetsTopic, at), Block: gate, Entered: entered})
	lose(1)
	gain(2)
	<-entered
	if got := c.commitOne("a", "t", 6); got != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("commit during the load: error %d", got)
	}
	loading := b.groups.at("a")
	lose(3)
	if got := c.commitOne("a", "t", 6); got != kerr.NotCoordinator.Code {
		t.Errorf("commit after the loss: error %d", got)
	}
	gain(4)
	lose(5)
	release()
	close(gate)
	b.settled()
	if loading.peek("a") != nil || b.groups.at("a") != nil {
		t.Error("the group is there")
	}
	if got := c.commitOne("a", "t", 6); got != kerr.NotCoordinator.Code {
		t.Errorf("commit when another broker leads: error %d", got)
	}
	gain(6)
	b.settled()
	if got := c.fetchOne("a", "t").Offset; got != 5 {
		t.Errorf("offset is %d", got)
	}
}

// TestLostWhileStoring: commits and deletions whose sync hangs are answered when the partition goes away.
func TestLostWhileStoring(t *testing.T) {
	b, faults := slowDisk(t, t.TempDir(), quickGroups()...)
	c := b.dial()
	c.findCoordinator("g")
	c.createTopic("t")
	c.commitOne("a", "t", 1)
	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	for _, kind := range []faultfs.Kind{faultfs.Sync, faultfs.SyncAll} {
		faults.Add(faultfs.Rule{Kind: kind, Block: gate, Entered: entered})
	}
	commit := commitRequest("a", "t", 0, 2)
	commit.SetVersion(8)
	c.send(commit)
	<-entered
	other := b.dial()
	remove := kmsg.NewPtrDeleteGroupsRequest()
	remove.Groups = []string{"a"}
	remove.SetVersion(2)
	other.send(remove)
	waitFor(t, func() bool { return b.groups.at("a").flights() == 2 })
	b.ledBy(offsetsTopic, int32(partitionForKey("a", 4)), neighbour, 1)
	if got := c.receive(commit, c.next).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("commit: error %d", got)
	}
	if got := other.receive(remove, other.next).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("deletion: error %d", got)
	}
	close(gate)
}

func (p *stateLog) flights() int {
	p.flightMu.Lock()
	defer p.flightMu.Unlock()
	return len(p.flight)
}

// TestLeadershipFlips: commits and joins go on while leadership comes and goes. Each is answered, and what was acknowledged is there at the end.
func TestLeadershipFlips(t *testing.T) {
	b, c := groupBroker(t, t.TempDir(), "offsets.topic.num.partitions", "1")
	c.createTopic("t")
	var stop atomic.Bool
	var wg sync.WaitGroup
	acked := make([]int64, 3)
	for i := range acked {
		busy := b.dial()
		wg.Go(func() {
			for n := int64(1); !stop.Load(); n++ {
				if busy.commitOne(fmt.Sprint("g", i), "t", n) == 0 {
					acked[i] = n
				}
			}
		})
	}
	joins := b.dial()
	wg.Go(func() {
		for !stop.Load() {
			ask[*kmsg.JoinGroupResponse](joins, 3, joinRequest("members", ""))
		}
	})
	for epoch := int32(1); epoch <= 100; epoch += 2 {
		b.ledBy(offsetsTopic, 0, neighbour, epoch)
		if epoch%3 == 0 {
			b.settled()
		}
		b.ledBy(offsetsTopic, 0, b.nodeID, epoch+1)
		if epoch%5 == 0 {
			b.settled()
			c.commitOne("watch", "t", int64(epoch))
		}
	}
	b.ledBy(offsetsTopic, 0, neighbour, 200) // who waits to join is answered
	stop.Store(true)
	b.settled()
	wg.Wait()
	b.ledBy(offsetsTopic, 0, b.nodeID, 201)
	b.settled()
	for i := range acked {
		if got := c.fetchOne(fmt.Sprint("g", i), "t").Offset; got < acked[i] {
			t.Errorf("group %d has offset %d, acknowledged was %d", i, got, acked[i])
		}
	}
}

// TestOffsetsTopicFromElsewhere: another controller made the topic and told this broker of the one partition that it leads.
func TestOffsetsTopicFromElsewhere(t *testing.T) {
	b := startBroker(t, t.TempDir(), quickGroups()...)
	c := b.dial()
	c.createTopic("t")
	made, err := b.control.CreateTopics(t.Context(), []controller.NewTopic{b.groups.newTopic()}, false)
	if err != nil || made[0].Err != nil {
		t.Fatal(err, made)
	}
	pl := placementOf(&made[0].Topic)
	for n, p := range pl.partitions {
		if n != 1 {
			p.Leader, p.Replicas, p.ISR = neighbour, []int32{neighbour}, []int32{neighbour}
			pl.partitions[n] = p
		}
	}
	place := func(pl placement) {
		b.admin.Lock()
		defer b.admin.Unlock()
		if failed := b.place(t.Context(), []placement{pl}); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	// First only its own partition, which is less than the topic has.
	place(placement{name: pl.name, id: pl.id, partitions: map[int32]controller.Partition{1: pl.partitions[1]}, open: true})
	here, there := keyIn(1, 4), keyIn(3, 4)
	waitFor(t, func() bool { return b.groups.known() })
	b.settled()
	if got := c.commitOne(here, "t", 3); got != 0 {
		t.Errorf("commit: error %d", got)
	}
	if got := c.commitOne(there, "t", 3); got != kerr.NotCoordinator.Code {
		t.Errorf("commit of a group that lives elsewhere: error %d", got)
	}
	if _, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, there); code != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("coordinator that is not known: error %d", code)
	}
	b.seeNeighbour()
	place(pl)
	if node, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, there); node != neighbour || code != 0 {
		t.Errorf("coordinator is %d, error %d", node, code)
	}
	if node, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, here); node != b.nodeID || code != 0 {
		t.Errorf("coordinator is %d, error %d", node, code)
	}
	// The partition of "there" moves here: its replica is opened then.
	moved := pl.partitions[3]
	moved.Leader, moved.Replicas, moved.ISR, moved.LeaderEpoch = b.nodeID, []int32{b.nodeID}, []int32{b.nodeID}, 1
	place(placement{name: pl.name, id: pl.id, partitions: map[int32]controller.Partition{3: moved}, open: true})
	b.settled()
	if got := c.commitOne(there, "t", 4); got != 0 {
		t.Errorf("commit of the group that moved here: error %d", got)
	}
	if got := c.fetchOne(here, "t").Offset; got != 3 {
		t.Errorf("offset is %d", got)
	}
}

// keyIn finds a key that hashes to a partition.
func keyIn(partition, partitions int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key", i); partitionForKey(key, partitions) == partition {
			return key
		}
	}
}

// TestNotController: what is missing is the controller's to make; clients ask again.
func TestNotController(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	b.control.Resign()
	for _, kind := range []int8{coordinatorOfGroup, coordinatorOfTxn} {
		if _, _, code := c.coordinatorOfKey(4, kind, "g"); code != kerr.CoordinatorNotAvailable.Code {
			t.Errorf("coordinator of type %d: error %d", kind, code)
		}
	}
	for _, name := range []string{"t", offsetsTopic} {
		r := kmsg.NewPtrMetadataRequest()
		r.AllowAutoTopicCreation = true
		r.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		if got := ask[*kmsg.MetadataResponse](c, 9, r).Topics[0].ErrorCode; got != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("metadata of %s: error %d", name, got)
		}
	}
}

// TestOffsetsTopicMadeByHand: who made it for somebody else coordinates its groups, though nobody looked for a coordinator here.
func TestOffsetsTopicMadeByHand(t *testing.T) {
	b := startBroker(t, t.TempDir(), quickGroups()...)
	c := b.dial()
	c.createTopic("t")
	r := createTopicRequest(b.groups.newTopic())
	if got := ask[*kmsg.CreateTopicsResponse](c, 5, r).Topics[0].ErrorCode; got != 0 {
		t.Fatalf("create: error %d", got)
	}
	if got := c.commitOne("a", "t", 1); got != 0 {
		t.Errorf("commit: error %d", got)
	}
}

// TestTopicMadeAgainElsewhere: the offsets of the topic that was there before are not those of the new one.
func TestTopicMadeAgainElsewhere(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	place := func(id byte) {
		b.admin.Lock()
		defer b.admin.Unlock()
		led := controller.Partition{Leader: neighbour, Replicas: []int32{neighbour}, ISR: []int32{neighbour}}
		if failed := b.place(t.Context(), []placement{{name: "t", id: [16]byte{id}, partitions: map[int32]controller.Partition{0: led}}}); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	place(1)
	if got := c.commitOne("a", "t", 7); got != 0 {
		t.Fatalf("commit: error %d", got)
	}
	place(2)
	waitFor(t, func() bool { return c.fetchOne("a", "t").Offset == -1 })
}
