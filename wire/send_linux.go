package wire

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendfileMax bounds one sendfile call, so that progress is seen and counted on a fast connection too.
const sendfileMax = 8 << 20

// transfer is the state of a sendfile of one section. Its functions are bound once per connection that uses it.
type transfer struct {
	src    int
	off    int64
	left   int
	moved  int // in this round
	err    error
	cork   int
	conn   *conn
	sendFn func(fd uintptr) bool
	fromFn func(fd uintptr)
	corkFn func(fd uintptr)
}

// sendsFiles reports whether sections can go out by sendfile on this connection.
func (c *conn) sendsFiles() bool {
	if c.sock.raw == nil {
		return false
	}
	if c.xfer == nil {
		x := &transfer{conn: c}
		x.sendFn, x.fromFn, x.corkFn = x.send, x.from, x.setCork
		c.xfer = x
	}
	return true
}

// sendBurst sends headers and sections under TCP_CORK: only full segments leave before the end.
func (c *conn) sendBurst() error {
	c.cork(1)
	err := c.sendParts(c.sendSection)
	c.cork(0)
	return err
}

// cork sets TCP_CORK. It is about packets only, so an error, which means a broken connection, shows at the next write.
func (c *conn) cork(on int) {
	c.xfer.cork = on
	c.sock.raw.Control(c.xfer.corkFn) //nolint:errcheck // see above
}

func (x *transfer) setCork(fd uintptr) {
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, x.cork) //nolint:errcheck // see cork
}

// sendSection sends one section by sendfile, or by copying if its source has no descriptor or does not allow it.
func (c *conn) sendSection(s *Section) error {
	file, ok := s.Source.(syscall.Conn)
	if !ok {
		return c.copySection(s)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return c.copySection(s)
	}
	x := c.xfer
	x.off, x.left, x.moved, x.err = s.Off, s.Len, 0, nil
	// The descriptor stays valid inside Control even if the file is closed meanwhile.
	if err := raw.Control(x.fromFn); err != nil {
		return c.copySection(s)
	}
	if unsupported(x.err) {
		return c.copyRest(s, s.Len-x.left)
	}
	return x.err
}

// from runs with the descriptor of the source.
func (x *transfer) from(fd uintptr) {
	x.src = int(fd)
	c := x.conn
	var since time.Time
	for {
		x.moved = 0
		err := c.sock.raw.Write(x.sendFn)
		c.srv.count.bytesOut.Add(int64(x.moved))
		c.srv.count.direct.Add(int64(x.moved))
		if err == nil {
			return
		}
		if err := c.writeExpired(err, x.moved > 0, &since); err != nil {
			x.err = err
			return
		}
	}
}

// send is called by the runtime's poller, first at once and then whenever the socket became writable.
func (x *transfer) send(fd uintptr) bool {
	for x.left > 0 {
		n, err := unix.Sendfile(int(fd), x.src, &x.off, min(x.left, sendfileMax))
		switch {
		case n > 0:
			x.left -= n
			x.moved += n
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return false
		case err == nil:
			x.err = errShort
			return true
		default:
			x.err = os.NewSyscallError("sendfile", err)
			return true
		}
	}
	return true
}

// unsupported reports whether sendfile refused the kind of source.
func unsupported(err error) bool {
	sys, ok := err.(*os.SyscallError)
	return ok && (sys.Err == unix.EINVAL || sys.Err == unix.ENOSYS || sys.Err == unix.EOVERFLOW)
}
