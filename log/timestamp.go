package log

import (
	"fmt"
	"io"
	"math"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// SearchTimestamp finds the first record, in offset order from the log start and below limit, with a timestamp of ts or later.
func (l *Log) SearchTimestamp(ts int64, limit ReadLimit) (TimestampOffset, bool, error) {
	return retried(l, func(list segments) (TimestampOffset, bool, error) {
		q := timeQuery{ts: ts, start: l.StartOffset(), bound: l.bound(limit)}
		for _, s := range list[max(list.find(q.start), 0):] {
			if s.base > q.bound.segment {
				break
			}
			if at, ok, err := s.firstSince(&q); ok || err != nil {
				return at, ok, err
			}
		}
		return TimestampOffset{}, false, nil
	})
}

// MaxTimestamp finds the record with the largest timestamp from the log start and below limit, the first of several. False
// means that there is no record with a timestamp.
func (l *Log) MaxTimestamp(limit ReadLimit) (TimestampOffset, bool, error) {
	return retried(l, func(list segments) (TimestampOffset, bool, error) {
		q := timeQuery{ts: noTime, start: l.StartOffset(), bound: l.bound(limit)}
		var in *segment
		for _, s := range list[max(list.find(q.start), 0):] {
			if s.base > q.bound.segment {
				break
			}
			newest, err := s.newest(&q)
			if err != nil {
				return TimestampOffset{}, false, err
			}
			if newest > q.ts {
				q.ts, in = newest, s
			}
		}
		if in == nil {
			return TimestampOffset{}, false, nil
		}
		return in.firstSince(&q)
	})
}

// retried repeats a query that failed because segments went away under it.
func retried(l *Log, query func(segments) (TimestampOffset, bool, error)) (TimestampOffset, bool, error) {
	for {
		if l.closed.Load() {
			return TimestampOffset{}, false, ErrClosed
		}
		list := l.list.Load()
		at, ok, err := query(*list)
		if err == nil || !l.changedSince(list) {
			return at, ok, err
		}
	}
}

// timeQuery asks for records of ts or later with offsets from start on and below bound.
type timeQuery struct {
	ts    int64
	start int64
	bound mark
	batch batch.Reader
}

// firstSince finds the first record of s that answers q.
func (s *segment) firstSince(q *timeQuery) (found TimestampOffset, ok bool, err error) {
	if err := s.ensure(); err != nil || s.maxTime.Load() < q.ts {
		return found, false, err
	}
	// Everything before the batch of the last smaller entry is no newer than that entry.
	since, err := s.times.floor(max(q.ts, 0) - 1)
	if err != nil {
		return found, false, err
	}
	from := q.start
	if since.number >= 0 {
		_, relative := timeEntry(since.entry[:])
		from = max(from, s.base+relative)
	}
	err = s.scan(from, q.bound, func(scan *scanner, file vfs.File) (more bool, err error) {
		e := &scan.entry
		if e.MaxTimestamp < q.ts || e.LastOffset < q.start {
			return true, nil
		}
		found, ok, err = s.recordSince(q, scan, file)
		return !ok, err
	})
	return found, ok, err
}

// recordSince looks into the current entry of scan.
func (s *segment) recordSince(q *timeQuery, scan *scanner, file vfs.File) (TimestampOffset, bool, error) {
	// The size was checked against the file, so that this is no more than was once written.
	b := make([]byte, scan.entry.Size)
	if _, err := file.ReadAt(b, scan.at); err != nil {
		return TimestampOffset{}, false, fmt.Errorf("reading %s: %w", s.path(logExt), noEOF(err))
	}
	offset, ts, ok, err := q.batch.Search(b, q.ts, q.start)
	if err != nil {
		return TimestampOffset{}, false, &CorruptError{File: s.path(logExt), Pos: scan.at, Err: err}
	}
	if !ok || offset >= q.bound.offset {
		return TimestampOffset{}, false, nil
	}
	return TimestampOffset{Timestamp: ts, Offset: offset, LeaderEpoch: scan.entry.LeaderEpoch}, true, nil
}

// newest is the largest timestamp of the batches of s that q's start and bound leave, noTime if there is none.
func (s *segment) newest(q *timeQuery) (int64, error) {
	if err := s.ensure(); err != nil {
		return noTime, err
	}
	whole := q.start <= s.base && q.bound.segment > s.base
	if whole || s.maxTime.Load() <= q.ts {
		return s.maxTime.Load(), nil
	}
	newest, from := int64(noTime), q.start
	if q.start <= s.base {
		at, err := s.timeBefore(q.bound.offset)
		if err != nil {
			return noTime, err
		}
		if at.number >= 0 {
			ts, relative := timeEntry(at.entry[:])
			newest, from = ts, s.base+relative
		}
	}
	err := s.scan(from, q.bound, func(scan *scanner, _ vfs.File) (bool, error) {
		newest = max(newest, scan.entry.MaxTimestamp)
		return true, nil
	})
	return newest, err
}

// timeBefore is the last entry of the time index for an offset below end. Few entries are of offsets that are not.
func (s *segment) timeBefore(end int64) (found, error) {
	at, err := s.times.floor(math.MaxInt64)
	for err == nil && at.number >= 0 {
		ts, relative := timeEntry(at.entry[:])
		if s.base+relative < end {
			break
		}
		at, err = s.times.floor(ts - 1)
	}
	return at, err
}

// scan calls visit for the entries from the one that holds offset from, below bound, until it has enough.
func (s *segment) scan(from int64, bound mark, visit func(*scanner, vfs.File) (more bool, err error)) error {
	handles := s.log.handles
	file, err := handles.acquire(&s.data, s, logExt)
	if err != nil {
		return err
	}
	defer handles.release(&s.data)
	buf := handles.blocks.get()
	defer handles.blocks.put(buf)
	scan := scanner{file: file, end: s.size.Load(), buf: buf.b}
	for err = s.startScan(&scan, from); err == nil && scan.entry.BaseOffset < bound.offset; err = scan.next() {
		if scan.entry.LastOffset < from {
			continue
		}
		if more, err := visit(&scan, file); !more || err != nil {
			return err
		}
	}
	if err == nil || err == io.EOF {
		return nil
	}
	return s.damaged(&scan, err)
}
