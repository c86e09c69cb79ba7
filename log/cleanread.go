package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"gregor/log/batch"
)

// entries calls visit for every whole entry of s from the one that holds offset from on, until it wants no more. Checksums are checked: what is
// damaged must be neither trusted nor removed. The bytes are valid during the call.
func (c *clean) entries(s *segment, from int64, visit func(b []byte) (bool, error)) error {
	file, err := c.handles.acquire(&s.data, s, logExt)
	if errors.Is(err, fs.ErrNotExist) {
		return errSegmentGone
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.path(logExt), err)
	}
	defer c.handles.release(&s.data)
	scan := scanner{file: file, end: s.size.Load(), buf: c.buf, verify: true}
	if from > s.base {
		at, err := s.seek(file, from, scan.end)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		scan.pos = at.pos
	}
	for {
		err := scan.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return s.damaged(&scan, err)
		}
		more, err := c.visit(&scan, file, visit)
		if err != nil {
			return s.unread(&scan, err)
		}
		if !more {
			return nil
		}
	}
}

// unread tells what cannot be decoded, which is damage as well, from what else ended a clean.
func (s *segment) unread(scan *scanner, err error) error {
	if !errors.Is(err, batch.ErrInvalid) && !errors.Is(err, batch.ErrCorrupt) && !errors.Is(err, batch.ErrTooLarge) && !errors.Is(err, batch.ErrCodec) {
		return err
	}
	return &CorruptError{File: s.path(logExt), Pos: scan.at, Err: err}
}

// visit hands one entry on.
func (c *clean) visit(scan *scanner, file io.ReaderAt, visit func(b []byte) (bool, error)) (bool, error) {
	size := scan.entry.Size
	b := c.big
	if size <= len(scan.buf) {
		var err error
		if b, err = scan.bytes(scan.at, size); err != nil {
			return false, err
		}
	} else {
		// Its checksum was right, so that its size is no mere claim.
		if cap(b) < size {
			b = make([]byte, size)
			c.big = b
		}
		b = b[:size]
		if _, err := file.ReadAt(b, scan.at); err != nil {
			return false, &readError{noEOF(err)}
		}
	}
	if err := c.pace(size); err != nil {
		return false, err
	}
	return visit(b)
}

// pace waits as long as it has to after some bytes, and looks whether the clean is to end.
func (c *clean) pace(bytes int) error {
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.options.Pace == nil {
		return nil
	}
	return c.options.Pace(bytes)
}
