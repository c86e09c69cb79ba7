package group

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// newMemberTimeout is how long a member that never had an answer may wait for one: nobody knows if it is still there.
const newMemberTimeout = 5 * time.Minute

// Group is one group. It is for one goroutine at a time.
type Group struct {
	id   string
	conf *Config

	state    State
	previous State // before state
	since    int64 // when state began, in milliseconds since 1970; -1: an old record did not say

	generation   int32
	protocolType string // "" in a simple group, which only commits
	protocol     string // chosen by the members; "" without members
	leader       string // member id; "" without members

	members map[string]*member
	order   []*member // in the order in which they came
	static  map[string]*member
	pending map[string]time.Duration // ids that were given out and not used yet, and when they are forgotten
	joining int                      // members whose JoinGroup waits

	// topics are what the members subscribe to; nil when that is not known.
	topics map[string]struct{}

	// newcomers says that a member came while the initial delay ran, so that it is extended.
	newcomers bool
	join      joinTimer
	syncBy    time.Duration // when members that did not sync are removed; never when none is awaited

	// due is not later than any timer.
	due time.Duration

	offsets map[string]map[int32]*entry
	stored  int // offsets that are durable
	txns    map[int64]map[Partition][]txnOffset

	// meta is the value of the newest group record that was appended; nil when there is none.
	meta     []byte
	metaKept []byte // the newest that is durable
	inFlight []write
	seq      uint64
	deleting bool // tombstones are on their way
}

// joinTimer ends the wait for members.
type joinTimer struct {
	at        time.Duration // never when it does not run
	initial   bool          // it is the initial delay, which newcomers extend
	delay     time.Duration
	remaining time.Duration // that an extension may still take
}

// write is one that is not known to be durable yet.
type write struct {
	seq  uint64
	done func(s *step, err *kerr.Error)
}

// New makes a group that does not exist yet.
func New(id string, conf *Config) *Group {
	g := &Group{id: id, conf: conf}
	g.reset()
	return g
}

// reset makes g a group that does not exist.
func (g *Group) reset() {
	*g = Group{
		id: g.id, conf: g.conf, seq: g.seq, inFlight: g.inFlight,
		members: make(map[string]*member),
		static:  make(map[string]*member),
		pending: make(map[string]time.Duration),
		offsets: make(map[string]map[int32]*entry),
		topics:  make(map[string]struct{}),
		join:    joinTimer{at: never},
		syncBy:  never,
		due:     never,
		since:   -1,
	}
}

// ID is the group's id.
func (g *Group) ID() string { return g.id }

// State is the group's state.
func (g *Group) State() State { return g.state }

// ProtocolType is "consumer" for consumers, "" for a simple group.
func (g *Group) ProtocolType() string { return g.protocolType }

// Exists is false when the group may be forgotten.
func (g *Group) Exists() bool { return g.state != Dead || len(g.inFlight) > 0 }

// Next is when Tick must be called at the latest; math.MaxInt64 is never.
func (g *Group) Next() time.Duration { return g.due }

// wake sees to it that Tick comes at a time.
func (g *Group) wake(at time.Duration) { g.due = min(g.due, at) }

// enter changes the state.
func (g *Group) enter(s *step, to State) {
	g.previous, g.state, g.since = g.state, to, s.Wall
}

// create makes the group exist.
func (g *Group) create(s *step) {
	if g.state == Dead {
		g.enter(s, Empty)
	}
}

// closing is the error for a group that is being deleted.
func (g *Group) closing() *kerr.Error {
	if g.deleting {
		return kerr.CoordinatorNotAvailable
	}
	return nil
}

// write asks for records to be appended; done is called when they are durable or failed.
func (g *Group) write(s *step, records []Record, done func(*step, *kerr.Error)) uint64 {
	g.seq++
	s.Writes = append(s.Writes, Write{Seq: g.seq, Records: records})
	g.inFlight = append(g.inFlight, write{g.seq, done})
	return g.seq
}

// Stored says that a write is durable, or with an error that it is not. Writes are reported in their order.
func (g *Group) Stored(at Instant, seq uint64, err *kerr.Error) Effects {
	s := step{Instant: at}
	for len(g.inFlight) > 0 && g.inFlight[0].seq <= seq {
		w := g.inFlight[0]
		g.inFlight = g.inFlight[1:]
		if s.seq = w.seq; w.done != nil {
			w.done(&s, err)
		}
	}
	return s.Effects
}

// Cancel says that nobody waits for the answer to a JoinGroup or SyncGroup any more, because the connection ended. Other answers come soon
// and need not be cancelled.
func (g *Group) Cancel(at Instant, w Waiter) Effects {
	s := step{Instant: at}
	for _, m := range g.order {
		switch w {
		case m.joinWaiter:
			g.abandonJoin(&s, m)
			return s.Effects
		case m.syncWaiter:
			m.syncWaiter = nil
			g.touch(&s, m)
			return s.Effects
		}
	}
	return s.Effects
}

// abandonJoin ends the wait of a member whose connection ended. A client that does not know its member id will come as another member, so
// this one goes; the others have their session timeout to come back.
func (g *Group) abandonJoin(s *step, m *member) {
	m.joinWaiter = nil
	g.joining--
	if m.fresh && !m.knowsID && m.instance == "" {
		g.expel(s, m)
		return
	}
	m.fresh = false
	g.touch(s, m)
}

// touch starts the member's session timeout.
func (g *Group) touch(s *step, m *member) {
	m.deadline = s.Timer + m.session
	g.wake(m.deadline)
}

// remove takes a member or a pending id out. Requests of the member that still wait are answered.
func (g *Group) remove(s *step, id string) {
	delete(g.pending, id)
	m := g.members[id]
	if m == nil {
		return
	}
	g.answerJoin(s, m, joinFailed("", kerr.UnknownMemberID))
	m.answerSync(s, syncFailed(kerr.UnknownMemberID))
	delete(g.members, id)
	g.order = slices.DeleteFunc(g.order, func(o *member) bool { return o == m })
	if m.instance != "" && g.static[m.instance] == m {
		delete(g.static, m.instance)
	}
	if g.leader == id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
}

// expel removes a member that left or was lost, and goes on without it.
func (g *Group) expel(s *step, m *member) {
	g.remove(s, m.id)
	g.shrunk(s)
}

// shrunk goes on after members or pending ids were removed.
func (g *Group) shrunk(s *step) {
	switch g.state {
	case Stable, CompletingRebalance:
		g.prepareRebalance(s)
	case PreparingRebalance:
		g.joinIfComplete(s)
	}
}

// rebalanceTimeout is the longest of the members'.
func (g *Group) rebalanceTimeout() time.Duration {
	longest := time.Duration(0)
	for _, m := range g.order {
		longest = max(longest, m.rebalance)
	}
	return longest
}
