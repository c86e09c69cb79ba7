package wire

import (
	"os"
	"time"
)

// room returns where the next bytes go. As long as frames are small a whole chunk is read at once. Of a large frame exactly the rest and the
// start of the next frame, by which that is judged, are asked for, so that nothing of the frame behind is moved to another buffer. The buffer
// of a large frame grows with what arrives; room is nil when the budget has nothing left for that, and frame.short says how much.
func (c *conn) room() []byte {
	in := &c.in
	need := 4 + c.frame.size
	if !c.frame.checked {
		need = 4 + minFrame
	}
	if need <= chunkSize {
		least := max(need, c.chunk())
		if in.buf == nil || len(in.buf.b) < least || len(in.buf.b) > chunkSize {
			c.rebuffer(least)
		} else {
			c.compact()
		}
		return in.buf.b[in.w:]
	}
	need += 4 + minFrame
	if size := c.wanted(need); size == c.bufferSize() {
		c.compact()
	} else if !c.resize(size) {
		return nil
	}
	return in.buf.b[in.w:min(len(in.buf.b), need)]
}

// chunk is how much is read when nothing is known of the next frame. A connection that must hold its buffer while it waits takes less.
func (c *conn) chunk() int {
	if c.wakeups != nil {
		return 1 << 10
	}
	return chunkSize
}

func (c *conn) bufferSize() int {
	if c.in.buf == nil {
		return 0
	}
	return len(c.in.buf.b)
}

// rebuffer moves what was received to the front of another buffer of at least n bytes, and gives back what that takes less of the budget.
func (c *conn) rebuffer(n int) {
	in := &c.in
	next := c.srv.buffers.get(n)
	have := 0
	if in.buf != nil {
		have = copy(next.b, in.buf.b[in.r:in.w])
		c.srv.buffers.put(in.buf)
	}
	in.buf, in.r, in.w = next, 0, have
	c.lower()
}

// compact moves what was received to the front of its buffer.
func (c *conn) compact() {
	in := &c.in
	if in.r > 0 {
		in.w = copy(in.buf.b, in.buf.b[in.r:in.w])
		in.r = 0
	}
}

// vacate gives the buffer back while nothing is in it, and takes a smaller one for a few bytes, before a wait.
func (c *conn) vacate() {
	in := &c.in
	have := in.w - in.r
	switch {
	case in.buf == nil:
	case have == 0:
		c.srv.buffers.put(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
		c.lower()
	case have <= len(in.buf.b)/16 && len(in.buf.b) > 1<<10:
		c.rebuffer(have)
	}
}

// receivePlain reads where there is no way to try without blocking.
func (c *conn) receivePlain(block bool) (int, error) {
	if !block {
		return 0, errAgain
	}
	dst := c.room()
	if dst == nil {
		return 0, nil
	}
	n, err := c.nc.Read(dst)
	c.in.full = n == len(dst)
	return n, err
}

// holdPlain waits without taking requests. A read of the next frame's length is the only way to notice that the peer closed; once that is
// there the wait ends by wake or deadline only.
func (c *conn) holdPlain() (int, error) {
	have := c.in.w - c.in.r
	if have < 4 && c.last == nil && !c.hangup {
		c.rebuffer(1 << 10)
		return c.nc.Read(c.in.buf.b[have:4])
	}
	c.vacate()
	t := time.NewTimer(time.Until(c.armed))
	defer t.Stop()
	select {
	case <-c.wakeups:
		return 0, nil
	case <-t.C:
		return 0, os.ErrDeadlineExceeded
	}
}
