package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// errAgain says that a read that may not block found nothing.
var errAgain = errors.New("nothing to read")

// errReset says that the connection broke while nothing was read from it.
var errReset = errors.New("connection reset by peer")

// wake makes the goroutine look at its pending answers, the budget and the server's stop. It never blocks.
//
// The goroutine blocks in a read of the socket, so that one wait covers the next frame, the deadline and wake; wake interrupts the read by
// a deadline in the past. No wake is lost:
//
//	goroutine: arm the deadline; parked = true; look at woken; read; parked = false
//	wake:      woken = true; if parked was true, make it false and set a past deadline
//
// These are sequentially consistent atomics. If wake finds parked false, its store of woken came before the goroutine's store of
// parked, hence before the goroutine's look at woken, which then sees it and does not read. If wake finds parked true, the
// deadline was armed before, so the past deadline is not overwritten by this round's arming and ends this round's read, even if that begins later.
//
// A past deadline may land late, when the goroutine has moved on, and then ends a later read or overwrites a later deadline. The
// goroutine takes every timeout as a reason to look at everything and to arm anew, so that costs one round and loses nothing.
func (c *conn) wake() {
	c.woken.Store(true)
	if !c.parked.CompareAndSwap(true, false) {
		return
	}
	c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // fails when closed, and then nobody waits
	select {
	case c.wakeups <- struct{}{}: // nil unless the goroutine can wait outside of a read
	default:
	}
}

// wait blocks until there is something to do: bytes, a hangup, a wake, a deadline. It first writes what is ready.
func (c *conn) wait() *ending {
	reading := c.mayReceive()
	if reading && c.in.full {
		// More is probably there. Answers go out together when it is handled, or when it turns out that nothing is.
		if n, err := c.receive(false); err != errAgain {
			return c.received(n, err)
		}
	}
	c.in.full = false
	if e := c.flush(); e != nil {
		return e
	}
	c.arm(time.Now(), reading)
	c.parked.Store(true)
	if c.woken.Load() {
		c.parked.Store(false)
		return nil
	}
	var n int
	var err error
	if reading {
		n, err = c.receiveTimed()
	} else {
		n, err = c.hold()
	}
	c.parked.Store(false)
	return c.received(n, err)
}

// receiveTimed blocks in a read and keeps account of how long the peer has kept memory from others.
func (c *conn) receiveTimed() (int, error) {
	before := c.takesMemory()
	n, err := c.receive(true)
	if c.takesMemory() {
		f := &c.frame
		f.returned = time.Now()
		if !before {
			f.window, f.received = f.returned, 0
		}
	}
	return n, err
}

// mayReceive reports whether bytes of requests may be read now.
func (c *conn) mayReceive() bool {
	return c.last == nil && c.quietUntil.IsZero() && !c.whole() && !c.frame.waiting && c.answers.mayRead(c.srv.cfg.MaxPipeline)
}

// received takes the result of a read or a hold.
func (c *conn) received(n int, err error) *ending {
	if n > 0 {
		c.in.w += n
		c.frame.received += n
		c.lastActive = time.Now()
		c.srv.count.bytesIn.Add(int64(n))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.armed, c.in.full = time.Time{}, false
		return c.expired(time.Now())
	case err == io.EOF:
		c.hangup = true
		if c.last == nil {
			c.last = end(reasonPeerClosed, "")
			if left := c.in.w - c.in.r; left > 0 {
				c.last.detail = fmt.Sprintf("%d bytes into a frame", left)
			}
		}
		return nil
	case c.srv.stopping.Load():
		return end(reasonShutdown, err.Error())
	}
	return end(reasonConnError, err.Error())
}

// arm sees to it that the read ends at the next deadline. An earlier deadline may stay: it costs a round when it comes, and the common
// case, an active connection with an idle timeout of minutes, sets no timer at all.
func (c *conn) arm(now time.Time, reading bool) {
	f := &c.frame
	at := c.lastActive.Add(c.srv.cfg.IdleTimeout)
	if c.answers.len() > 0 || f.waiting || !c.quietUntil.IsZero() { // the connection is not idle, whatever its last activity: see expired
		at = now.Add(c.srv.cfg.IdleTimeout)
	}
	if c.answers.len() > 0 {
		if s := c.answers.front(); !s.deadline.IsZero() && s.deadline.Before(at) {
			at = s.deadline
		}
	}
	if !c.quietUntil.IsZero() && c.quietUntil.Before(at) {
		at = c.quietUntil
	}
	if reading && c.takesMemory() {
		f.window = f.window.Add(now.Sub(f.returned)) // a connection that does not read does not stall
		f.returned = now
		if stall := f.window.Add(c.srv.stall); stall.Before(at) {
			at = stall
		}
	}
	if c.armed.IsZero() || at.Before(c.armed) {
		c.nc.SetReadDeadline(at) //nolint:errcheck // fails when closed, and then the read does too
		c.armed = at
	}
}

// takesMemory reports whether others may have to wait because of the frame that is being received.
func (c *conn) takesMemory() bool {
	return c.frame.size > 0 && (c.held > 0 || c.frame.waiter.favored)
}

// expired looks at what a deadline can mean for the connection itself; those of pending answers are settle's.
func (c *conn) expired(now time.Time) *ending {
	f := &c.frame
	if c.answers.len() == 0 && !f.waiting && c.quietUntil.IsZero() && now.Sub(c.lastActive) >= c.srv.cfg.IdleTimeout {
		return end(reasonIdle, fmt.Sprintf("no traffic for %v (connections.max.idle.ms)", c.srv.cfg.IdleTimeout))
	}
	if !c.mayReceive() || !c.takesMemory() || now.Sub(f.window) < c.srv.stall {
		return nil
	}
	if f.received < c.enough() && c.srv.budget.waiting.Load() > 0 {
		return end(reasonStalled, fmt.Sprintf("%d of %d bytes of a frame in %v while others wait for memory (queued.max.request.bytes)",
			f.received, f.size, c.srv.stall))
	}
	f.window, f.returned, f.received = now, now, 0
	return nil
}
