package batch

import (
	"errors"
	"fmt"
	"io"
)

const (
	// windowSize is how much inflated data is held at a time. Records up to this size are seen in one piece.
	windowSize = 64 << 10
	// keepScratch is the largest scratch buffer that is kept for the next batch.
	keepScratch = 1 << 20
)

// errEnd is inflated data that ends before the records do.
var errEnd = fmt.Errorf("%w: compressed data ends inside the records", ErrInvalid)

// window is a bounded look at inflated data. It never holds more than windowSize, but for take of a larger piece.
type window struct {
	r        io.Reader
	buf      []byte // allocated at first use
	pos, end int
	left     int64 // bytes that may still be inflated
	err      error // sticky; io.EOF is the end
	big      []byte
}

func (w *window) reset(r io.Reader, limit int64) {
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
	if cap(w.big) > keepScratch {
		w.big = nil
	}
	w.r, w.pos, w.end, w.left, w.err = r, 0, 0, limit, nil
}

// fill makes at least n ≤ windowSize bytes available at buf[pos:end], or all that there are. It reports if there are n.
func (w *window) fill(n int) bool {
	if w.end-w.pos >= n {
		return true
	}
	if w.pos+n > len(w.buf) || w.pos == w.end {
		w.end = copy(w.buf, w.buf[w.pos:w.end])
		w.pos = 0
	}
	for w.end-w.pos < n {
		if !w.more() {
			return false
		}
	}
	return true
}

// more reads once into the free part of buf.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	// One byte above the limit is asked for, to tell the end from too much.
	room := min(int64(len(w.buf)-w.end), w.left+1)
	n, err := w.r.Read(w.buf[w.end : w.end+int(room)])
	if int64(n) > w.left {
		w.err = fmt.Errorf("%w: it inflates to more than the limit", ErrTooLarge)
		return false
	}
	w.left -= int64(n)
	w.end += n
	switch {
	case err == io.EOF:
		w.err = io.EOF
	case err != nil:
		w.err = damaged(err)
	case n == 0:
		w.err = damaged(io.ErrNoProgress)
	}
	return n > 0
}

// damaged says that compressed data cannot be inflated.
func damaged(err error) error {
	if errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: inflating it: %w", ErrInvalid, err)
}

// fail is the reason why data that must be there is not.
func (w *window) fail() error {
	if w.err == nil || w.err == io.EOF {
		return errEnd
	}
	return w.err
}

// atEnd reports if all data was read, and if reading on finds damage (a trailing checksum, say) why.
func (w *window) atEnd() (bool, error) {
	if w.fill(1) {
		return false, nil
	}
	if w.err != io.EOF {
		return false, w.err
	}
	return true, nil
}

// varint reads a varint of at most most bytes (5 or 10).
func (w *window) varint(most int) (v int64, size int, err error) {
	w.fill(most)
	v, i := slowVarint(w.buf[:w.end], w.pos, most)
	if i < 0 {
		if w.end-w.pos < most {
			return 0, 0, w.fail()
		}
		return 0, 0, fmt.Errorf("%w: a varint is too long", ErrInvalid)
	}
	size = i - w.pos
	w.pos = i
	return v, size, nil
}

// skip passes over n bytes.
func (w *window) skip(n int64) error {
	for n > 0 {
		if !w.fill(1) {
			return w.fail()
		}
		k := min(n, int64(w.end-w.pos))
		w.pos += int(k)
		n -= k
	}
	return nil
}

// take returns the next n bytes in one piece, valid until the next call. A piece over windowSize is collected as it is inflated, so that a
// length that lies costs no memory.
func (w *window) take(n int) ([]byte, error) {
	if n <= len(w.buf) {
		if !w.fill(n) {
			return nil, w.fail()
		}
		b := w.buf[w.pos : w.pos+n]
		w.pos += n
		return b, nil
	}
	w.big = w.big[:0]
	for len(w.big) < n {
		if !w.fill(1) {
			return nil, w.fail()
		}
		k := min(n-len(w.big), w.end-w.pos)
		w.big = append(w.big, w.buf[w.pos:w.pos+k]...)
		w.pos += k
	}
	return w.big, nil
}

// release lets go of the data source and of scratch that is too large to keep.
func (w *window) release() {
	w.r = nil
	if cap(w.big) > keepScratch {
		w.big = nil
	}
}
