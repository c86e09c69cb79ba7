package broker

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/txn"
	"gregor/log/batch"
)

// txnPartition is one partition of __transaction_state with the ids in it.
type txnPartition struct {
	c *txnCoordinator
	stateLog

	mu    sync.Mutex
	slots map[string]*txnSlot
}

// txnSlot is a transactional id in its place.
type txnSlot struct {
	id string
	p  *txnPartition

	mu      sync.Mutex
	t       *txn.Txn
	dropped bool // the id does not exist any more, the slot is not in the map

	timer slotTimer
}

// clock implements timed.
func (s *txnSlot) clock() *slotTimer { return &s.timer }

// tick implements timed.
func (s *txnSlot) tick() {
	s.event(func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Tick(at) })
}

// stored implements writer.
func (s *txnSlot) stored(seq uint64, err *kerr.Error) {
	s.event(func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Stored(at, seq, err) })
}

// slot finds or makes the slot of an id.
func (p *txnPartition) slot(id string) *txnSlot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[id]
	if s == nil {
		s = &txnSlot{id: id, p: p, t: txn.New(id, &p.c.conf)}
		p.slots[id] = s
	}
	return s
}

// list are the slots of all ids.
func (p *txnPartition) list() []*txnSlot {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*txnSlot, 0, len(p.slots))
	for _, s := range p.slots {
		all = append(all, s)
	}
	return all
}

// event gives an id, which need not exist, one event.
func (p *txnPartition) event(id string, f func(*txn.Txn, txn.Instant) txn.Effects) {
	for !p.slot(id).event(f) {
	}
}

// read looks at an id; ok is false when there is none. The id is locked meanwhile.
func (p *txnPartition) read(id string, f func(*txn.Txn)) (ok bool) {
	p.mu.Lock()
	s := p.slots[id]
	p.mu.Unlock()
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped || !s.t.Exists() {
		return false
	}
	f(s.t)
	return true
}

// event gives the id one event and does what it asks for. False says that the id is not in this slot any more.
func (s *txnSlot) event(f func(*txn.Txn, txn.Instant) txn.Effects) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return false
	}
	s.carryOut(f(s.t, s.p.c.instant()))
	switch {
	case s.p.gone():
		s.leave()
	case !s.t.Exists():
		s.drop()
	default:
		s.p.c.schedule(s, s.t.Next())
	}
	return true
}

// leave drops the id since its partition is gone, and tells those who wait to look for the coordinator again. The slot is locked.
func (s *txnSlot) leave() {
	if !s.dropped {
		s.deliver(s.t.Unload(s.p.c.instant()))
		s.drop()
	}
}

// unload implements statePartition.
func (p *txnPartition) unload() {
	for _, s := range p.list() {
		s.mu.Lock()
		s.leave()
		s.mu.Unlock()
	}
}

// drop takes the slot out. It is locked.
func (s *txnSlot) drop() {
	s.dropped = true
	s.p.mu.Lock()
	delete(s.p.slots, s.id)
	s.p.mu.Unlock()
	s.p.c.unschedule(s)
}

// carryOut answers, appends, and writes markers. The slot is locked.
func (s *txnSlot) carryOut(e txn.Effects) {
	s.deliver(e)
	for i := range e.Writes {
		s.append(&e.Writes[i])
	}
	for i := range e.Markers {
		s.mark(&e.Markers[i])
	}
}

func (s *txnSlot) deliver(e txn.Effects) {
	for _, r := range e.Replies {
		r.To.(txnReceiver).receiveTxn(r)
	}
}

// txnReceiver is what a txn.Waiter is in this package. receiveTxn must not block and is called once.
type txnReceiver interface {
	receiveTxn(txn.Reply)
}

// append writes what the id asks for. The slot is locked; the result comes when it is durable, or failed, from the coordinator's goroutine.
func (s *txnSlot) append(w *txn.Write) {
	f := flying{owner: s, seq: w.Seq}
	b, h, err := build(s.p.broker, batch.Options{LeaderEpoch: -1}, w.Records)
	if err == nil {
		f.last, err = s.appendBatch(b, h)
	}
	if f.err = err; err != nil && s.p.broker.txnAlarm.due() {
		s.p.broker.logger.Warn("transaction could not be stored", "transactional.id", s.id, "partition", s.p.part.num, "error", err)
	}
	s.p.follow(f)
}

func (s *txnSlot) appendBatch(b []byte, h batch.Header) (last int64, err error) {
	epoch, err := s.p.ledUnder()
	if err != nil {
		return 0, err
	}
	appended, err := s.p.part.log.Append(b, h, epoch)
	return appended.LastOffset, err
}
