package broker

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/group"
)

// offsetsPartition is one partition of __consumer_offsets with the groups in it.
type offsetsPartition struct {
	c *coordinator
	stateLog
	// foreign says that the log has records that are not ours to rewrite.
	foreign atomic.Bool
	// grown is how many bytes were appended since the log was last compacted.
	grown      atomic.Int64
	compactAt  atomic.Int64 // grown that makes it worth while
	compacting atomic.Bool

	mu     sync.Mutex
	groups map[string]*groupSlot

	openMu sync.Mutex // leaf
	open   txnGroups
}

// groupSlot is a group in its place.
type groupSlot struct {
	id string
	p  *offsetsPartition

	mu      sync.Mutex
	g       *group.Group
	dropped bool // the group does not exist any more, the slot is not in the map

	timer slotTimer
}

// clock implements timed.
func (s *groupSlot) clock() *slotTimer { return &s.timer }

// tick implements timed.
func (s *groupSlot) tick() {
	s.event(func(g *group.Group, at group.Instant) group.Effects { return g.Tick(at) })
}

// stored implements writer.
func (s *groupSlot) stored(seq uint64, err *kerr.Error) {
	s.event(func(g *group.Group, at group.Instant) group.Effects { return g.Stored(at, seq, err) })
}

// slot finds or makes the slot of a group.
func (p *offsetsPartition) slot(id string) *groupSlot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.groups[id]
	if s == nil {
		s = &groupSlot{id: id, p: p, g: group.New(id, &p.c.conf)}
		p.groups[id] = s
	}
	return s
}

// peek finds the slot of a group, nil if there is none.
func (p *offsetsPartition) peek(id string) *groupSlot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[id]
}

func (p *offsetsPartition) slots() []*groupSlot {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*groupSlot, 0, len(p.groups))
	for _, s := range p.groups {
		all = append(all, s)
	}
	return all
}

// event gives a group, which need not exist, one event.
func (p *offsetsPartition) event(id string, f func(*group.Group, group.Instant) group.Effects) {
	for !p.slot(id).event(f) {
	}
}

// read looks at a group; ok is false when there is none.
func (p *offsetsPartition) read(id string, f func(*group.Group)) (ok bool) {
	s := p.peek(id)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped || !s.g.Exists() {
		return false
	}
	f(s.g)
	return true
}

// event gives the group one event and does what it asks for. False says that the group is not in this slot any more.
func (s *groupSlot) event(f func(*group.Group, group.Instant) group.Effects) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return false
	}
	at := s.p.c.instant()
	s.carryOut(f(s.g, at))
	// Timers that end at once, as without an initial delay, need no other goroutine. More than that is for the timer's.
	if s.g.Next() <= at.Timer {
		s.carryOut(s.g.Tick(at))
	}
	if s.p.gone() {
		s.leave()
	} else {
		s.settle()
	}
	return true
}

// leave drops the group since its partition is gone, and tells those who wait to look for the coordinator again. The slot is locked.
func (s *groupSlot) leave() {
	if !s.dropped {
		s.deliver(s.g.Unload(s.p.c.instant()))
		s.drop()
	}
}

// unload implements statePartition.
func (p *offsetsPartition) unload() {
	for _, s := range p.slots() {
		s.mu.Lock()
		s.leave()
		s.mu.Unlock()
	}
	// Markers that were appended before are in the log when this returns.
	p.openMu.Lock()
	clear(p.open)
	p.openMu.Unlock()
}

// settle drops a group that is no more, or keeps its timer. The slot is locked.
func (s *groupSlot) settle() {
	if !s.g.Exists() {
		s.drop()
		return
	}
	s.p.c.schedule(s, s.g.Next())
}

// drop takes the slot out. It is locked.
func (s *groupSlot) drop() {
	s.dropped = true
	s.p.mu.Lock()
	delete(s.p.groups, s.id)
	s.p.mu.Unlock()
	s.p.c.unschedule(s)
}

// carryOut answers and appends. The slot is locked.
func (s *groupSlot) carryOut(e group.Effects) {
	s.deliver(e)
	for i := range e.Writes {
		s.p.append(s, &e.Writes[i])
	}
}

func (s *groupSlot) deliver(e group.Effects) {
	for _, r := range e.Replies {
		r.To.(receiver).receive(r)
	}
}

// receiver is what a group.Waiter is in this package. receive must not block and is called once.
type receiver interface {
	receive(group.Reply)
}
