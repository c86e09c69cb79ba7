package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"gregor/log/producer"
	"gregor/log/vfs"
)

// The transaction indexes of a log. A file is a hint like any other, but one that could be short without looking wrong: so the entries for
// markers that this process did not write or replay count only after they were compared with the log, once, when they are first needed.

// AbortedIn lists the aborted transactions that have offsets in [from, to), in the order of their markers, from all segments: Kafka's
// collectAbortedTransactions. Transactions that are not decided yet are not among them; below the last stable offset all are.
func (l *Log) AbortedIn(from, to int64) ([]AbortedTxn, error) {
	for {
		list := l.list.Load()
		out, err := l.abortedIn(*list, from, to)
		if err == nil || !l.changedSince(list) {
			return out, err
		}
	}
}

func (l *Log) abortedIn(list segments, from, to int64) (out []AbortedTxn, err error) {
	if from >= to {
		return nil, nil
	}
	for i := max(list.find(from), 0); i < len(list); i++ {
		s := list[i]
		if s.base >= to {
			first, err := s.openAtBase()
			if err != nil || first >= to {
				return out, err
			}
		}
		if err := l.prove(list[:i+1], from); err != nil {
			return nil, err
		}
		done := false
		if out, done, err = s.abortedBetween(from, to, out); err != nil || done {
			return out, err
		}
	}
	return out, nil
}

// AbortedFor lists the aborted transactions that a reader of slice, who asked for offset from, must know: those that overlap [from, end of slice).
// The end is taken from the offset index, which may name one somewhat further on, as in Kafka. The slice must not have been read beyond the last
// stable offset.
func (l *Log) AbortedFor(from int64, slice *Slice) ([]AbortedTxn, error) {
	for {
		list := l.list.Load()
		out, err := l.abortedFor(*list, from, slice)
		if err == nil || !l.changedSince(list) {
			return out, err
		}
	}
}

func (l *Log) abortedFor(list segments, from int64, slice *Slice) ([]AbortedTxn, error) {
	i := max(list.find(slice.Offset), 0)
	s, end := list[i], l.EndOffset()
	if i < len(list)-1 {
		end = list[i+1].base
	}
	if err := l.prove(list[:i+1], from); err != nil {
		return nil, err
	}
	// Without entries the exact end matters little: there is nothing to leave out.
	if s.aborted.entries() > 0 && slice.seg == s {
		upper, err := s.offsetAfter(slice.Pos + int64(slice.Size))
		if err != nil {
			return nil, err
		}
		end = min(end, upper)
	}
	return l.abortedIn(list, from, end)
}

// offsetAfter is the offset of the first index entry for a batch at position pos or above, math.MaxInt64 if there is none.
func (s *segment) offsetAfter(pos int64) (int64, error) {
	for x := &s.offsets; ; {
		t := x.tail.Load()
		offset, err := s.offsetAfterIn(t, pos)
		if x.tail.Load() == t {
			return offset, err
		}
	}
}

func (s *segment) offsetAfterIn(t *tail, pos int64) (int64, error) {
	x, n := &s.offsets, int(t.n.Load())
	lo, hi := 0, t.before+n
	file, err := vfs.File(nil), error(nil)
	if t.before > 0 {
		if file, err = s.log.handles.acquire(&x.file, s, x.ext); err != nil {
			return 0, err
		}
		defer s.log.handles.release(&x.file)
	}
	offset := int64(math.MaxInt64)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		var b [offsetEntrySize]byte
		if mid >= t.before {
			copy(b[:], t.b[(mid-t.before)*x.width:])
		} else if _, err := file.ReadAt(b[:], int64(mid*x.width)); err != nil {
			return 0, fmt.Errorf("reading %s: %w", s.path(x.ext), noEOF(err))
		}
		relative, at := offsetEntry(b[:])
		if at < pos {
			lo = mid + 1
		} else {
			hi, offset = mid, s.base+relative
		}
	}
	return offset, nil
}

// unknownOpen is segment.firstOpen of a segment that was found at Open.
const unknownOpen = -1

