package group

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	steps = flag.Int("steps", 150_000, "events of TestRandom, over all seeds")
	seed  = flag.Uint64("seed", 1, "first seed of TestRandom")
)

// TestRandom lets clients of all kinds do anything at any time, with writes that fail and restarts, and checks after every event what must
// always hold. A failure names its seed.
func TestRandom(t *testing.T) {
	const perSeed = 5_000
	assignments, leaders := 0, 0
	for i := range uint64(max(*steps/perSeed, 1)) {
		w := newWorld(*seed + i)
		for n := range perSeed {
			w.event()
			if w.check(); w.failure != "" {
				t.Fatalf("seed %d, event %d: %s\n%s", *seed+i, n, w.failure, strings.Join(w.trace, "\n"))
			}
		}
		if w.drain(); w.failure != "" {
			t.Fatalf("seed %d, at the end: %s\n%s", *seed+i, w.failure, strings.Join(w.trace, "\n"))
		}
		assignments, leaders = assignments+len(w.assigned), leaders+len(w.leader)
	}
	if assignments == 0 || leaders == 0 {
		t.Errorf("%d generations got an assignment and %d a leader: the clients never come together", assignments, leaders)
	}
}

// simClient is a client, which may be wrong about itself.
type simClient struct {
	instance string
	version  int16
	id       string
	gen      int32
	leads    []string // the members, when it is to assign
	waits    int      // waiter of its parked request, 0 none
}

// world is a group with its clients and its log.
type world struct {
	r       *rand.Rand
	conf    Config
	g       *Group
	now     Instant
	clients []*simClient
	waiting map[int]func(Reply) // by waiter
	next    int

	open    []Write
	log     []logged
	durable map[Partition]int64
	places  map[Partition]int              // of durable ones, in the log
	pending map[int64]map[Partition]placed // of open transactions, by producer
	meta    []byte                         // the newest durable group record
	flying  []map[Partition]int64          // what each open write sets; -1 removes

	// Of the present life of the group, by generation.
	assigned map[int32]string
	leader   map[int32]string
	newest   int32 // generation

	failure string
	trace   []string
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), waiting: map[int]func(Reply){}, durable: map[Partition]int64{}, places: map[Partition]int{}, pending: map[int64]map[Partition]placed{}}
	for id := range int64(txnProducers) {
		w.pending[id] = map[Partition]placed{}
	}
	w.conf = Config{MinSession: time.Second, MaxSession: time.Hour, MaxSize: 3 + w.r.IntN(6), Retention: time.Hour, InitialDelay: time.Duration(w.r.IntN(2)) * time.Second}
	w.now.Wall = 1e9
	for i := range 2 + w.r.IntN(7) {
		c := &simClient{version: int16(w.r.IntN(10)), gen: -1}
		if c.version >= 5 && w.r.IntN(2) == 0 {
			c.instance = fmt.Sprint("i", i/2) // some share one
		}
		w.clients = append(w.clients, c)
	}
	w.fresh()
	return w
}

func (w *world) fresh() {
	w.g = New("g", &w.conf)
	w.assigned, w.leader, w.newest = map[int32]string{}, map[int32]string{}, 0
}

func (w *world) fail(format string, a ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, a...)
	}
}

func (w *world) note(format string, a ...any) {
	if len(w.trace) > 60 {
		w.trace = w.trace[1:]
	}
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Timer)+fmt.Sprintf(format, a...))
}

// event does one thing.
func (w *world) event() {
	c := w.clients[w.r.IntN(len(w.clients))]
	switch n := w.r.IntN(100); {
	case n < 45:
		w.act(c)
	case n < 60:
		w.pass(time.Duration(w.r.IntN(2000)) * time.Millisecond)
	case n < 85:
		w.settle()
	case n < 90 && c.waits != 0:
		w.note("connection of %s ends", c.id)
		delete(w.waiting, c.waits)
		waiter := c.waits
		c.waits = 0
		w.apply(w.g.Cancel(w.now, waiter))
	case n < 93:
		*c = simClient{instance: c.instance, version: c.version, gen: -1, waits: w.forget(c)} // the process is killed
	case n < 97:
		w.simple()
	case n < 98 && w.r.IntN(10) == 0:
		w.restart()
	}
}

// forget lets a killed client's request be answered into the void.
func (w *world) forget(c *simClient) int {
	if c.waits != 0 {
		w.waiting[c.waits] = func(Reply) {}
	}
	return 0
}

func (w *world) waiter(c *simClient, answer func(Reply)) int {
	w.next++
	id := w.next
	if c != nil {
		c.waits = id
	}
	w.waiting[id] = func(r Reply) {
		if c != nil && c.waits == id {
			c.waits = 0
		}
		answer(r)
	}
	return id
}

