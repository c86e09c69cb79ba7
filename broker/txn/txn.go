package txn

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// maxEpoch is the newest epoch that a producer is given; the one after it is only for markers.
const maxEpoch = math.MaxInt16 - 1

// LastEpochs is the first epoch from which on an Init or End may need a fresh producer id, see Txn.NeedsID.
const LastEpochs = maxEpoch - 8

// endless is the timeout of a transaction that only its owner ends (KIP-939).
const endless = math.MaxInt32

// meta is all that is stored of an id. Lists are never changed in place.
type meta struct {
	producer   Producer
	lastEpoch  int16 // epoch before a bump that its client may not have heard of, -1 none; not stored, see unheard
	previousID int64 // producer id that the client had before the transition that led here
	nextID     int64 // producer id after this transaction, -1 the same
	nextEpoch  int16 // with nextID: the producer that the client has while the transaction is kept, -1 not kept (KIP-939), see keep
	timeout    int32 // milliseconds
	state      State
	partitions []Partition // sorted
	started    int64       // of the transaction, milliseconds since 1970, -1 none
	updated    int64       // milliseconds since 1970
	client     int16       // transaction version of the client that the transaction is from
}

// become is a copy for the next transition.
func (m *meta) become(state State, at Instant) meta {
	n := *m
	n.state, n.updated, n.previousID = state, at.Wall, m.holder().ID
	return n
}

func (m *meta) exhausted() bool { return m.holder().Epoch >= maxEpoch }

// Txn is one transactional id. It is for one goroutine at a time.
type Txn struct {
	id   string
	conf *Config

	meta meta
	// next is being stored; nil when nothing is. It takes effect when it is durable.
	next *transition
	seq  uint64

	parked []parked

	// marking are the partitions whose marker is not known to be durable, in a prepared state.
	marking []Partition
	asked   []Partition // those of marking that were asked for in the present round
	round   uint64
	retryAt time.Duration // when those that failed are asked for again

	deadline time.Duration // of the transaction; never when there is none
	expiry   time.Duration // of the id; never while it is in use

	due time.Duration // not later than any of the above
}

// transition is a write on its way.
type transition struct {
	seq    uint64
	to     meta
	gone   bool // it is the tombstone
	stored func(s *step, err *kerr.Error)
}

// parked is a request that waits for a transition to end.
type parked struct {
	to    Waiter
	try   func(s *step) *kerr.Error
	until time.Duration
}

// New makes an id that does not exist yet.
func New(id string, conf *Config) *Txn {
	t := &Txn{id: id, conf: conf}
	t.reset()
	return t
}

func (t *Txn) reset() {
	t.meta = meta{producer: none(), lastEpoch: -1, previousID: -1, nextID: -1, nextEpoch: -1, state: Dead, started: -1}
	t.marking, t.asked = nil, nil
	t.retryAt, t.deadline, t.expiry, t.due = never, never, never, never
}

// ID is the transactional id.
func (t *Txn) ID() string { return t.id }

// State is the state as far as it is durable.
func (t *Txn) State() State { return t.meta.state }

// Exists is false when the Txn may be forgotten.
func (t *Txn) Exists() bool { return t.meta.state != Dead || t.next != nil || len(t.parked) > 0 }

// Next is when Tick must be called at the latest; math.MaxInt64 is never.
func (t *Txn) Next() time.Duration { return t.due }

// busy reports if a transition is under way. It ends before anything is checked: the client may know its result already, a new producer id even.
func (t *Txn) busy() bool { return t.next != nil || t.meta.state.prepared() }

// wake sees to it that Tick comes at a time.
func (t *Txn) wake(at time.Duration) { t.due = min(t.due, at) }

// attempt tries a request. One that meets a transition is parked, and tried again when that ended. try answers itself when it returns nil.
func (t *Txn) attempt(at Instant, w Waiter, try func(s *step) *kerr.Error) Effects {
	s := step{Instant: at}
	switch err := try(&s); {
	case err == kerr.ConcurrentTransactions && t.conf.Patience > 0:
		p := parked{w, try, at.Timer + t.conf.Patience}
		t.parked = append(t.parked, p)
		t.wake(p.until)
	case err != nil:
		s.refuse(w, err)
	}
	return s.Effects
}

// unpark tries again what waits.
func (t *Txn) unpark(s *step) {
	waiting := t.parked
	t.parked = nil
	for _, p := range waiting {
		switch err := p.try(s); {
		case err == kerr.ConcurrentTransactions:
			t.parked = append(t.parked, p)
		case err != nil:
			s.refuse(p.to, err)
		}
	}
}

