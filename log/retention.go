package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"gregor/log/vfs"
)

// Retention is how much of a log is kept (cleanup.policy with delete). -1 is no limit.
type Retention struct {
	Ms    int64 // retention.ms: a segment goes when its newest record is older
	Bytes int64 // retention.bytes: segments go, the oldest first, while the log without them has as many
}

// Forever keeps everything above the log start offset.
func Forever() Retention { return Retention{Ms: -1, Bytes: -1} }

// Retain moves the log start offset past the oldest segments that need not be kept, as Apache Kafka does: first by size, then by time, never above
// the high watermark. If all are to go, a new segment is begun. due says that DeleteBelowStart has something to delete; the caller writes
// the log start to its checkpoint before that.
//
// The age of a segment is that of its largest timestamp; it is read again from the batches, as far as the time index does not prove it, before a segment goes for it.
// A segment without any timestamp has the age of its file. A timestamp in the future keeps its segment.
//
// It waits for no sync and lets no append wait, but for the time of a roll. ctx ends the reading of batches.
func (l *Log) Retain(ctx context.Context, r Retention) (due bool, err error) {
	if err := l.writable(); err != nil {
		return false, err
	}
	q := retaining{log: l, ctx: ctx, now: l.now().UnixMilli(), list: l.list.Load(), end: l.end.load()}
	below := max(q.list.find(l.StartOffset()), 0)
	high := l.HighWatermark()
	q.gone = below
	q.bySize(r.Bytes, high)
	if err := q.byTime(r.Ms, high); err != nil {
		return below > 0, fmt.Errorf("retention of %s: %w", l.Dir(), err)
	}
	if q.gone == below {
		return below > 0 || l.undeleted(), nil
	}
	start, err := q.start()
	if err == nil {
		err = l.MoveStart(start)
	}
	return err == nil, err
}

// undeleted says that a deletion that failed is to be tried again.
func (l *Log) undeleted() bool {
	l.files.Lock()
	defer l.files.Unlock()
	return len(l.discards.segments) > 0
}

// retaining is one look at the segments of a log: those below gone go.
type retaining struct {
	log  *Log
	ctx  context.Context
	now  int64
	list *segments
	end  mark
	gone int
}

// next is where the segment after number i begins, or would.
func (q *retaining) next(i int) int64 {
	if i+1 < len(*q.list) {
		return (*q.list)[i+1].base
	}
	return q.end.offset
}

// deletable says that segment gone may be deleted at all.
func (q *retaining) deletable(high int64) bool {
	n := len(*q.list)
	if q.gone >= n || q.next(q.gone) > high {
		return false
	}
	return q.gone < n-1 || (*q.list)[n-1].size.Load() > 0
}

func (q *retaining) bySize(limit, high int64) {
	if limit < 0 {
		return
	}
	over := -limit
	for _, s := range (*q.list)[q.gone:] {
		over += s.size.Load()
	}
	for q.deletable(high) {
		if over -= (*q.list)[q.gone].size.Load(); over < 0 {
			return
		}
		q.gone++
	}
}

func (q *retaining) byTime(limit, high int64) error {
	if limit < 0 {
		return nil
	}
	for q.deletable(high) {
		s := (*q.list)[q.gone]
		old, err := s.olderThan(q.ctx, q.now, limit)
		if errors.Is(err, fs.ErrNotExist) && q.log.changedSince(q.list) {
			return nil // it was deleted meanwhile
		}
		if !old || err != nil {
			return err
		}
		q.gone++
	}
	return nil
}

// start is the log start offset that leaves out the segments that go. If that is all of them, the active one is rolled: unless something was
// appended since it was looked at, in which case it stays.
func (q *retaining) start() (int64, error) {
	l := q.log
	if q.gone < len(*q.list) {
		return (*q.list)[q.gone].base, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	active := (*q.list)[q.gone-1]
	if err := l.writable(); err != nil {
		return 0, err
	}
	if l.list.Load() != q.list || l.end.load() != q.end {
		return active.base, nil
	}
	s, err := l.roll(active)
	if err != nil {
		return 0, err
	}
	return s.base, nil
}

// olderThan says that the newest record of s is older than ms at the time now.
func (s *segment) olderThan(ctx context.Context, now, ms int64) (bool, error) {
	if err := s.ensure(); err != nil {
		return false, err
	}
	for proven := false; ; proven = true {
		newest := s.maxTime.Load()
		if newest < 0 {
			var err error
			if newest, err = s.fileTime(); err != nil {
				return false, err
			}
		}
		if newest > now {
			s.log.tellFuture(s, newest)
		}
		if now-newest <= ms || proven {
			return now-newest > ms, nil
		}
		if err := s.proveNewest(ctx); err != nil {
			return false, err
		}
	}
}

// fileTime is when s was written last: only for segments without timestamps. What was recovered after an unclean stop is not taken to be
// older than that: its time may not have reached the disk.
func (s *segment) fileTime() (int64, error) {
	info, err := s.log.fs.Stat(s.path(logExt))
	if err != nil {
		return 0, err
	}
	return max(info.ModTime().UnixMilli(), s.recovered), nil
}

// proveNewest reads the batches that come after the one with the largest timestamp, as the time index has it. An index that was cut short by a
// crash ends with an entry that is right, and says nothing of newer batches.
func (s *segment) proveNewest(ctx context.Context) error {
	from := s.base
	newest, err := s.times.floor(math.MaxInt64)
	if err != nil {
		return err
	}
	if newest.number >= 0 {
		_, relative := timeEntry(newest.entry[:])
		from += relative
	}
	wrong := false
	err = s.scan(from, mark{offset: math.MaxInt64}, func(scan *scanner, _ vfs.File) (bool, error) {
		wrong = scan.entry.MaxTimestamp > s.maxTime.Load()
		return !wrong, ctx.Err()
	})
	if err != nil || !wrong {
		return err
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if s.discarded {
		return fs.ErrNotExist
	}
	s.log.logger.Warn("time index lacks the newest batches, rebuilding the indexes of a segment", "file", s.path(timeExt))
	return s.rebuild()
}

// tellFuture says once that a log has a timestamp that time retention will wait for.
func (l *Log) tellFuture(s *segment, newest int64) {
	if l.toldFuture.CompareAndSwap(false, true) {
		l.logger.Warn("segment has a timestamp in the future, and stays until retention.ms after it", "file", s.path(logExt), "timestamp", newest)
	}
}