// openAtBase is an offset that no transaction that was open where s begins starts below; math.MaxInt64: none was open. It comes from the
// producer snapshot there; without one any may have been.
func (s *segment) openAtBase() (int64, error) {
	if known := s.firstOpen.Load(); known != unknownOpen {
		return known, nil
	}
	entries, err := s.log.readSnapshot(s.base)
	if err != nil {
		return 0, err
	}
	first := int64(math.MaxInt64)
	for i := range entries {
		if at := entries[i].TxnFirstOffset; at >= 0 {
			first = min(first, at)
		}
	}
	if entries == nil {
		first = 0
	}
	s.firstOpen.Store(first)
	return first, nil
}

// readSnapshot reads the producer snapshot at offset; nil if there is none that can be used.
func (l *Log) readSnapshot(offset int64) ([]producer.Entry, error) {
	b, err := vfs.ReadFile(l.fs, filepath.Join(l.Dir(), fileName(offset, snapshotExt)), maxSnapshotFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := producer.DecodeSnapshot(b)
	if err != nil {
		return nil, nil
	}
	return entries, nil
}

// prove makes sure that the transaction index of the last segment of list is right for markers from offset from on.
func (l *Log) prove(list segments, from int64) error {
	s := list.active()
	if max(from, s.base) >= s.proven.Load() {
		return nil
	}
	l.proving.Lock()
	defer l.proving.Unlock()
	upTo := s.proven.Load()
	if upTo == s.base {
		return nil
	}
	want, err := l.abortedByLog(list, upTo)
	if err != nil {
		return fmt.Errorf("checking %s: %w", s.path(txnExt), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(*l.list.Load(), s) {
		return fmt.Errorf("checking %s: %w", s.path(txnExt), errReplaced)
	}
	if err := s.setAborted(want, upTo); err != nil {
		return err
	}
	s.proven.Store(s.base)
	return nil
}

// errReplaced is a segment that was truncated or deleted; whoever asked looks at the new list.
var errReplaced = errors.New("segment was replaced")

// abortedByLog finds what the transaction index of the last segment of list must have for markers below upTo, as encoded entries.
func (l *Log) abortedByLog(list segments, upTo int64) (entries []byte, err error) {
	s, now := list.active(), l.now().UnixMilli()
	state := producer.New(math.MaxInt64)
	at, err := l.stateBefore(state, list, now)
	if err != nil {
		return nil, err
	}
	r := &recovery{Log: l, list: list}
	err = r.entries(at, func(scan *scanner, file vfs.File) (bool, error) {
		if scan.entry.BaseOffset >= upTo {
			return false, nil
		}
		if scan.entry.Magic < 2 || scan.entry.BaseOffset < at {
			return true, nil
		}
		done, err := l.replay(state, scan, file, now)
		if done != nil && done.LastOffset >= s.base {
			entries = appendAborted(entries, AbortedTxn{ProducerID: done.ProducerID, FirstOffset: done.FirstOffset, LastOffset: done.LastOffset,
				LastStableOffset: done.LastStableOffset})
		}
		return err == nil, err
	})
	return entries, err
}

// stateBefore restores the newest usable snapshot at or below the base of the last segment of list, and says where it is.
func (l *Log) stateBefore(state *producer.State, list segments, now int64) (at int64, err error) {
	base := list.active().base
	l.mu.Lock()
	offsets := slices.Clone(l.snapshots.offsets)
	l.mu.Unlock()
	for _, at := range slices.Backward(offsets) {
		if at > base || at < list[0].base {
			continue
		}
		entries, err := l.readSnapshot(at)
		if err != nil {
			return 0, err
		}
		if entries != nil {
			state.Restore(entries, at, now)
			return at, nil
		}
	}
	return list[0].base, nil
}

// setAborted makes want the entries for markers below upTo, which are the unproven ones. If the file has them nothing changes. Log.mu must be
// held.
func (s *segment) setAborted(want []byte, upTo int64) error {
	x := &s.aborted
	exact := true
	if upTo == unproven {
		var err error
		if exact, err = s.readAborted(math.MaxInt64); err != nil {
			return err
		}
	}
	var have, rest []byte
	err := x.visit(x.tail.Load(), 0, func(b []byte) bool {
		if x.key(b) < upTo {
			have = append(have, b...)
		} else {
			rest = append(rest, b...)
		}
		return true
	})
	if err != nil {
		return err
	}
	if exact && string(have) == string(want) {
		return nil
	}
	s.log.logger.Warn("rebuilding the transaction index of a segment", "file", s.path(txnExt), "entries", len(want)/txnEntrySize, "found", len(have)/txnEntrySize)
	all := append(want, rest...)
	// Readers of the old entries notice the new tail before the file changes.
	t := &tail{b: all}
	t.n.Store(int32(len(all) / txnEntrySize))
	x.tail.Store(t)
	s.writer.abortedInFile = 0
	if err := x.write(0, all); err != nil {
		s.log.logger.Warn("rebuilt transaction index cannot be written and stays in memory", "file", s.path(txnExt), "error", err)
		return nil
	}
	s.writer.abortedInFile = len(all) / txnEntrySize
	return nil
}

// cutAborted leaves the entries for markers below end, in the file.
func (s *segment) cutAborted(end int64) error {
	x := &s.aborted
	last, err := x.floor(end - 1)
	if err != nil || x.entries() == 0 {
		return err
	}
	return x.cut(last.number + 1)
}

// beginAborted prepares the segments whose transaction index is not known for a replay from offset from on: the entries below are taken from
// the file until they are proven.
func (r *recovery) beginAborted(from int64) error {
	for i, s := range r.list {
		newest := i == len(r.list)-1
		if s.proven.Load() != unproven || !newest && r.list[i+1].base <= from {
			continue
		}
		s.aborted.reset(0)
		if _, ok := r.inv.files[fileKey{s.base, txnExt}]; (ok || r.inv.files == nil) && from > s.base {
			if _, err := s.readAborted(from); err != nil {
				return err
			}
		}
		s.writer.abortedInFile = s.aborted.entries()
		s.proven.Store(max(from, s.base))
		r.replayed = append(r.replayed, s)
	}
	return nil
}

// proveUnsynced compares the transaction indexes above the recovery point with the log after an unclean stop, so that the files are right for
// whoever else opens them.
func (r *recovery) proveUnsynced() error {
	if !r.hadTransactions() {
		// Most logs: nothing is read for those who only ask if something was aborted.
		for _, s := range r.list {
			s.proven.Store(s.base)
			s.firstOpen.CompareAndSwap(unknownOpen, math.MaxInt64)
		}
		return nil
	}
	if r.clean || r.fast {
		return nil
	}
	for i := len(r.list) - 1; i >= 0; i-- {
		if i < len(r.list)-1 && r.list[i+1].base <= r.point {
			break
		}
		if err := r.prove(r.list[:i+1], r.list[i].base); err != nil {
			return err
		}
	}
	return nil
}

// hadTransactions says that there is a transaction index or a producer of transactions. Where all of both are missing nothing was aborted, but for
// one whose producers were idle for producer.id.expiration.ms before somebody deleted every index.
func (r *recovery) hadTransactions() bool {
	for key := range r.inv.files {
		if key.ext == txnExt {
			return true
		}
	}
	return r.producers.Transactional()
}

// noteAborted adds a transaction that the replay saw end.
func (r *recovery) noteAborted(c *producer.Completed) {
	i := r.list.find(c.LastOffset)
	if s := r.list[i]; slices.Contains(r.replayed, s) {
		s.addAborted(c)
	}
}

// endAborted writes the transaction indexes of the replayed segments where the files are different.
func (r *recovery) endAborted() error {
	for _, s := range r.replayed {
		t := s.aborted.tail.Load()
		b := t.b[:int(t.n.Load())*txnEntrySize]
		_, exists := r.inv.files[fileKey{s.base, txnExt}]
		if !exists && r.inv.files != nil && s.aborted.entries() == 0 {
			continue
		}
		same, err := s.sameAborted(t.before, b)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !same && (err == nil || s.aborted.entries() > 0) {
			r.logger.Warn("transaction index of a segment is not what the log says and is written anew", "file", s.path(txnExt), "entries", s.aborted.entries())
			s.writeAborted()
			r.changed = true
		}
		if !r.clean && s.aborted.entries() > 0 {
			r.needSync(&fileSync{r.Log, s.name(txnExt)})
		}
	}
	r.replayed = nil
	return nil
}
