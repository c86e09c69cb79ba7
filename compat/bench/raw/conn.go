package raw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

const (
	answerLimit = 120 * time.Second // a broker silent for longer ends the run
	frameLimit  = 64 << 20
)

// ErrFrame means that the broker's bytes are not the answer that the request calls for.
var ErrFrame = errors.New("unexpected answer")

// Conn is one blocking connection. ReadFrame and Discard share its buffer and belong to one goroutine, Write to one.
type Conn struct {
	file *os.File
	fd   int
	buf  []byte
	r, w int // unread bytes are buf[r:w]
	corr int32
}

// Dial connects to host:port.
func Dial(addr string) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer nc.Close() // File made a copy
	file, err := nc.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	c := &Conn{file: file, fd: int(file.Fd()), buf: make([]byte, 64<<10)} // Fd makes the socket blocking
	limit := unix.NsecToTimeval(int64(answerLimit))
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		file.Close()
		return nil, fmt.Errorf("receive timeout of the socket to %s: %w", addr, err)
	}
	return c, nil
}

// Abort ends both directions, so that a goroutine blocked in a read or write returns. Close is still needed.
func (c *Conn) Abort() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

// Close frees the socket; nobody may be using it.
func (c *Conn) Close() error { return c.file.Close() }

// Write sends all of p.
func (c *Conn) Write(p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(c.fd, p)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("write to broker: %w", err)
		}
		p = p[n:]
	}
	return nil
}

// need makes at least n bytes unread in the buffer, growing it when it is smaller.
func (c *Conn) need(n int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	if c.r+n > len(c.buf) {
		if n > len(c.buf) {
			grown := make([]byte, n)
			c.w = copy(grown, c.buf[c.r:c.w])
			c.buf = grown
		} else {
			c.w = copy(c.buf, c.buf[c.r:c.w])
		}
		c.r = 0
	}
	for c.w-c.r < n {
		got, err := c.recv(c.buf[c.w:], 0)
		if err != nil {
			return err
		}
		c.w += got
	}
	return nil
}

func (c *Conn) recv(p []byte, flags int) (int, error) {
	for {
		n, _, errno := syscall.Syscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return 0, fmt.Errorf("read from broker: %w", errno)
		case n == 0:
			return 0, fmt.Errorf("read from broker: %w", io.ErrUnexpectedEOF)
		default:
			return int(n), nil
		}
	}
}

// ReadFrame returns the next answer without its size field. The bytes are valid until the next call on c.
func (c *Conn) ReadFrame() ([]byte, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(c.buf[c.r:]))
	if size < 4 || size > frameLimit {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrFrame, size)
	}
	if err := c.need(4 + size); err != nil {
		return nil, err
	}
	frame := c.buf[c.r+4 : c.r+4+size]
	c.r += 4 + size
	return frame, nil
}

// Buffered tells whether a whole frame can be read without waiting.
func (c *Conn) Buffered() bool {
	return c.w-c.r >= 4 && c.w-c.r >= 4+int(binary.BigEndian.Uint32(c.buf[c.r:]))
}

// Peek returns exactly n bytes and consumes them; it reads no byte beyond them from the socket.
func (c *Conn) Peek(n int) ([]byte, error) {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	for c.w-c.r < n {
		got, err := c.recv(c.buf[c.w:c.r+n], unix.MSG_WAITALL)
		if err != nil {
			return nil, err
		}
		c.w += got
	}
	c.r += n
	return c.buf[c.r-n : c.r], nil
}

// Discard drops the next n bytes. What is not yet buffered is dropped by the kernel without a copy; scratch only names
// an address range and must be at least as long as the pieces to be dropped at once.
func (c *Conn) Discard(n int, scratch []byte) error {
	had := min(n, c.w-c.r)
	c.r += had
	for n -= had; n > 0; {
		got, err := c.recv(scratch[:min(n, len(scratch))], unix.MSG_TRUNC|unix.MSG_WAITALL)
		if err != nil {
			return err
		}
		n -= got
	}
	return nil
}

// Do sends one request of the version set in it and decodes the answer. It allocates: for set-up, not for load.
func (c *Conn) Do(req kmsg.Request) (kmsg.Response, error) {
	if err := c.Send(req); err != nil {
		return nil, err
	}
	return c.Receive(req)
}

// Send is the first half of Do.
func (c *Conn) Send(req kmsg.Request) error {
	c.corr++
	return c.Write(Encode(req, c.corr))
}

// Receive is the second half of Do: the answer to the request that was sent last.
func (c *Conn) Receive(req kmsg.Request) (kmsg.Response, error) {
	frame, err := c.ReadFrame()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.corr {
		return nil, fmt.Errorf("%w: correlation id %d for %d", ErrFrame, got, c.corr)
	}
	body := frame[4:]
	if req.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		body = body[1:] // no tagged fields in the header
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFrame, kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

// Encode is the request with size field and header.
func Encode(req kmsg.Request, correlationID int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("gregor-bench")).AppendRequest(nil, req, correlationID)
}
