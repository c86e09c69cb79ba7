package wire

import "time"

// charge is what a buffer of n bytes takes from the budget. The chunk that every connection may read into is free: small requests
// never wait for memory.
func charge(n int) int64 {
	if n <= chunkSize {
		return 0
	}
	return int64(n)
}

// decodeCharge is what a whole frame takes from the budget while it is handled: nothing beyond its buffer, unless it is a large one
// without records, whose decoded form may take many times its size.
func decodeCharge(key int16, size int) int64 {
	if key != keyProduce && size > freeDecode {
		return int64(size) * decodeCost
	}
	return 0
}

// wanted is the size of the buffer that the next bytes of a large frame go to. need is all of the frame that will be read.
func (c *conn) wanted(need int) int {
	first := min(need, max(chunkSize, c.earned))
	size := c.bufferSize()
	switch {
	case size < first, size > 4*need && size > chunkSize:
		_, size = classOf(first)
	case c.in.w-c.in.r == size && size < need:
		grown := size * growth
		if grown > largestClass {
			grown = size * 2
		}
		_, size = classOf(min(need, grown))
	}
	return size
}

// resize moves what was received to a buffer of size bytes if the budget has room for it. Otherwise it remembers what is short.
func (c *conn) resize(size int) bool {
	if more := charge(size) - c.held; more > 0 {
		if !c.srv.budget.try(&c.frame.waiter, more) {
			c.frame.short = more
			return false
		}
		c.held += more
	}
	c.rebuffer(size)
	return true
}

// lower gives back to the budget what the buffer at hand does not need.
func (c *conn) lower() {
	if extra := c.held - charge(c.bufferSize()); extra > 0 {
		c.held -= extra
		c.srv.budget.release(extra)
	}
}

// reserve asks the budget for what room found short, and for what handling the frame takes beyond its buffer, or looks whether that was granted.
func (c *conn) reserve() {
	f := &c.frame
	budget := &c.srv.budget
	if f.waiting {
		if !budget.granted(&f.waiter) {
			return
		}
		c.held += f.waiter.size
		f.waiting, f.short = false, 0
		c.admitted()
	}
	if c.whole() {
		f.short = 0
		if more := decodeCharge(f.key, f.size) - c.held; more > 0 && c.mayHandle() {
			f.short = more
		}
	}
	if f.short == 0 {
		return
	}
	if !budget.acquire(&f.waiter, f.short) {
		f.waiting = true
		c.hurry(time.Now())
		return
	}
	c.held += f.short
	f.short = 0
	c.admitted()
}

// admitted begins a new stall window, since the wait was not the peer's.
func (c *conn) admitted() {
	f := &c.frame
	now := time.Now()
	f.window, f.returned, f.received = now, now, 0
	if f.waiter.favored {
		c.hurry(now)
	}
}

// hurry makes patience count from now on.
func (c *conn) hurry(now time.Time) {
	c.nc.SetWriteDeadline(now.Add(c.patience())) //nolint:errcheck // fails when closed, and then the write does too
}

// patience is how long the peer may take no bytes of an answer. While its frame is the favored one all that wait for memory wait for this
// connection, and a frame in the queue can become that at any time, also while a write blocks.
func (c *conn) patience() time.Duration {
	if c.frame.waiting || c.frame.waiter.favored {
		return min(c.srv.cfg.IdleTimeout, c.srv.stall)
	}
	return c.srv.cfg.IdleTimeout
}

// enough is how many bytes the peer must send in a stall window to keep memory that others wait for: some, and all of the
// favored frame within a few minutes.
func (c *conn) enough() int {
	if c.frame.waiter.favored {
		return max(stallBytes, c.frame.size/stallWindows)
	}
	return stallBytes
}

// leaveBudget lets go of the frame's place in the budget. What its buffer holds stays charged.
func (c *conn) leaveBudget() {
	if f := &c.frame; f.waiting || f.waiter.favored {
		c.srv.budget.leave(&f.waiter)
		f.waiting, f.short = false, 0
	}
}

// drop gives up what was received and not handled.
func (c *conn) drop() {
	c.srv.buffers.put(c.in.buf)
	c.in.buf, c.in.r, c.in.w = nil, 0, 0
	c.lower()
	c.leaveBudget()
}