// act lets a client do what clients do, mostly.
func (w *world) act(c *simClient) {
	if c.waits != 0 {
		return
	}
	switch n := w.r.IntN(10); {
	case c.gen < 0 || n == 0:
		w.join(c)
	case c.leads != nil || n == 1:
		w.sync(c)
	case n < 4:
		w.commit(c)
	case n == 4 && w.r.IntN(3) == 0:
		w.leave(c)
	default:
		w.heartbeat(c)
	}
}

func (w *world) instanceOf(c *simClient) *string {
	if c.instance == "" {
		return nil
	}
	return &c.instance
}

func (w *world) join(c *simClient) {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.MemberID, r.InstanceID, r.ProtocolType = c.version, c.id, w.instanceOf(c), "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = int32(1000+w.r.IntN(9000)), int32(1000+w.r.IntN(9000))
	for _, name := range [][]string{{"a"}, {"a", "b"}, {"b", "a"}}[w.r.IntN(3)] {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte{byte(w.r.IntN(2))}})
	}
	c.leads = nil
	w.note("%s%s joins v%d", c.id, c.instance, c.version)
	id := w.waiter(c, func(reply Reply) { w.joined(c, reply.Response.(*kmsg.JoinGroupResponse)) })
	w.apply(w.g.Join(w.now, id, Caller{ClientID: "c", Unique: fmt.Sprint(id)}, r))
}

func (w *world) joined(c *simClient, r *kmsg.JoinGroupResponse) {
	w.note("  join answered: %d id=%s generation=%d members=%d", r.ErrorCode, r.MemberID, r.Generation, len(r.Members))
	c.gen = -1
	switch r.ErrorCode {
	case kerr.MemberIDRequired.Code:
		c.id = r.MemberID
		return
	case kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code, kerr.GroupMaxSizeReached.Code:
		c.id = ""
		return
	case 0:
	default:
		return
	}
	c.id, c.gen = r.MemberID, r.Generation
	if r.Generation < w.newest {
		w.fail("generation %d after %d", r.Generation, w.newest)
	}
	w.newest = r.Generation
	if len(r.Members) == 0 {
		return
	}
	if r.LeaderID != r.MemberID {
		w.fail("members were given to %s, the leader is %s", r.MemberID, r.LeaderID)
	}
	if old := w.leader[r.Generation]; old != "" && old != r.LeaderID && c.instance == "" {
		w.fail("generation %d has the leaders %s and %s", r.Generation, old, r.LeaderID)
	}
	w.leader[r.Generation] = r.LeaderID
	if !r.SkipAssignment {
		for _, m := range r.Members {
			c.leads = append(c.leads, m.MemberID)
		}
	}
}

func (w *world) sync(c *simClient) {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.MemberID, r.InstanceID, r.Generation = 4, c.id, w.instanceOf(c), c.gen
	for _, id := range c.leads {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(fmt.Sprint(w.next))})
	}
	c.leads = nil
	gen := c.gen
	w.note("%s syncs generation %d", c.id, gen)
	w.apply(w.g.Sync(w.now, w.waiter(c, func(reply Reply) { w.synced(c, gen, reply.Response.(*kmsg.SyncGroupResponse)) }), r))
}

// synced checks that all members of a generation have parts of one assignment: so no partition has two owners.
func (w *world) synced(c *simClient, gen int32, r *kmsg.SyncGroupResponse) {
	w.note("  sync answered: %d %q", r.ErrorCode, r.MemberAssignment)
	switch r.ErrorCode {
	case 0:
		a := string(r.MemberAssignment)
		if old, ok := w.assigned[gen]; ok && a != "" && old != a {
			w.fail("generation %d has the assignments %s and %s", gen, old, a)
		}
		if a != "" {
			w.assigned[gen] = a
		}
		if gen != w.g.generation || w.g.state != Stable {
			w.fail("sync of generation %d was answered in state %v of %d", gen, w.g.state, w.g.generation)
		}
	case kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code:
		c.id, c.gen = "", -1
	default:
		c.gen = -1
	}
}

func (w *world) heartbeat(c *simClient) {
	r := kmsg.NewPtrHeartbeatRequest()
	r.MemberID, r.InstanceID, r.Generation = c.id, w.instanceOf(c), c.gen
	w.apply(w.g.Heartbeat(w.now, w.waiter(c, func(reply Reply) {
		switch reply.Response.(*kmsg.HeartbeatResponse).ErrorCode {
		case 0:
			if w.g.members[c.id] == nil || c.gen != w.g.generation {
				w.fail("heartbeat of %s in generation %d is good, the group is at %d", c.id, c.gen, w.g.generation)
			}
		case kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code:
			c.id, c.gen = "", -1
		default:
			c.gen = -1
		}
	}), r))
}

