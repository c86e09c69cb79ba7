package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

const (
	// flushBytes and flushAnswers bound what is collected for one write while more requests are at hand.
	flushBytes   = 32 << 10
	flushAnswers = 64
)

// slot is a request whose answer was not written yet.
type slot struct {
	req         Request
	correlation int32
	flexible    bool
	pipeline    bool
	asked       bool    // for the last time
	pending     Pending // nil when reply is complete
	deadline    time.Time
	reply       Reply
}

func (s *Server) slot() *slot {
	if sl, ok := s.slots.Get().(*slot); ok {
		return sl
	}
	return new(slot)
}

// free gives a slot back whose answer is encoded or dropped.
func (s *Server) free(sl *slot) {
	if sl.req.Body != nil {
		s.recycle(sl.req.Body)
	}
	*sl = slot{}
	s.slots.Put(sl)
}

// queue holds the slots of a connection in request order.
type queue struct {
	slots   []*slot
	head    int
	key     int16 // of all slots, when there are any
	blocked bool  // the newest pending answer does not allow a request behind it
	fresh   bool  // the oldest slot was not polled since it became the oldest
}

func (q *queue) len() int     { return len(q.slots) - q.head }
func (q *queue) front() *slot { return q.slots[q.head] }

func (q *queue) push(s *slot) {
	q.slots = append(q.slots, s)
	q.key = s.req.Key
	if s.pending != nil && !s.pipeline {
		q.blocked = true
	}
}

func (q *queue) pop() *slot {
	s := q.slots[q.head]
	q.slots[q.head] = nil
	q.head++
	q.fresh = true
	switch {
	case q.head == len(q.slots):
		q.slots, q.head, q.blocked = q.slots[:0], 0, false
	case q.head >= 64:
		n := copy(q.slots, q.slots[q.head:])
		clear(q.slots[n:])
		q.slots, q.head = q.slots[:n], 0
	}
	return s
}

// mayRead reports whether requests are taken while the answers in the queue are outstanding.
func (q *queue) mayRead(limit int) bool { return q.len() == 0 || !q.blocked && q.len() < limit }

// mayHandle reports whether a request of that key may be handled now.
func (q *queue) mayHandle(key int16, limit int) bool {
	return q.len() == 0 || !q.blocked && key == q.key && q.len() < limit
}

// place takes the Handler's reply into the queue.
func (c *conn) place(s *slot, r Reply) {
	r = checked(r)
	if r.Silent {
		c.muteFor(r.Mute)
		c.srv.free(s)
		return
	}
	s.reply, s.pipeline, s.pending = r, r.Pipeline, r.Pending
	if s.pending != nil {
		s.deadline = s.pending.Deadline()
	}
	c.answers.push(s)
	if c.answers.len() == 1 {
		c.answers.fresh = false // Handle has just said that it is not ready
	}
}

// settle encodes the answers that are ready, oldest first.
func (c *conn) settle() *ending {
	if c.woken.Load() {
		c.woken.Store(false)
		c.answers.fresh = true
	}
	for c.answers.len() > 0 {
		s := c.answers.front()
		if s.pending != nil {
			if ready, e := c.ask(s); !ready || e != nil {
				return e
			}
		}
		if e := c.complete(s); e != nil {
			return e
		}
	}
	return nil
}

// ask polls the oldest answer if there is a reason to.
func (c *conn) ask(s *slot) (bool, *ending) {
	now := time.Now()
	due := !s.deadline.IsZero() && !now.Before(s.deadline)
	final := !s.asked && (!s.pipeline || c.mute) && c.impatient()
	if !c.answers.fresh && !due && !final {
		return false, nil
	}
	c.answers.fresh = false
	if final {
		s.asked = true
		c.renewContext()
	}
	reply, ok := s.pending.Poll(now)
	if ok {
		if reply.Pending != nil {
			reply = Reply{}
		}
		s.reply, s.pending = checked(reply), nil
		return true, nil
	}
	if final {
		return c.giveUp(s)
	}
	s.deadline = s.pending.Deadline()
	if !s.deadline.IsZero() && !now.Before(s.deadline) {
		return false, &ending{reasonHandler, "pending answer is not ready at its deadline", s.req.Key, s.req.Version}
	}
	return false, nil
}

// impatient reports whether nobody waits for the pending answers any more.
func (c *conn) impatient() bool {
	return c.hangup || c.srv.stopping.Load()
}

// giveUp is for a pending answer that nobody waits for and that is not ready. When the server stops the connection ends. When the peer
// has closed, the whole frames that it sent before are still handled, but nothing is written any more: the answers would be in the wrong order.
func (c *conn) giveUp(s *slot) (bool, *ending) {
	if c.srv.stopping.Load() {
		return false, end(reasonShutdown, "while an answer was pending")
	}
	s.pending.Cancel()
	s.pending, s.reply = nil, Reply{Silent: true}
	c.mute = true
	return true, nil
}

// renewContext ends the context of the requests so far. Requests that are still to be handled get another.
func (c *conn) renewContext() {
	c.cancel()
	c.ctx, c.cancel = context.WithCancel(c.srv.base)
}

// complete encodes the reply of the oldest slot and takes it out of the queue.
func (c *conn) complete(s *slot) *ending {
	switch {
	case s.reply.Body != nil:
		c.answers.pop()
		if e := c.encode(s); e != nil {
			return e
		}
		c.muteFor(s.reply.Mute)
		c.srv.free(s)
		if len(c.out.Buf) >= flushBytes || c.unsent >= flushAnswers || len(c.out.sections) > 0 && c.out.sectionBytes() >= flushBytes {
			return c.flush()
		}
		return nil
	case s.reply.Silent:
		c.srv.free(c.answers.pop())
		return nil
	}
	if e := c.flush(); e != nil { // the earlier answers
		return e
	}
	return &ending{reasonHandler, s.reply.Close, s.req.Key, s.req.Version}
}

// checked returns r, or a reply that closes the connection if r is not exactly one thing.
func checked(r Reply) Reply {
	set := 0
	for _, is := range [...]bool{r.Body != nil, r.Pending != nil, r.Silent, r.Close != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return Reply{Close: "the handler's reply is not exactly one of Body, Pending, Silent and Close"}
	}
	return r
}

// encode adds frame, header and body to out.
func (c *conn) encode(s *slot) *ending {
	if c.outBuf == nil {
		c.outBuf = c.srv.buffers.get(chunkSize)
		c.out.Buf = c.outBuf.b[:0]
	}
	start, sections := len(c.out.Buf), len(c.out.sections)
	c.out.Buf = append(c.out.Buf, 0, 0, 0, 0)
	c.out.Buf = binary.BigEndian.AppendUint32(c.out.Buf, uint32(s.correlation))
	if s.flexible && s.req.Key != keyAPIVersions { // whose response header is version 0 at all versions (KIP-511)
		c.out.Buf = append(c.out.Buf, 0)
	}
	if t, ok := s.reply.Body.(throttled); ok && s.reply.Mute > 0 {
		t.SetThrottle(int32(min(s.reply.Mute.Milliseconds(), math.MaxInt32)))
	}
	s.reply.Body.Encode(&c.out, s.req.Version)
	size := int64(len(c.out.Buf) - start - 4)
	for _, sec := range c.out.sections[sections:] {
		size += int64(sec.Len)
	}
	if size > math.MaxInt32 {
		return &ending{reasonHandler, fmt.Sprintf("answer of %d bytes does not fit a frame", size), s.req.Key, s.req.Version}
	}
	binary.BigEndian.PutUint32(c.out.Buf[start:], uint32(size))
	c.unsent++
	return nil
}
