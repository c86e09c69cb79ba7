package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// conn is one connection. All but wake, and the atomics it uses, belongs to the connection's goroutine.
type conn struct {
	srv    *Server
	nc     net.Conn
	sock   sock // how to read without blocking and notice a hangup; see read_linux.go
	info   ConnInfo
	ctx    context.Context // of the requests being handled; renewed when pending answers are asked for the last time
	cancel context.CancelFunc
	wakeFn func() // c.wake, bound once

	woken   atomic.Bool   // somebody asked for a look at the pending answers
	parked  atomic.Bool   // the goroutine blocks, or is about to, and must be interrupted
	wakeups chan struct{} // interrupts where there is nothing to read; nil where sock can wait by itself

	// in holds the received bytes in.buf.b[in.r:in.w] that are not handled yet.
	in struct {
		buf  *buffer
		r, w int
		full bool // the last read filled all it was given: more may be there
	}
	frame    frameState
	held     int64 // taken from the budget: charge of in.buf, and while a frame is handled what its decoded form may take
	earned   int   // size of the largest frame received whole, at most largestClass
	first    bool  // nothing was received whole yet
	hangup   bool  // the peer will send no more than what is underway
	mute     bool  // the peer closed and an answer was given up: nothing is written any more
	clientID string

	quietUntil time.Time // nothing is taken from the connection before (Reply.Mute); zero when it may be

	answers queue
	out     Payload
	outBuf  *buffer // backs out.Buf unless that grew
	unsent  int     // answers in out
	xfer    *transfer

	armed      time.Time // read deadline that is set, or an earlier one; zero if not known
	lastActive time.Time
	last       *ending // set once: nothing more is read or handled; the connection ends when the queue is empty
}

// frameState is what is known of the frame at the front of in.
type frameState struct {
	size     int  // 0: not known yet
	checked  bool // the start of its header is there and allowed
	fallback bool // ApiVersions at an unknown version
	key      int16
	short    int64 // what it lacks of the budget to go on
	waiting  bool  // for that
	waiter   waiter
	window   time.Time // start of the current stall window, later by the time in which nothing was read
	returned time.Time // end of the last blocking read
	received int       // bytes since window
}

func newConn(s *Server, nc net.Conn, name string) *conn {
	c := &conn{srv: s, nc: nc, first: true, lastActive: time.Now()}
	c.info = ConnInfo{ID: s.nextID.Add(1), Listener: name, Local: nc.LocalAddr(), Remote: nc.RemoteAddr()}
	c.setBuffers()
	c.wakeFn = c.wake
	c.frame.waiter.wake = c.wakeFn
	c.ctx, c.cancel = context.WithCancel(s.base)
	if !c.attach(nc) {
		c.wakeups = make(chan struct{}, 1)
	}
	nc.SetWriteDeadline(c.lastActive.Add(s.cfg.IdleTimeout)) //nolint:errcheck // fails when closed, and then the write does too
	return c
}

// setBuffers sizes the socket's buffers as configured. An error means a broken connection, which shows at the first read.
func (c *conn) setBuffers() {
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return
	}
	if n := c.srv.cfg.SendBuffer; n > 0 {
		tcp.SetWriteBuffer(n) //nolint:errcheck // see above
	}
	if n := c.srv.cfg.ReceiveBuffer; n > 0 {
		tcp.SetReadBuffer(n) //nolint:errcheck // see above
	}
}

