package wire

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sock is the raw side of a TCP connection: reads that take a buffer only once there are bytes, so that an idle connection has
// none, reads that do not block, and a wait that notices a hangup without reading.
type sock struct {
	raw            syscall.RawConn // nil: not a plain TCP connection
	readFn, holdFn func(fd uintptr) bool
	block          bool
	n              int
	err            error
	poll           [1]unix.PollFd
	peek           [1]byte
}

// attach reports whether the connection has a raw side.
func (c *conn) attach(nc net.Conn) bool {
	tcp, ok := nc.(*net.TCPConn)
	if !ok || c.srv.plain {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	c.sock.raw, c.sock.readFn, c.sock.holdFn = raw, c.tryRead, c.tryHold
	return true
}

// receive reads into room. Without block it returns errAgain when nothing is there.
func (c *conn) receive(block bool) (int, error) {
	s := &c.sock
	if s.raw == nil {
		return c.receivePlain(block)
	}
	s.block, s.n, s.err = block, 0, nil
	if err := s.raw.Read(s.readFn); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// tryRead is called by the runtime's poller, first at once and then whenever the socket became readable.
func (c *conn) tryRead(fd uintptr) bool {
	s := &c.sock
	dst := c.room()
	var err error
	for {
		if dst == nil {
			s.n, _, err = unix.Recvfrom(int(fd), s.peek[:], unix.MSG_PEEK) // the budget is asked only if there is something to read
		} else {
			s.n, err = unix.Read(int(fd), dst)
		}
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err == unix.EAGAIN:
		s.n, c.frame.short = 0, 0
		c.vacate()
		if s.block {
			return false
		}
		s.err = errAgain
	case err != nil:
		s.n, s.err = 0, os.NewSyscallError("read", err)
	case s.n == 0:
		s.err = io.EOF
	case dst == nil:
		s.n = 0 // inspect asks for what is short
	}
	c.in.full = s.n > 0 && s.n == len(dst)
	return true
}

// hold waits for a hangup of the peer, a wake or a deadline and reads nothing.
func (c *conn) hold() (int, error) {
	s := &c.sock
	if s.raw == nil {
		return c.holdPlain()
	}
	c.vacate()
	s.err = nil
	if err := s.raw.Read(s.holdFn); err != nil {
		return 0, err
	}
	return 0, s.err
}

// tryHold looks whether the peer closed. The poller calls it at every change of the socket, since it is registered for hangups as well
// (EPOLLRDHUP) and edge-triggered; the look is at the level, so no change is missed.
func (c *conn) tryHold(fd uintptr) bool {
	s := &c.sock
	s.poll[0] = unix.PollFd{Fd: int32(fd)}
	if !c.hangup {
		s.poll[0].Events = unix.POLLRDHUP
	}
	for {
		_, err := unix.Poll(s.poll[:], 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			s.err = os.NewSyscallError("poll", err)
			return true
		}
		break
	}
	switch got := s.poll[0].Revents; {
	case got&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
		s.err = errReset
		return true
	case got&unix.POLLRDHUP != 0:
		c.hangup = true
		return true
	}
	return false
}
