package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"gregor/log/producer"
)

// Layout of an entry of a .txnindex file, big-endian (Kafka's AbortedTxn, version 0): version int16, producer id, first offset, last offset
// (that of the marker) and last stable offset, each int64. Frozen: this is on disk.
const (
	txnVersion   = 0
	txnIDPos     = 2
	txnFirstPos  = 10
	txnLastPos   = 18
	txnStablePos = 26
	txnEntrySize = 34
)

// AbortedTxn is a transaction that was aborted, as one partition knows it.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64 // of the transaction's first batch
	LastOffset  int64 // of the marker
	// LastStableOffset was the last stable offset once the marker was replicated: everything below it was decided.
	LastStableOffset int64
}

var errTxnEntry = errors.New("not an aborted transaction")

// decodeAborted reads one entry.
func decodeAborted(b []byte) (AbortedTxn, error) {
	if len(b) < txnEntrySize {
		return AbortedTxn{}, fmt.Errorf("%w: %d bytes, an entry has %d", errTxnEntry, len(b), txnEntrySize)
	}
	if v := binary.BigEndian.Uint16(b); v != txnVersion {
		return AbortedTxn{}, fmt.Errorf("%w: version %d, known is %d", errTxnEntry, v, txnVersion)
	}
	a := AbortedTxn{
		ProducerID:       int64(binary.BigEndian.Uint64(b[txnIDPos:])),
		FirstOffset:      int64(binary.BigEndian.Uint64(b[txnFirstPos:])),
		LastOffset:       int64(binary.BigEndian.Uint64(b[txnLastPos:])),
		LastStableOffset: int64(binary.BigEndian.Uint64(b[txnStablePos:])),
	}
	if a.ProducerID < 0 || a.FirstOffset < 0 || a.FirstOffset >= a.LastOffset || a.LastStableOffset < 0 || a.LastStableOffset > a.LastOffset+1 {
		return AbortedTxn{}, fmt.Errorf("%w: %+v", errTxnEntry, a)
	}
	return a, nil
}

func appendAborted(b []byte, a AbortedTxn) []byte {
	b = binary.BigEndian.AppendUint16(b, txnVersion)
	for _, v := range []int64{a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStableOffset} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// unproven is segment.proven of a segment whose transaction index nobody has compared with the log.
const unproven = math.MaxInt64

// addAborted adds the transaction that a marker just ended. Log.mu must be held, or the segment not be shared yet.
func (s *segment) addAborted(c *producer.Completed) {
	var b [txnEntrySize]byte
	s.aborted.add(appendAborted(b[:0], AbortedTxn{ProducerID: c.ProducerID, FirstOffset: c.FirstOffset, LastOffset: c.LastOffset,
		LastStableOffset: c.LastStableOffset}))
}

// writeAborted brings the file up to date; the entries stay in memory too. What cannot be written is tried again with the next entry and
// when the segment is sealed. Log.mu must be held.
func (s *segment) writeAborted() {
	x, w := &s.aborted, &s.writer
	t := x.tail.Load()
	n := int(t.n.Load())
	from := max(w.abortedInFile, t.before)
	if x.write(from, t.b[(from-t.before)*x.width:n*x.width]) == nil {
		w.abortedInFile = t.before + n
	}
}

// readAborted takes the entries at the start of the file that can be right and end below offset below. exact says that the file has nothing
// else.
func (s *segment) readAborted(below int64) (exact bool, err error) {
	last := int64(-1)
	err = s.aborted.readFile(false, false, func(b []byte, _ bool) bool {
		a, err := decodeAborted(b)
		ok := err == nil && a.LastOffset > last && a.LastOffset >= s.base && a.LastOffset < below
		last = a.LastOffset
		return ok
	})
	if err != nil {
		return false, err
	}
	info, err := s.log.fs.Stat(s.path(txnExt))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return info.Size() == int64(s.aborted.entries()*txnEntrySize), nil
}

// abortedBetween appends the entries of transactions that overlap [from, to), in the order of their markers. done says that no later marker
// ends one.
func (s *segment) abortedBetween(from, to int64, out []AbortedTxn) (_ []AbortedTxn, done bool, err error) {
	x, n := &s.aborted, len(out)
	for {
		t := x.tail.Load()
		out, done, err = x.between(t, from, to, out[:n])
		// Another tail may mean that the file was changed while it was read.
		if x.tail.Load() == t {
			return out, done, err
		}
	}
}

func (x *sparse) between(t *tail, from, to int64, out []AbortedTxn) (_ []AbortedTxn, done bool, err error) {
	if t.before == 0 && t.n.Load() == 0 {
		return out, false, nil
	}
	at, err := x.floor(from - 1)
	if err != nil {
		return out, false, err
	}
	err = x.visit(t, at.number+1, func(b []byte) bool {
		a, decodeErr := decodeAborted(b)
		if decodeErr != nil {
			err, done = fmt.Errorf("%s: %w", x.seg.path(x.ext), decodeErr), true
			return false
		}
		if a.FirstOffset < to {
			out = append(out, a)
		}
		done = a.LastStableOffset >= to
		return !done
	})
	return out, done, err
}

// visit calls f for the entries of t from number from on, until it says false.
func (x *sparse) visit(t *tail, from int, f func(entry []byte) bool) error {
	n := int(t.n.Load())
	if from < t.before {
		file, err := x.seg.log.handles.acquire(&x.file, x.seg, x.ext)
		if err != nil {
			return err
		}
		defer x.seg.log.handles.release(&x.file)
		stopped := false
		seen, err := x.count(file, from, t.before, func(b []byte, _ bool) bool {
			stopped = !f(b)
			return !stopped
		})
		if err != nil || seen < t.before || stopped {
			return err
		}
		from = t.before
	}
	for b := t.b[(from-t.before)*x.width : n*x.width]; len(b) > 0; b = b[x.width:] {
		if !f(b[:x.width]) {
			return nil
		}
	}
	return nil
}

// sameAborted says that the file holds b from entry number at on, and nothing after.
func (s *segment) sameAborted(at int, b []byte) (bool, error) {
	f, err := s.log.openRead(s.name(txnExt))
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size != int64(at*txnEntrySize+len(b)) {
		return false, err
	}
	have := make([]byte, len(b))
	if _, err := f.ReadAt(have, int64(at*txnEntrySize)); err != nil && !(errors.Is(err, io.EOF) && len(b) == 0) {
		return false, noEOF(err)
	}
	return string(have) == string(b), nil
}