// serve runs the connection to its end.
func (c *conn) serve() {
	var e *ending
	defer func() { c.finish(e) }()
	defer func() {
		if p := recover(); p != nil {
			e = end(reasonPanic, fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	e = c.run()
}

// run is the connection's loop: finish what is ready, handle what is there, then wait.
func (c *conn) run() *ending {
	for {
		c.unmute()
		if e := c.settle(); e != nil {
			return e
		}
		if c.srv.stopping.Load() {
			if c.srv.aborting.Load() {
				return end(reasonShutdown, "with answers outstanding")
			}
			if c.last == nil {
				c.last = end(reasonShutdown, "")
				continue // pending answers are asked with an ended context
			}
		}
		if c.last == nil {
			c.inspect()
		}
		if c.last != nil && c.answers.len() == 0 {
			if e := c.flush(); e != nil {
				return e
			}
			return c.last
		}
		if c.last != nil {
			c.drop()
		}
		if c.last == nil && c.frameReady() {
			c.handle()
			continue
		}
		if e := c.wait(); e != nil {
			return e
		}
	}
}

// frameReady reports whether a whole frame is there that may be handled now.
func (c *conn) frameReady() bool {
	f := &c.frame
	return c.whole() && !f.waiting && c.held >= decodeCharge(f.key, f.size) && c.mayHandle()
}

// whole reports whether all of the frame at the front of in is there.
func (c *conn) whole() bool { return c.frame.size > 0 && c.in.w-c.in.r >= 4+c.frame.size }

// mayHandle reports whether the answers that are outstanding allow the frame to be handled.
func (c *conn) mayHandle() bool {
	return c.quietUntil.IsZero() && c.answers.mayHandle(c.frame.key, c.srv.cfg.MaxPipeline)
}

// muteFor takes nothing from the connection for d from now on.
func (c *conn) muteFor(d time.Duration) {
	if until := time.Now().Add(d); d > 0 && until.After(c.quietUntil) {
		c.quietUntil = until
	}
}

// unmute takes requests again when the time has come, or the peer has closed and would otherwise be kept.
func (c *conn) unmute() {
	if c.quietUntil.IsZero() {
		return
	}
	if now := time.Now(); c.hangup || !now.Before(c.quietUntil) {
		c.quietUntil, c.lastActive = time.Time{}, now
	}
}

// inspect looks at the front of the frame as soon as its bytes are there, so that what is not a request ends the connection before its
// body is read, and reserves the memory that it lacks. What is wrong with the frame sets c.last.
func (c *conn) inspect() {
	f := &c.frame
	have := c.in.w - c.in.r
	if f.size == 0 {
		if have < 4 {
			return
		}
		b := c.in.buf.b[c.in.r:c.in.w]
		if c.last = c.frameSize(b); c.last != nil {
			return
		}
		f.size = int(binary.BigEndian.Uint32(b))
		f.window, f.returned, f.received = c.lastActive, c.lastActive, 0
	}
	if !f.checked && have >= 4+minFrame {
		if c.last = c.checkFrame(); c.last != nil {
			return
		}
		f.checked = true
	}
	c.reserve()
}

// frameSize judges the length at the front of b.
func (c *conn) frameSize(b []byte) *ending {
	if c.first {
		if e := otherProtocol(b); e != nil {
			return e
		}
	}
	if size := int32(binary.BigEndian.Uint32(b)); size < minFrame || size > c.srv.cfg.MaxFrame {
		return end(reasonBadFrame, fmt.Sprintf("length %d, allowed are %d to %d (socket.request.max.bytes)", size, minFrame, c.srv.cfg.MaxFrame))
	}
	return nil
}

// otherProtocol recognizes what else is often spoken to the port. b has at least four bytes.
func otherProtocol(b []byte) *ending {
	if b[0] == 0x16 && b[1] == 0x03 {
		return end(reasonTLS, "TLS ClientHello: the client must use security.protocol=PLAINTEXT here")
	}
	switch string(b[:4]) {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "CONN", "PATC", "TRAC", "PRI ":
		return end(reasonHTTP, fmt.Sprintf("starts with %q: this port speaks the Kafka protocol", b[:4]))
	}
	return nil
}

// checkFrame judges key, version and their size limit.
func (c *conn) checkFrame() *ending {
	f := &c.frame
	h := peekHeader(c.in.buf.b[c.in.r+4:])
	f.key, f.fallback = h.key, false
	low, high, ok := c.srv.cfg.Supports(h.key)
	var e *ending
	switch {
	case !ok:
		e = end(reasonUnsupported, "key is not supported")
	case (h.version < low || h.version > high) && h.key == keyAPIVersions:
		f.fallback = true
	case h.version < low || h.version > high:
		e = end(reasonUnsupported, fmt.Sprintf("version is not within %d to %d", low, high))
	}
	if e == nil && h.key != keyProduce && f.size > maxControlFrame {
		e = end(reasonBadFrame, fmt.Sprintf("length %d, requests without records have at most %d", f.size, maxControlFrame))
	}
	if e != nil {
		e.key, e.version = h.key, h.version
	}
	return e
}

// handle takes the whole frame at the front of in through the Handler.
func (c *conn) handle() {
	c.first = false
	r := c.in.r + 4
	frame := c.in.buf.b[r : r+c.frame.size : r+c.frame.size]
	s := c.srv.slot()
	if c.frame.fallback {
		low, high, _ := c.srv.cfg.Supports(keyAPIVersions)
		s.req.Key, s.correlation = keyAPIVersions, peekHeader(frame).correlation
		c.consume()
		c.place(s, Reply{Body: apiVersionsFallback{low, high}})
		return
	}
	if err := c.parse(s, frame); err != nil {
		h := peekHeader(frame)
		c.last = &ending{reasonUnparsable, err.Error(), h.key, h.version}
		c.consume()
		return
	}
	c.srv.count.request(s.req.Key)
	reply := c.srv.cfg.Handler.Handle(c.ctx, &s.req)
	c.consume()
	c.place(s, reply)
}

// consume drops the frame at the front of in. A large buffer stays, charged, for the next frame whose start is in it, unless others wait.
func (c *conn) consume() {
	in := &c.in
	in.r += 4 + c.frame.size
	c.earned = max(c.earned, min(4+c.frame.size+4+minFrame, largestClass))
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
		if len(in.buf.b) > chunkSize {
			c.srv.buffers.put(in.buf)
			in.buf = nil
		}
	case len(in.buf.b) > chunkSize && c.srv.budget.waiting.Load() > 0, c.frame.waiter.favored:
		c.vacate()
	}
	c.lower()
	c.leaveBudget()
	c.frame = frameState{waiter: waiter{wake: c.wakeFn}}
}

// finish releases all that the connection holds, closes it and says why.
func (c *conn) finish(e *ending) {
	c.cancel()
	c.abandon()
	// After a panic the handler may still hold the frame: its buffer is left to the garbage collector.
	if e.reason == reasonPanic {
		c.in.buf = nil
	}
	c.drop()
	c.srv.count.closed[e.reason].Add(1)
	c.nc.Close() //nolint:errcheck // it ends either way
	attrs := []slog.Attr{
		slog.String("peer", c.info.Remote.String()), slog.String("listener", c.info.Listener),
		slog.String("client_id", c.clientID), slog.String("detail", e.detail),
	}
	if e.key >= 0 || e.version >= 0 {
		attrs = append(attrs, slog.Int("key", int(e.key)), slog.Int("version", int(e.version)))
	}
	if e.reason.quiet() {
		c.srv.log.LogAttrs(context.Background(), slog.LevelDebug, "connection ended", append(attrs, slog.String("reason", e.reason.String()))...)
		return
	}
	c.srv.quiet.warn(e.reason, "connection ended", attrs...)
}

// abandon cancels the pending answers and releases the sections of those that will not be sent.
func (c *conn) abandon() {
	defer func() {
		if p := recover(); p != nil {
			c.srv.quiet.warn(reasonPanic, "panic while a connection was given up", slog.String("detail", fmt.Sprintf("%v\n%s", p, debug.Stack())))
		}
	}()
	defer c.dropOut()
	for c.answers.len() > 0 {
		s := c.answers.pop()
		switch {
		case s.pending != nil:
			s.pending.Cancel()
		case s.reply.Body != nil:
			s.reply.Body.Encode(&c.out, s.req.Version) // only this tells which sections it has
		}
	}
}
