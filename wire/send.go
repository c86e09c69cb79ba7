package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// copyLimit is up to how many bytes of sections an answer is copied into one write instead of sent by sendfile. With the rest of the answer
// that fits a buffer of 64 KiB, which is where the two cross. BenchmarkSection, Linux 6.18, loopback, page cache larger than the
// processor's, processor time of the sender in µs for a section of
//
//	          1 KiB  4 KiB  16 KiB  32 KiB  64 KiB  128 KiB  256 KiB
//	copy        2.5    2.1     4.3     6.0    14.5     20.4     47
//	sendfile    6.0    5.6     6.0     7.9    15.2     27       43
const copyLimit = 60 << 10

// errShort says that a section has fewer bytes than promised. The frame's length is out already, so only the connection's end is honest.
var errShort = errors.New("section ends early: the file was truncated")

// errStream is a section whose Stream failed. Again only the connection's end is honest.
var errStream = errors.New("section could not be made")

// errSlow says that the peer took nothing for the idle timeout.
var errSlow = errors.New("peer takes no bytes")

// flush writes all answers that are ready and lets go of their sections.
func (c *conn) flush() *ending {
	if c.unsent == 0 {
		return nil
	}
	if c.mute {
		c.dropOut()
		return nil
	}
	err := c.send()
	c.dropOut()
	c.lastActive = time.Now()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errShort), errors.Is(err, errStream):
		return end(reasonShortSection, err.Error())
	case errors.Is(err, errSlow):
		return end(reasonSlowReader, fmt.Sprintf("took no bytes for %v (connections.max.idle.ms, less while others wait for its request's memory)", c.patience()))
	case c.srv.stopping.Load():
		return end(reasonShutdown, err.Error())
	}
	return end(reasonConnError, err.Error())
}

// dropOut empties out, sent or not.
func (c *conn) dropOut() {
	c.unsent = 0
	c.out.release()
	c.srv.buffers.put(c.outBuf)
	c.outBuf = nil
}

func (c *conn) send() error {
	if len(c.out.sections) == 0 {
		return c.write(c.out.Buf)
	}
	if n := c.out.sectionBytes(); n <= copyLimit {
		return c.sendGathered(n)
	}
	if c.sendsFiles() {
		return c.sendBurst()
	}
	return c.sendParts(c.copySection)
}

// sendGathered copies the sections, n bytes in all, between the bytes of Buf and writes everything at once.
func (c *conn) sendGathered(n int) error {
	buf := c.srv.buffers.get(len(c.out.Buf) + n)
	defer c.srv.buffers.put(buf)
	w, from := 0, 0
	for i := range c.out.sections {
		s := &c.out.sections[i]
		w += copy(buf.b[w:], c.out.Buf[from:s.at])
		from = s.at
		var err error
		if b := buf.b[w : w+s.Len]; s.Stream != nil {
			err = s.pieces(func(piece []byte) error {
				b = b[copy(b, piece):]
				return nil
			})
		} else {
			err = readSection(&s.Section, b, 0)
		}
		if err != nil {
			return err
		}
		w += s.Len
	}
	w += copy(buf.b[w:], c.out.Buf[from:])
	return c.write(buf.b[:w])
}

// sendParts writes Buf and sections in order.
func (c *conn) sendParts(section func(*Section) error) error {
	from := 0
	for i := range c.out.sections {
		s := &c.out.sections[i]
		if err := c.write(c.out.Buf[from:s.at]); err != nil {
			return err
		}
		from = s.at
		var err error
		if s.Stream != nil {
			err = s.pieces(c.write)
		} else {
			err = section(&s.Section)
		}
		if err != nil {
			return err
		}
	}
	return c.write(c.out.Buf[from:])
}

// pieces gives use all bytes of a section that has a Stream.
func (s *Section) pieces(use func([]byte) error) error {
	for left := s.Len; left > 0; {
		b, err := s.Stream.Next()
		switch {
		case err != nil:
			return fmt.Errorf("%w, %d bytes are missing: %w", errStream, left, err)
		case len(b) == 0:
			return fmt.Errorf("%w, %d bytes are missing: %w", errStream, left, io.ErrNoProgress)
		}
		b = b[:min(len(b), left)]
		if err := use(b); err != nil {
			return err
		}
		left -= len(b)
	}
	return nil
}

// copySection sends a section through a pooled buffer.
func (c *conn) copySection(s *Section) error { return c.copyRest(s, 0) }

// copyRest sends what lies behind the first done bytes of a section through a pooled buffer.
func (c *conn) copyRest(s *Section, done int) error {
	buf := c.srv.buffers.get(min(copyBuffer, s.Len-done))
	defer c.srv.buffers.put(buf)
	for done < s.Len {
		b := buf.b[:min(len(buf.b), s.Len-done)]
		if err := readSection(s, b, done); err != nil {
			return err
		}
		if err := c.write(b); err != nil {
			return err
		}
		done += len(b)
	}
	return nil
}

// readSection fills b from the section, done bytes behind its start.
func readSection(s *Section, b []byte, done int) error {
	n, err := s.Source.ReadAt(b, s.Off+int64(done))
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%w: offset %d, %d bytes missing", errShort, s.Off+int64(done+n), len(b)-n)
	}
	return fmt.Errorf("read section at offset %d: %w", s.Off+int64(done+n), err)
}

// write sends b. The write deadline is not touched as long as writes do not block for long.
func (c *conn) write(b []byte) error {
	var since time.Time
	for len(b) > 0 {
		n, err := c.nc.Write(b)
		b = b[n:]
		c.srv.count.bytesOut.Add(int64(n))
		if err == nil {
			continue
		}
		if err := c.writeExpired(err, n > 0, &since); err != nil {
			return err
		}
	}
	return nil
}

// writeExpired takes the error of a write. If that is the write deadline the peer gets its time (patience) from its last progress; since is when
// that was seen and is kept over the calls of one write. The deadline that is set may be an old one, so the first one proves nothing: a
// peer is given up between one and two times that after its last progress.
func (c *conn) writeExpired(err error, progress bool, since *time.Time) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	now := time.Now()
	if progress || since.IsZero() {
		*since = now
	}
	if now.Sub(*since) >= c.patience() {
		return errSlow
	}
	return c.nc.SetWriteDeadline(since.Add(c.patience()))
}
