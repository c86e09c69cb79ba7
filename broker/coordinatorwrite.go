package broker

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/group"
	"gregor/log"
	"gregor/log/batch"
)

// append writes what a group asks for. The slot is locked; the result comes to the group when it is durable, or failed, from the
// coordinator's goroutine.
func (p *offsetsPartition) append(s *groupSlot, w *group.Write) {
	f := flying{slot: s, seq: w.Seq}
	appended, err := p.appendRecords(w.Records)
	if f.last, f.err = appended.LastOffset, err; err != nil {
		p.c.broker.logger.Warn("group could not be stored", "group", s.id, "partition", p.part.num, "error", err)
	}
	p.flightMu.Lock()
	p.flight = append(p.flight, f)
	due := !p.watching && p.watch()
	p.flightMu.Unlock()
	if due {
		p.Wake()
	}
}

// appendRecords writes records as one batch.
func (p *offsetsPartition) appendRecords(records []group.Record) (log.Appended, error) {
	w := p.c.broker.builders.Get().(*batch.Builder)
	defer p.c.broker.builders.Put(w)
	w.Reset(batch.Options{LeaderEpoch: -1})
	now := p.c.broker.now().UnixMilli()
	for i := range records {
		w.Append(now, records[i].Key, records[i].Value)
	}
	b, err := w.Finish(nil)
	if err != nil {
		return log.Appended{}, fmt.Errorf("building a batch of %d records: %w", len(records), err)
	}
	h, err := batch.ReadHeader(b)
	if err != nil {
		return log.Appended{}, err
	}
	appended, err := p.part.log.Append(b, h, p.part.leaderEpoch)
	if err == nil && p.grown.Add(int64(len(b))) > p.compactAt.Load() {
		p.c.requestCompaction(p)
	}
	return appended, err
}

// watch asks to be woken when the oldest write is durable; true says that it is already, or will never be. flightMu is held and there is one.
func (p *offsetsPartition) watch() bool {
	if p.flight[0].err != nil || p.part.log.Watch(p, p.flight[0].last+1, log.ToHighWatermark) {
		return true
	}
	p.watching = true
	return false
}

// Wake implements log.Waiter.
func (p *offsetsPartition) Wake() {
	c := p.c
	c.readyMu.Lock()
	c.ready = append(c.ready, p)
	c.readyMu.Unlock()
	c.wake()
}

// wake makes the coordinator's goroutine look around.
func (c *coordinator) wake() {
	select {
	case c.wakeups <- struct{}{}:
	default:
	}
}

// completeReady tells groups of their writes that are durable.
func (c *coordinator) completeReady() {
	c.readyMu.Lock()
	ready := c.ready
	c.ready = nil
	c.readyMu.Unlock()
	for _, p := range ready {
		p.complete()
	}
}

// complete tells the groups of a partition of their writes that are durable or failed, oldest first, and watches for the next.
func (p *offsetsPartition) complete() {
	for {
		done, err := p.landed()
		if len(done) == 0 {
			return
		}
		for i := range done {
			f := &done[i]
			if f.err == nil {
				f.err = err
			}
			result := kafkaError(f.err)
			f.slot.event(func(g *group.Group, at group.Instant) group.Effects { return g.Stored(at, f.seq, result) })
		}
	}
}

// landed takes the writes out that are no longer on their way: err is why those without an error of their own failed, nil when they are
// durable. None means that the rest is watched.
func (p *offsetsPartition) landed() (done []flying, err error) {
	p.flightMu.Lock()
	defer p.flightMu.Unlock()
	p.watching = false
	for len(p.flight) > 0 {
		high := p.part.log.HighWatermark()
		n := 0
		for n < len(p.flight) && (p.flight[n].err != nil || p.flight[n].last < high) {
			n++
		}
		if n > 0 {
			return p.take(n), nil
		}
		if err := p.part.log.Err(); err != nil {
			return p.take(len(p.flight)), err
		}
		if !p.watch() {
			return nil, nil
		}
		if p.part.log.HighWatermark() == high && p.part.log.Err() == nil {
			return p.take(len(p.flight)), kerr.NotCoordinator // closed: the topic was deleted
		}
	}
	return nil, nil
}

func (p *offsetsPartition) take(n int) []flying {
	done := p.flight[:n:n]
	p.flight = p.flight[n:]
	if len(p.flight) == 0 {
		p.flight = nil
	}
	return done
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
