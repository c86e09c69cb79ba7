package broker

import (
	"time"

	"gregor/broker/group"
	"gregor/log"
)

// __consumer_offsets is compacted like any topic (cleaner.go), but only below its active segment, which is 100 MiB: a start would read all of that for a
// few groups. So, besides, when a partition has grown
// well beyond what is alive in it, what is alive is written again at its end, and when that is durable the log start moves up to where
// it begins. Segments below are deleted; the start keeps the next load short even while they are not. Every suffix of the log that begins at or
// before such a rewrite gives the same groups, so a log start that a crash forgets does no harm. A partition with records of other kinds (other group
// types, transactions, newer versions) is left alone.

const (
	// compactMin is the least growth that is worth a rewrite, in bytes.
	compactMin = 16 << 20
	// compactRatio is how many times the live bytes a partition may grow by.
	compactRatio = 3
	// compactBatch is about the size of the batches of a rewrite, in bytes.
	compactBatch = 64 << 10
)

// requestCompaction asks the housekeeper for a partition.
func (c *coordinator) requestCompaction(p *offsetsPartition) {
	if p.foreign.Load() || p.grown.Load() < compactMin || !p.compacting.CompareAndSwap(false, true) {
		return
	}
	select {
	case c.full <- p:
	default:
		p.compacting.Store(false) // another append will ask again
	}
}

// housekeep expires offsets and compacts, until the coordinator is closed.
func (c *coordinator) housekeep() {
	ticker := time.NewTicker(c.broker.conf.OffsetsRetentionCheck)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			return
		case p := <-c.full:
			if err := p.compact(); err != nil {
				c.broker.logger.Warn("partition of "+offsetsTopic+" was not compacted", "partition", p.part.num, "error", err)
			}
			p.compacting.Store(false)
		case <-ticker.C:
			c.expire()
		}
	}
}

// expire lets every group look at its offsets.
func (c *coordinator) expire() {
	for _, s := range c.slots() {
		if s.p.usable() == nil {
			s.event(func(g *group.Group, at group.Instant) group.Effects { return g.Expire(at) })
		}
	}
}

// compact writes the live records again and lets the log begin there.
func (p *offsetsPartition) compact() error {
	logs := p.part.log
	start, size := logs.EndOffset(), int64(0)
	last := int64(-1)
	for _, s := range p.slots() {
		n, end, err := s.rewrite()
		if err != nil {
			return err
		}
		size += n
		last = max(last, end)
	}
	if last >= 0 && !p.c.awaitDurable(logs, last+1) {
		return logs.Err()
	}
	if _, err := p.ledUnder(); err != nil {
		return err
	}
	// Nothing alive: the newest record stays, since the log start may not pass the high watermark.
	if err := logs.AdvanceStart(min(start, logs.HighWatermark())); err != nil {
		return err
	}
	p.grown.Store(size)
	p.compactAt.Store(max(compactMin, compactRatio*size))
	return nil
}

// rewrite appends the group's records again, and returns their size in bytes and the offset of the last, -1 for none. The group is locked
// meanwhile, so that the log has them in the place where they are the newest.
func (s *groupSlot) rewrite() (size, last int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = -1
	if s.dropped {
		return 0, last, nil
	}
	var records []group.Record
	pending := 0
	flush := func() {
		if err != nil || len(records) == 0 {
			return
		}
		var appended log.Appended
		if appended, err = s.p.appendRecords(records); err == nil {
			last = appended.LastOffset
			size += int64(pending)
		}
		records, pending = records[:0], 0
	}
	for r := range s.g.Snapshot {
		records = append(records, r)
		if pending += len(r.Key) + len(r.Value); pending >= compactBatch {
			flush()
		}
	}
	flush()
	return size, last, err
}

// awaitDurable waits until the high watermark reaches an offset; false when it will not.
func (c *coordinator) awaitDurable(l *log.Log, offset int64) bool {
	w := make(signal, 1)
	for l.HighWatermark() < offset {
		if l.Watch(&w, offset, log.ToHighWatermark) {
			return l.HighWatermark() >= offset
		}
		select {
		case <-w:
		case <-c.stop:
			l.Unwatch(&w)
			return false
		}
	}
	return true
}

// signal is a log.Waiter for a goroutine that waits.
type signal chan struct{}

// Wake implements log.Waiter.
func (s *signal) Wake() {
	select {
	case *s <- struct{}{}:
	default:
	}
}
