package log

import (
	"fmt"
	"io"

	"gregor/log/batch"
)

// entriesBytes is how much Entries reads at once; an entry that is larger is read whole.
const entriesBytes = 64 << 10

// Entries reads the entries of a slice one after the other, for readers that cannot take the bytes as they are stored. Its zero value is
// ready for Reset; it reuses its buffer.
type Entries struct {
	slice    *Slice
	from     int64 // position of the next entry in the slice
	buf      []byte
	pos, end int // of what is read and not used
}

// Reset starts on s, which must stay as it is, unreleased, until the last Next. skip bytes at its start, which must be whole entries, are
// left out.
func (e *Entries) Reset(s *Slice, skip int) {
	e.slice, e.from, e.pos, e.end = s, int64(skip), 0, 0
}

// Release lets the slice go, and a buffer that is too large to keep.
func (e *Entries) Release() {
	e.slice = nil
	if cap(e.buf) > 1<<20 {
		e.buf = nil
	}
}

// Pos is how many bytes of the slice were read as entries, with those that were skipped.
func (e *Entries) Pos() int { return int(e.from) }

// Next returns the next whole entry, valid until the next call. io.EOF is the end: an entry that is cut off there is left out. Damage is a
// *CorruptError. The checksum is not checked.
func (e *Entries) Next() ([]byte, error) {
	left := e.slice.Size - int(e.from)
	if left <= batch.MagicPos {
		return nil, io.EOF
	}
	if err := e.have(batch.MagicPos + 1); err != nil {
		return nil, err
	}
	size, err := batch.EntrySize(e.buf[e.pos:e.end])
	if err != nil {
		return nil, e.corrupt(err)
	}
	if size > left {
		return nil, io.EOF
	}
	if err := e.have(size); err != nil {
		return nil, err
	}
	b := e.buf[e.pos : e.pos+size : e.pos+size]
	e.pos += size
	e.from += int64(size)
	return b, nil
}

// have reads until n bytes, which the slice has, are at buf[pos:].
func (e *Entries) have(n int) error {
	if e.end-e.pos >= n {
		return nil
	}
	want := min(max(n, entriesBytes), e.slice.Size-int(e.from))
	if len(e.buf) < want {
		e.buf = append(make([]byte, 0, max(want, entriesBytes)), e.buf[e.pos:e.end]...)
		e.buf = e.buf[:cap(e.buf)]
	} else {
		copy(e.buf, e.buf[e.pos:e.end])
	}
	e.end -= e.pos
	e.pos = 0
	got, err := e.slice.File.ReadAt(e.buf[e.end:want], e.slice.Pos+e.from+int64(e.end))
	e.end += got
	if e.end < n {
		return fmt.Errorf("reading %s: %w", e.slice.path(), noEOF(err))
	}
	return nil
}

func (e *Entries) corrupt(err error) error {
	return &CorruptError{File: e.slice.path(), Pos: e.slice.Pos + e.from, Err: err}
}

func (s *Slice) path() string {
	if s.seg == nil {
		return "segment"
	}
	return s.seg.path(logExt)
}

// NewerThan reports if any whole entry of the slice has a magic above magic.
func (s *Slice) NewerThan(magic int8) (bool, error) {
	blocks := &s.handles.blocks
	buf := blocks.get()
	defer blocks.put(buf)
	scan := scanner{file: s.File, pos: s.Pos, end: s.Pos + int64(s.Size), buf: buf.b}
	for {
		// An entry that is cut off at the end may be so small that not even its head is whole.
		if scan.end-scan.pos < batch.MinEntrySize {
			return false, nil
		}
		size, m, err := scan.overhead()
		switch {
		case err != nil:
			return false, fmt.Errorf("reading %s: %w", s.path(), err)
		case int64(size) > scan.end-scan.pos:
			return false, nil
		case m > magic:
			return true, nil
		}
		scan.pos += int64(size)
	}
}

// overhead reads size and magic of the entry at pos.
func (s *scanner) overhead() (size int, magic int8, err error) {
	head, err := s.bytes(s.pos, batch.MagicPos+1)
	if err != nil {
		return 0, 0, err
	}
	size, err = batch.EntrySize(head)
	return size, int8(head[batch.MagicPos]), err
}
