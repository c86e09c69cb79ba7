package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// Layout of the index files, big-endian (Kafka's OffsetIndex and TimeIndex; the transaction index is in txnindex.go). Frozen: this is on disk.
const (
	offsetEntrySize = 8  // offset - base int32, position int32
	timeEntrySize   = 12 // timestamp int64, offset - base int32
)

// spillEntries is how many entries of an active segment are held in memory before they are written to the file: with the
// default interval 2 MiB of log, so that the write costs nothing, and at most 10 KiB for both indexes of a log.
const spillEntries = 512

// sparse is an index of a segment: entries of fixed size, ascending by key. The first ones are in the file, the newest,
// while the segment is active, in memory. One goroutine adds, under Log.mu; readers take no lock.
type sparse struct {
	seg   *segment
	ext   string
	width int // of an entry in bytes
	file  sharedFile
	tail  atomic.Pointer[tail]
}

// tail are the entries in memory. b never moves and an entry is written before n counts it, so readers need only n.
type tail struct {
	before int          // entries in the file, which come first
	n      atomic.Int32 // entries in b
	b      []byte
}

func (x *sparse) init(seg *segment, ext string, width int) {
	x.seg, x.ext, x.width = seg, ext, width
	x.tail.Store(&tail{})
}

// key is what an entry is found by: the relative offset, the timestamp, or the offset of the marker.
func (x *sparse) key(entry []byte) int64 {
	switch x.width {
	case offsetEntrySize:
		return int64(int32(binary.BigEndian.Uint32(entry)))
	case txnEntrySize:
		return int64(binary.BigEndian.Uint64(entry[txnLastPos:]))
	}
	return int64(binary.BigEndian.Uint64(entry))
}

// entries is the number of entries.
func (x *sparse) entries() int {
	t := x.tail.Load()
	return t.before + int(t.n.Load())
}

// reset says that the first n entries of the file are good and that there are no others.
func (x *sparse) reset(n int) { x.tail.Store(&tail{before: n}) }

// add appends an entry. An index that cannot be written stays in memory: it is a hint, and sealing the segment tries again.
func (x *sparse) add(entry []byte) {
	t := x.tail.Load()
	n := int(t.n.Load())
	if n*x.width == len(t.b) {
		if n >= spillEntries && x.write(t.before, t.b) == nil {
			t = &tail{before: t.before + n, b: make([]byte, spillEntries*x.width)}
			n = 0
		} else {
			grown := make([]byte, max(8*x.width, 4*len(t.b)))
			copy(grown, t.b)
			t = &tail{before: t.before, b: grown}
			t.n.Store(int32(n))
		}
		x.tail.Store(t)
	}
	copy(t.b[n*x.width:], entry[:x.width])
	t.n.Store(int32(n + 1))
}

// write puts entries into the file, from entry number at on, and cuts off what comes after.
func (x *sparse) write(at int, entries []byte) error {
	fsys, name := x.seg.log.fs, x.seg.path(x.ext)
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if x.width == txnEntrySize && len(entries) == 0 && at == 0 {
			return nil // made on first use, as Kafka does
		}
		f, err = fsys.Create(name)
	}
	if err != nil {
		return err
	}
	pos := int64(at * x.width)
	if len(entries) > 0 {
		_, err = f.WriteAt(entries, pos)
	}
	if err == nil {
		err = f.Truncate(pos + int64(len(entries)))
	}
	return errors.Join(err, f.Close())
}

// seal writes all entries to the file.
func (x *sparse) seal() error {
	t := x.tail.Load()
	n := int(t.n.Load())
	if err := x.write(t.before, t.b[:n*x.width]); err != nil {
		return err
	}
	x.reset(t.before + n)
	return nil
}

// cut keeps the entries below number n, all of them in the file, and syncs it.
func (x *sparse) cut(n int) error {
	err := x.seal()
	if err == nil && n < x.entries() {
		x.reset(n)
		err = x.write(n, nil)
	}
	if err != nil {
		return err
	}
	return (&fileSync{x.seg.log, x.seg.name(x.ext)}).Sync()
}

// found is an entry and its number; number -1: none.
type found struct {
	number int
	entry  [txnEntrySize]byte // of the largest kind
}

// floor finds the last entry whose key is at most target.
func (x *sparse) floor(target int64) (found, error) {
	t := x.tail.Load()
	if n := int(t.n.Load()); n > 0 && (t.before == 0 || x.key(t.b) <= target) {
		return x.floorIn(t.b[:n*x.width], t.before, target), nil
	}
	if t.before == 0 {
		return found{number: -1}, nil
	}
	f, err := x.seg.log.handles.acquire(&x.file, x.seg, x.ext)
	if err != nil {
		return found{number: -1}, err
	}
	defer x.seg.log.handles.release(&x.file)
	return x.floorFile(f, t.before, target)
}

// floorIn searches entries in memory; first is the number of the first of them.
func (x *sparse) floorIn(b []byte, first int, target int64) found {
	lo, hi := 0, len(b)/x.width // the answer is lo-1 once they meet
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.key(b[mid*x.width:]) <= target {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return found{number: -1}
	}
	out := found{number: first + lo - 1}
	copy(out.entry[:], b[(lo-1)*x.width:lo*x.width])
	return out
}

// floorFile searches the n entries of the file, a block at a time. Keys grow about evenly, so that the block is guessed from
// those at the ends of the range, and one or two reads are usual; every second step halves, which bounds the others.
func (x *sparse) floorFile(f io.ReaderAt, n int, target int64) (found, error) {
	blocks := &x.seg.log.handles.blocks
	buf := blocks.get()
	defer blocks.put(buf)
	per := len(buf.b) / x.width
	best := found{number: -1}
	lo, hi := 0, n                     // the answer is best, or in [lo,hi)
	loKey, hiKey := int64(0), int64(0) // keys at the ends, while known hiKey > loKey
	for step := 0; lo < hi; step++ {
		guess := lo + (hi-lo)/2
		if step&1 == 1 && loKey <= target && target < hiKey {
			guess = lo + int(float64(hi-lo)*(float64(target-loKey)/float64(hiKey-loKey)))
		}
		from := max(lo, min(guess-per/2, hi-per))
		b := buf.b[:min(per, hi-from)*x.width]
		if _, err := f.ReadAt(b, int64(from*x.width)); err != nil {
			return best, fmt.Errorf("reading %s: %w", x.seg.path(x.ext), noEOF(err))
		}
		in := x.floorIn(b, from, target)
		switch to := from + len(b)/x.width; {
		case in.number < 0:
			hi, hiKey = from, x.key(b)
		case in.number == to-1 && to < hi:
			best, lo, loKey = in, to, x.key(in.entry[:])
		default:
			return in, nil
		}
	}
	return best, nil
}

// noEOF turns the end of a file inside of what must be there into an error that says so.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
