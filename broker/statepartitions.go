package broker

import (
	"context"
	"math"
	"slices"
	"time"
)

// What a coordinator keeps for the partitions of its topic comes and goes with their leadership.
//
//   - Who leads changes under Broker.admin. There the partition's place is taken or left at once, so that what comes after is refused or told to
//     wait, and the work is put into a queue.
//   - One goroutine does it: unloading, which answers what is parked, before loading, one partition after another. Between two reads of a load it
//     looks at the queue; a load whose partition is not led any more ends there.
//   - A partition that is led again gets a new place, which is loaded when the old one is empty: nothing of the old is written after that.

// statePartition is what a coordinator keeps for a partition.
type statePartition interface {
	comparable
	base() *stateLog
	// load reads the log until its end or until stop, and opens the partition. It returns how many records or keys that were.
	load(ctx context.Context, stop func() bool) (int, error)
	// unload drops everything, and tells those who wait to look for the coordinator again.
	unload()
}

// change makes the places of partitions what their leadership says. count is 0 when it is not known. mu is held.
func (s *stateTopic[P]) change(t *topic, count int, parts ...*partition) {
	h := s.held.Load()
	if h == nil || h.topic != t {
		s.letGo(h)
		h = &held[P]{topic: t}
	}
	next := &held[P]{topic: t, count: h.count, led: slices.Clone(h.led)}
	if next.count == 0 {
		next.count = count
	}
	for _, p := range parts {
		if grow := int(p.num) + 1 - len(next.led); grow > 0 {
			next.led = append(next.led, make([]P, grow)...)
		}
		next.led[p.num] = s.place(next.led[p.num], p)
	}
	s.held.Store(next)
	s.changed()
}

// place is what is kept for a partition from now on, given what was.
func (s *stateTopic[P]) place(old P, p *partition) P {
	var none P
	led := p.lead.Load().led
	if old != none {
		if led && old.base().part == p {
			return old
		}
		s.leave(old)
	}
	if !led {
		return none
	}
	next := s.fresh()
	l := next.base()
	l.broker, l.loop, l.part = s.of, s.loop, p
	switch {
	case p.log == nil:
		l.state.Store(stateFailed)
	case len(s.leaving) == 0 && p.log.EndOffset() == p.log.StartOffset():
		l.state.Store(stateReady)
	default:
		s.entering = append(s.entering, next)
	}
	return next
}

// leave lets go of one. mu is held.
func (s *stateTopic[P]) leave(p P) {
	p.base().state.Store(stateGone)
	s.leaving = append(s.leaving, p)
}

// letGo lets go of all. mu is held.
func (s *stateTopic[P]) letGo(h *held[P]) {
	if h == nil {
		return
	}
	var none P
	for _, p := range h.led {
		if p != none {
			s.leave(p)
		}
	}
}

// changed wakes the goroutine.
func (s *stateTopic[P]) changed() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// sizeRetry is how long after a failure the metadata is asked again how many partitions there are.
const sizeRetry = time.Second

// carryOut is the goroutine: it loads and unloads.
func (s *stateTopic[P]) carryOut() {
	retry := time.NewTimer(math.MaxInt64)
	defer retry.Stop()
	for {
		select {
		case <-s.loop.stop:
			return
		case <-s.changes:
		case <-retry.C:
		}
		s.unloadAll()
		if err := s.learnCount(); err != nil {
			s.of.logger.Warn("partitions of a coordinator's topic cannot be counted, its clients will wait", "topic", s.name, "error", err)
			retry.Reset(sizeRetry)
		}
		s.loadAll()
	}
}

// learnCount reads how many partitions the topic has, if that is not known: this broker may have been told of some of them only.
func (s *stateTopic[P]) learnCount() error {
	h := s.held.Load()
	if h == nil || h.count > 0 {
		return nil
	}
	count, err := s.of.control.PartitionCount(s.loop.ctx, s.name)
	if err != nil {
		return err
	}
	s.take(h.topic, count)
	return nil
}

// unloadAll empties what is not led any more.
func (s *stateTopic[P]) unloadAll() {
	for {
		s.mu.Lock()
		if len(s.leaving) == 0 {
			s.mu.Unlock()
			return
		}
		p := s.leaving[0] // it stays in the list until nothing of it is left: see place
		s.mu.Unlock()
		p.unload()
		p.base().Wake() // what is on its way is not waited for
		s.mu.Lock()
		s.leaving = slices.Delete(s.leaving, 0, 1)
		s.mu.Unlock()
	}
}

// loadAll reads the partitions that are led now, one after another.
func (s *stateTopic[P]) loadAll() {
	begin := time.Now()
	partitions, records := 0, 0
	for p, ok := s.nextEntering(); ok; p, ok = s.nextEntering() {
		l := p.base()
		n, err := p.load(s.loop.ctx, func() bool {
			s.unloadAll()
			return s.loop.closing.Load() || l.state.Load() != stateLoading
		})
		switch {
		case s.loop.closing.Load():
			return // what was read may not be all
		case err != nil && l.state.CompareAndSwap(stateLoading, stateFailed):
			s.of.logger.Error("state of a coordinator could not be loaded, its clients will wait", "topic", s.name, "partition", l.part.num, "error", err)
		case l.state.Load() == stateReady:
			partitions++
			records += n
		}
	}
	if partitions > 0 {
		s.of.logger.Info("state of a coordinator is loaded", "topic", s.name, "partitions", partitions, "entries", records, "took", time.Since(begin))
	}
}

// nextEntering takes one to be loaded, when everything that is to be unloaded is.
func (s *stateTopic[P]) nextEntering() (p P, ok bool) {
	for {
		s.unloadAll()
		s.mu.Lock()
		if len(s.leaving) == 0 {
			break
		}
		s.mu.Unlock() // it came just now
	}
	defer s.mu.Unlock()
	if len(s.entering) == 0 || s.loop.closing.Load() {
		return p, false
	}
	p = s.entering[0]
	s.entering = slices.Delete(s.entering, 0, 1)
	return p, true
}
