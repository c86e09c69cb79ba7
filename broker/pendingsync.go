package broker

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log"
	"gregor/wire"
)

// pendingSync is an answer that waits until the high watermark has passed each of its batches, with flush.messages 1 until they are synced. It waits for one log at a time: a
// later one is nearly always done by then.
type pendingSync struct {
	resp     kmsg.Response
	waits    []syncWait
	wake     func()
	deadline time.Time
	watching bool
}

type syncWait struct {
	log  *log.Log
	last int64
	res  syncResult
}

// syncResult is the part of an answer that stands for one batch.
type syncResult interface {
	// fail says that the batch is not known to be durable.
	fail(err error)
}

// Wake implements log.Waiter.
func (p *pendingSync) Wake() { p.wake() }

// Deadline implements wire.Pending.
func (p *pendingSync) Deadline() time.Time { return p.deadline }

// Poll implements wire.Pending.
func (p *pendingSync) Poll(now time.Time) (wire.Reply, bool) {
	for len(p.waits) > 0 {
		w := &p.waits[0]
		if w.log.HighWatermark() <= w.last {
			err := p.waitFor(w, now)
			if err == nil {
				return wire.Reply{}, false
			}
			// The last look: the watermark may have passed meanwhile, and then nothing is wrong.
			if w.log.HighWatermark() <= w.last {
				w.res.fail(err)
			}
		}
		p.unwatch()
		p.waits = p.waits[1:]
	}
	return wire.Reply{Body: wire.Message(p.resp)}, true
}

// waitFor watches the log of w. An error says why it is not watched: the log failed or is closed, the time is over, or the high watermark
// has passed w just now.
func (p *pendingSync) waitFor(w *syncWait, now time.Time) error {
	if err := w.log.Err(); err != nil {
		return err
	}
	if !now.Before(p.deadline) {
		return fmt.Errorf("not durable in time, although written up to offset %d: %w", w.last, kerr.RequestTimedOut)
	}
	if !w.log.Watch(p, w.last+1, log.ToHighWatermark) {
		p.watching = true
		return nil
	}
	if err := w.log.Err(); err != nil {
		return err
	}
	return log.ErrClosed
}

// Cancel implements wire.Pending.
func (p *pendingSync) Cancel() { p.unwatch() }

func (p *pendingSync) unwatch() {
	if p.watching {
		p.waits[0].log.Unwatch(p)
		p.watching = false
	}
}