func (w *world) leave(c *simClient) {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version = c.version % 6
	r.MemberID = c.id
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID = c.id, w.instanceOf(c)
	r.Members = append(r.Members, m)
	w.note("%s leaves", c.id)
	w.apply(w.g.Leave(w.now, w.waiter(c, func(Reply) { c.id, c.gen = "", -1 }), r))
}

func (w *world) commit(c *simClient) {
	p := Partition{"t", int32(w.r.IntN(3))}
	value := int64(w.next)
	o := PartitionOffset{p, Offset{Offset: value, LeaderEpoch: -1, Committed: w.now.Wall, Expires: -1}}
	may := w.g.members[c.id] != nil && w.g.generation == c.gen && w.g.state != CompletingRebalance
	e := w.g.Commit(w.now, w.waiter(nil, func(reply Reply) {
		if reply.Err == nil && !may {
			w.fail("commit of %s in generation %d is good", c.id, c.gen)
		}
	}), &Commit{MemberID: c.id, InstanceID: w.instanceOf(c), Generation: c.gen, Offsets: []PartitionOffset{o}})
	w.applyOffsets(e, map[Partition]int64{p: value})
}

// simple does what clients without membership and admins do.
func (w *world) simple() {
	p := Partition{"t", int32(w.r.IntN(3))}
	switch w.r.IntN(10) {
	case 6:
		w.removeAny()
	case 7, 8:
		w.commitTxn(w.clients[w.r.IntN(len(w.clients))])
	case 9:
		w.endTxn()
	case 0, 1:
		o := PartitionOffset{p, Offset{Offset: int64(w.next), LeaderEpoch: -1, Committed: w.now.Wall, Expires: -1}}
		e := w.g.Commit(w.now, w.waiter(nil, func(Reply) {}), &Commit{Generation: -1, Offsets: []PartitionOffset{o}})
		w.applyOffsets(e, map[Partition]int64{p: o.Offset.Offset})
	case 2:
		w.applyOffsets(w.g.DeleteOffsets(w.now, w.waiter(nil, func(Reply) {}), []Partition{p}), map[Partition]int64{p: -1})
	case 3:
		w.applyOffsets(w.g.Delete(w.now, w.waiter(nil, func(Reply) {})), map[Partition]int64{{"t", 0}: -1, {"t", 1}: -1, {"t", 2}: -1})
	case 5:
		w.expire()
	case 4:
		w.applyOffsets(w.g.RemoveTopic(w.now, "t"), map[Partition]int64{{"t", 0}: -1, {"t", 1}: -1, {"t", 2}: -1})
	}
}

// removeAny is an admin that removes a member, whatever it is doing.
func (w *world) removeAny() {
	if len(w.g.order) == 0 {
		return
	}
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version = 5
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = w.g.order[w.r.IntN(len(w.g.order))].id
	r.Members = append(r.Members, m)
	w.note("%s is removed", m.MemberID)
	w.apply(w.g.Leave(w.now, w.waiter(nil, func(Reply) {}), r))
}

// expire lets a commit's own retention end, now and then.
func (w *world) expire() {
	later := w.now
	later.Wall += w.r.Int64N(2 * w.conf.Retention.Milliseconds())
	e := w.g.Expire(later)
	gone := map[Partition]int64{}
	for _, write := range e.Writes {
		for _, r := range write.Records {
			if k, err := ParseKey(r.Key); err == nil && k.Kind == OffsetKind {
				gone[k.Partition] = -1
			}
		}
	}
	w.applyOffsets(e, gone)
}

func (w *world) apply(e Effects) { w.applyOffsets(e, nil) }

// applyOffsets carries effects out. Offsets are what the one write of a commit or deletion sets.
func (w *world) applyOffsets(e Effects, offsets map[Partition]int64) {
	for _, r := range e.Replies {
		answer := w.waiting[r.To.(int)]
		if answer == nil {
			w.fail("%v is answered twice, or was cancelled", r.To)
			return
		}
		delete(w.waiting, r.To.(int))
		answer(r)
	}
	for _, write := range e.Writes {
		w.open = append(w.open, write)
		w.flying = append(w.flying, offsets)
	}
	if w.g.Next() <= w.now.Timer {
		w.apply(w.g.Tick(w.now))
	}
	if !w.g.Exists() {
		w.fresh()
	}
}

// settle makes the oldest write durable, or lets it fail.
func (w *world) settle() {
	if len(w.open) == 0 {
		return
	}
	write, offsets := w.open[0], w.flying[0]
	w.open, w.flying = w.open[1:], w.flying[1:]
	var err *kerr.Error
	if w.r.IntN(20) == 0 {
		err = kerr.KafkaStorageError
	} else {
		w.persist(write, offsets)
	}
	w.note("write %d stored: %v", write.Seq, err)
	w.apply(w.g.Stored(w.now, write.Seq, err))
}

