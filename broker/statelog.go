package broker

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/log"
	"gregor/log/batch"
)

// States of a stateLog.
const (
	stateLoading int32 = iota
	stateReady
	stateFailed // its log is offline or damaged
	stateGone   // this broker does not lead it any more, or not under the leadership that this is of
)

// stateLog is a partition of an internal topic that a coordinator keeps its state in. Writes are appended and not waited for: when the high watermark
// has passed one, its owner is told on the loop's goroutine.
type stateLog struct {
	broker *Broker
	loop   *stateLoop
	part   *partition
	state  atomic.Int32

	flightMu sync.Mutex
	flight   []flying // appended and not known to be durable, oldest first
	watching bool
}

// writer is the owner of a write.
type writer interface {
	// stored tells, on the loop's goroutine and in the order of the writes, that one is durable or, with an error, that it is not.
	stored(seq uint64, err *kerr.Error)
}

// flying is a write on its way to the disk.
type flying struct {
	owner writer
	seq   uint64
	last  int64 // offset of its last record
	err   error // it could not be appended
}

// base implements statePartition.
func (p *stateLog) base() *stateLog { return p }

// gone says that the partition is not led any more. It stays so.
func (p *stateLog) gone() bool { return p.state.Load() == stateGone }

// ledUnder is the leader epoch that this is of, which is the coordinator's epoch too, or why nothing may be written any more.
func (p *stateLog) ledUnder() (int32, error) {
	// Leadership that comes back finds this one gone: so this order.
	if l := p.part.lead.Load(); l.led && !p.gone() {
		return l.epoch, nil
	}
	return 0, fmt.Errorf("partition %s-%d is not led here any more: %w", p.part.topic.name, p.part.num, kerr.NotCoordinator)
}

// followed is the log that writes to any partition are followed in.
func (p *partition) followed(b *Broker, loop *stateLoop) *stateLog {
	if l := p.follow.Load(); l != nil {
		return l
	}
	p.follow.CompareAndSwap(nil, &stateLog{broker: b, loop: loop, part: p})
	return p.follow.Load()
}

// usable is nil when what is in the partition can be used.
func (p *stateLog) usable() *kerr.Error {
	switch p.state.Load() {
	case stateReady:
		return nil
	case stateLoading:
		return kerr.CoordinatorLoadInProgress
	}
	return kerr.NotCoordinator
}

// follow sees to it that the owner of a write that was appended, or failed, is told of its end.
func (p *stateLog) follow(f flying) {
	p.flightMu.Lock()
	p.flight = append(p.flight, f)
	due := !p.watching && p.watch() || p.gone()
	p.flightMu.Unlock()
	if due {
		p.Wake()
	}
}

// build makes one batch of records.
func build[R ~struct{ Key, Value []byte }](b *Broker, o batch.Options, records []R) ([]byte, batch.Header, error) {
	w := b.builders.Get().(*batch.Builder)
	defer b.builders.Put(w)
	w.Reset(o)
	now := b.now().UnixMilli()
	for i := range records {
		r := struct{ Key, Value []byte }(records[i])
		w.Append(now, r.Key, r.Value)
	}
	out, err := w.Finish(nil)
	if err != nil {
		return nil, batch.Header{}, fmt.Errorf("building a batch of %d records: %w", len(records), err)
	}
	h, err := batch.ReadHeader(out)
	return out, h, err
}

// watch asks to be woken when the oldest write is durable; true says that it is already, or will never be. flightMu is held and there is one.
func (p *stateLog) watch() bool {
	if p.flight[0].err != nil || p.part.log.Watch(p, p.flight[0].last+1, log.ToHighWatermark) {
		return true
	}
	p.watching = true
	return false
}

// Wake implements log.Waiter.
func (p *stateLog) Wake() {
	l := p.loop
	l.readyMu.Lock()
	l.ready = append(l.ready, p)
	l.readyMu.Unlock()
	l.wake()
}

// complete tells the owners of writes that are durable or failed, oldest first, and watches for the next.
func (p *stateLog) complete() {
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
			f.owner.stored(f.seq, kafkaError(f.err))
		}
	}
}

// landed takes the writes out that are no longer on their way: err is why those without an error of their own failed, nil when they are
// durable. None means that the rest is watched.
func (p *stateLog) landed() (done []flying, err error) {
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
		if p.gone() {
			return p.take(len(p.flight)), kerr.NotCoordinator
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

func (p *stateLog) take(n int) []flying {
	done := p.flight[:n:n]
	p.flight = p.flight[n:]
	if len(p.flight) == 0 {
		p.flight = nil
	}
	return done
}
