package log

import (
	"fmt"
	"math"

	"gregor/log/batch"
)

// AppendSet writes a set of several entries, all or nothing, in one write: messages of magic 0 and 1, or batches of magic 2 without producer
// id. build is given the offset that the first record
// gets and returns the entries, one after the other, with offsets from there on: absolute ones inside a wrapper of magic 0, and a wrapper has
// the offset of its last record (KIP-31). build is called with the log locked, since offsets inside compressed data cannot be changed later.
// What it returns is checked before anything is written; leader epochs are stamped into batches of magic 2. It is not kept.
//
// When it returns the set is written, not durable. Errors: those of build and of Append; ErrInvalid of package batch for a set that is no set.
func (l *Log) AppendSet(leaderEpoch int32, build func(base int64) ([]byte, error)) (Appended, error) {
	l.mu.Lock()
	out, err := l.appendSet(leaderEpoch, build)
	l.mu.Unlock()
	if err == nil {
		l.appended(out.LastOffset + 1)
	}
	return out, err
}

func (l *Log) appendSet(leaderEpoch int32, build func(base int64) ([]byte, error)) (Appended, error) {
	if err := l.writable(); err != nil {
		return Appended{}, err
	}
	base := l.end.load().offset
	b, err := build(base)
	if err != nil {
		return Appended{}, err
	}
	set, err := readSet(b, base)
	if err != nil {
		return Appended{}, err
	}
	set.stamp(b, leaderEpoch)
	s, err := l.rollIfDue(set.header(), l.now().UnixMilli())
	if err != nil {
		return Appended{}, err
	}
	pos := s.size.Load()
	if n, err := s.data.file.WriteAt(b, pos); err != nil || n < len(b) {
		return Appended{}, l.writeFailed(s, err)
	}
	if err := l.assignEpoch(leaderEpoch, base); err != nil {
		return Appended{}, l.takeBack(s, err)
	}
	end := pos
	for i := range set.entries {
		s.account(end, &set.entries[i])
		end += int64(set.entries[i].Size)
	}
	l.changed = true
	l.snapshots.since += int64(len(b))
	s.size.Store(end)
	l.end.store(mark{offset: set.last + 1, segment: s.base, pos: end})
	return Appended{BaseOffset: base, LastOffset: set.last, Timestamp: set.newest}, nil
}

// entrySet is a set of entries to append.
type entrySet struct {
	entries    []batch.Entry
	base, last int64
	size       int
	newest     int64 // timestamp
}

// readSet checks that b holds whole entries with right checksums, whose offsets go up from base.
func readSet(b []byte, base int64) (entrySet, error) {
	set := entrySet{base: base, last: base - 1, size: len(b), newest: noTime}
	for len(b) > 0 {
		if err := batch.Verify(b); err != nil {
			return set, err
		}
		e, err := batch.ReadEntry(b)
		switch {
		case err != nil:
			return set, err
		case e.Magic > 1 && (e.BaseOffset != set.last+1 || hasProducer(b)):
			return set, fmt.Errorf("appending a set with a batch at offset %d after %d, or of a producer: %w", e.BaseOffset, set.last, batch.ErrInvalid)
		case e.LastOffset <= set.last, e.LastOffset-base > math.MaxInt32, e.Magic < 2 && e.Codec == batch.None && e.LastOffset != set.last+1:
			return set, fmt.Errorf("appending a set with offset %d after %d: %w", e.LastOffset, set.last, batch.ErrInvalid)
		}
		set.entries = append(set.entries, e)
		set.last, set.newest = e.LastOffset, max(set.newest, e.MaxTimestamp)
		b = b[e.Size:]
	}
	if len(set.entries) == 0 {
		return set, fmt.Errorf("appending an empty set: %w", batch.ErrInvalid)
	}
	return set, nil
}

// header is that of a batch of magic 2 with as many bytes and offsets, for what decides on the segment.
func (s *entrySet) header() *batch.Header {
	return &batch.Header{BaseOffset: s.base, Length: int32(s.size - batch.OverheadSize), LastDelta: int32(s.last - s.base), MaxTimestamp: s.newest}
}

// hasProducer reports if the batch of magic 2 at the start of b has a producer id, whose state this does not keep, or is a control batch.
func hasProducer(b []byte) bool {
	h, err := batch.ReadHeader(b)
	return err != nil || h.ProducerID >= 0 || h.Control() || h.Transactional()
}

// stamp writes the leader epoch into the batches of magic 2 in b, the bytes of the set.
func (s *entrySet) stamp(b []byte, leaderEpoch int32) {
	for i := range s.entries {
		e := &s.entries[i]
		if e.Magic == 2 {
			batch.Stamp(b, e.BaseOffset, leaderEpoch)
			e.LeaderEpoch = leaderEpoch
		}
		b = b[e.Size:]
	}
}