// store asks for a transition to be written.
func (t *Txn) store(s *step, to meta, stored func(*step, *kerr.Error)) {
	t.seq++
	t.next = &transition{seq: t.seq, to: to, stored: stored}
	s.Writes = append(s.Writes, Write{Seq: t.seq, Records: []Record{{keyOf(t.id), valueOf(&to)}}})
}

// Stored says that a write is durable, or with an error that it is not. Writes are reported in their order.
func (t *Txn) Stored(at Instant, seq uint64, err *kerr.Error) Effects {
	s := step{Instant: at}
	n := t.next
	if n == nil || n.seq != seq {
		return s.Effects // a completion, which nobody waits for
	}
	t.next = nil
	switch {
	case err != nil:
	case n.gone:
		t.reset()
	default:
		t.enter(&s, n.to)
	}
	n.stored(&s, err)
	t.unpark(&s)
	return s.Effects
}

// enter makes a transition take effect.
func (t *Txn) enter(s *step, to meta) {
	t.meta = to
	t.deadline, t.expiry = never, never
	switch {
	case to.state == Ongoing && to.timeout != endless:
		left := to.started + int64(to.timeout) - s.Wall // the clock may have been set meanwhile
		t.deadline = roundUp(s.Timer+time.Duration(min(max(left, 0), int64(to.timeout)))*time.Millisecond, t.conf.AbortEvery)
		t.wake(t.deadline)
	case to.state == Empty || to.state == CompleteCommit || to.state == CompleteAbort:
		left := to.updated + t.conf.ExpireAfter.Milliseconds() - s.Wall
		t.expiry = roundUp(s.Timer+time.Duration(min(max(left, 0), t.conf.ExpireAfter.Milliseconds()))*time.Millisecond, t.conf.ExpireEvery)
		t.wake(t.expiry)
	}
}

// roundUp is the next multiple of every after at: what is due is looked for at intervals.
func roundUp(at, every time.Duration) time.Duration {
	if every <= 0 {
		return at
	}
	return (at/every + 1) * every
}

// storeError is what clients are told of a write that failed, so that they look for the coordinator again and retry.
func storeError(err *kerr.Error) *kerr.Error {
	switch err {
	case nil:
		return nil
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		return kerr.UnknownServerError
	}
	return err
}

// Unload answers all that waits: the id is to be looked for elsewhere.
func (t *Txn) Unload(at Instant) Effects {
	s := step{Instant: at}
	if n := t.next; n != nil {
		t.next = nil
		n.stored(&s, kerr.NotCoordinator)
	}
	for _, p := range t.parked {
		s.refuse(p.to, kerr.NotCoordinator)
	}
	t.parked = nil
	t.reset()
	return Effects{Replies: s.Replies}
}

// Tick does what is due.
func (t *Txn) Tick(at Instant) Effects {
	s := step{Instant: at}
	if at.Timer >= t.deadline && t.next == nil {
		t.deadline = never
		t.fence(&s, true, func(s *step, err *kerr.Error) {
			if err != nil { // another look at the next interval
				t.deadline = roundUp(s.Timer, max(t.conf.AbortEvery, time.Millisecond))
				t.wake(t.deadline)
			}
		})
	}
	if at.Timer >= t.expiry && t.next == nil {
		t.expire(&s)
	}
	if at.Timer >= t.retryAt {
		t.retryAt = never
		t.askMarkers(&s)
	}
	t.parked = slices.DeleteFunc(t.parked, func(p parked) bool {
		if at.Timer < p.until {
			return false
		}
		s.refuse(p.to, kerr.ConcurrentTransactions)
		return true
	})
	t.reschedule(&s)
	return s.Effects
}

// reschedule finds the next time that something is due.
func (t *Txn) reschedule(s *step) {
	t.due = min(t.deadline, t.expiry, t.retryAt)
	if t.next != nil && t.due <= s.Timer {
		t.due = s.Timer + max(t.conf.Patience, time.Millisecond) // it waits for a write
	}
	for _, p := range t.parked {
		t.wake(p.until)
	}
}

// expire removes the id with a tombstone.
func (t *Txn) expire(s *step) {
	t.expiry = never
	t.seq++
	t.next = &transition{seq: t.seq, gone: true, stored: func(s *step, err *kerr.Error) {
		if err != nil {
			t.expiry = roundUp(s.Timer, max(t.conf.ExpireEvery, time.Millisecond))
			t.wake(t.expiry)
		}
	}}
	s.Writes = append(s.Writes, Write{Seq: t.seq, Records: []Record{{Key: keyOf(t.id)}}})
}