func (w *world) persist(write Write, offsets map[Partition]int64) {
	place := len(w.log)
	for _, r := range write.Records {
		w.log = append(w.log, logged{Record: r, producer: write.Producer})
	}
	w.meta = newestGroup(w.meta, write)
	for p, n := range offsets {
		switch {
		case n < 0:
			delete(w.durable, p)
			for _, pending := range w.pending {
				delete(pending, p)
			}
		case write.Producer != nil:
			w.pending[write.Producer.ID][p] = placed{n, place}
		default:
			w.durable[p], w.places[p] = n, place
		}
	}
}

// placed is an offset with its place in the log.
type placed struct {
	offset int64
	place  int
}

// txnProducers are as many as commit offsets in transactions.
const txnProducers = 2

// commitTxn commits an offset in a producer's transaction, named or not.
func (w *world) commitTxn(c *simClient) {
	p := Partition{"t", int32(w.r.IntN(3))}
	o := PartitionOffset{p, Offset{Offset: int64(w.next), LeaderEpoch: -1, Committed: w.now.Wall, Expires: -1}}
	commit := &TxnCommit{Commit: Commit{Generation: -1, Offsets: []PartitionOffset{o}}, Producer: Producer{ID: w.r.Int64N(txnProducers)}}
	if w.r.IntN(2) == 0 {
		commit.MemberID, commit.InstanceID, commit.Generation = c.id, w.instanceOf(c), c.gen
	}
	e := w.g.CommitTxn(w.now, w.waiter(nil, func(Reply) {}), commit)
	w.applyOffsets(e, map[Partition]int64{p: o.Offset.Offset})
}

// endTxn puts a marker into the log, behind all that is on its way.
func (w *world) endTxn() {
	for len(w.open) > 0 {
		w.settle()
	}
	id, commit := w.r.Int64N(txnProducers), w.r.IntN(3) > 0
	w.log = append(w.log, logged{producer: &Producer{ID: id}, marker: true, commit: commit})
	for p, o := range w.pending[id] {
		if _, ok := w.durable[p]; commit && (!ok || o.place > w.places[p]) {
			w.durable[p], w.places[p] = o.offset, o.place
		}
	}
	clear(w.pending[id])
	w.note("transaction of %d ends: %v", id, commit)
	w.apply(w.g.EndTxn(w.now, id, commit))
}

// newestGroup is the group's record after a write, nil after a tombstone.
func newestGroup(before []byte, write Write) []byte {
	for _, r := range write.Records {
		if k, err := ParseKey(r.Key); err == nil && k.Kind == GroupKind {
			before = r.Value
		}
	}
	return before
}

// restart keeps what is durable; of the open writes a part may be.
func (w *world) restart() {
	for w.r.IntN(2) == 0 && len(w.open) > 0 {
		w.persist(w.open[0], w.flying[0])
		w.open, w.flying = w.open[1:], w.flying[1:]
	}
	w.open, w.flying = nil, nil
	clear(w.waiting)
	for _, c := range w.clients {
		c.waits = 0
	}
	w.g = New("g", &w.conf)
	for _, r := range w.log {
		if r.marker {
			w.g.EndTxn(w.now, r.producer.ID, r.commit)
			continue
		}
		k, err := ParseKey(r.Key)
		switch {
		case err == nil && r.producer != nil:
			err = w.g.ReplayTxn(r.producer.ID, k, r.Value)
		case err == nil:
			err = w.g.Replay(k, r.Value)
		}
		if err != nil {
			w.fail("replay: %v", err)
		}
	}
	w.apply(w.g.Loaded(w.now))
	w.newest = w.g.generation
	for gen := range w.leader {
		if gen > w.newest {
			delete(w.leader, gen)
		}
	}
	if w.g.state == Dead {
		w.fresh()
	}
	w.note("restart: %v generation %d", w.g.state, w.g.generation)
}

func (w *world) pass(d time.Duration) {
	w.now.Timer += d
	w.now.Wall += d.Milliseconds()
	if w.g.Next() <= w.now.Timer {
		w.note("tick")
		w.apply(w.g.Tick(w.now))
	}
}

// drain lets everybody be silent: all requests are answered and the group becomes empty.
func (w *world) drain() {
	for range 100 {
		w.pass(time.Minute)
		for len(w.open) > 0 {
			w.settle()
		}
	}
	if len(w.waiting) > 0 {
		w.fail("%d requests were never answered", len(w.waiting))
	}
	if len(w.g.members) > 0 || w.g.state != Empty && w.g.state != Dead {
		w.fail("state is %v with %d members", w.g.state, len(w.g.members))
	}
	if w.g.Next() != math.MaxInt64 {
		w.fail("a timer runs in an empty group")
	}
}
