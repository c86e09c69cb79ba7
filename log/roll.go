package log

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// rollIfDue returns the segment that the batch h, whose base offset is the log end, goes to. Log.mu must be held.
func (l *Log) rollIfDue(h *batch.Header, now int64) (*segment, error) {
	cfg := l.cfg.Load()
	if int64(h.Size()) > cfg.SegmentBytes {
		return nil, fmt.Errorf("%w: %d bytes, segment.bytes is %d", ErrTooLarge, h.Size(), cfg.SegmentBytes)
	}
	s := l.list.Load().active()
	size := s.size.Load()
	switch {
	case size == 0 && s.fits(h.LastOffset()):
		return s, nil
	case size > cfg.SegmentBytes-int64(h.Size()),
		s.age(h.MaxTimestamp, now) > cfg.SegmentMs-s.writer.jitter,
		s.full(cfg.SegmentIndexBytes),
		!s.fits(h.LastOffset()):
		return l.roll(s)
	}
	return s, nil
}

// age of a segment is counted by record time, from its first batch to the one that comes, so that old data that is copied here is
// cut as it was; by the clock if the first batch has no timestamp.
func (s *segment) age(timestamp, now int64) int64 {
	if s.writer.firstTime > noTime {
		return timestamp - s.writer.firstTime
	}
	return now - s.writer.created
}

// roll seals the active segment and starts one at the log end. Log.mu must be held. If it fails the old segment stays active
// and nothing is lost.
func (l *Log) roll(old *segment) (*segment, error) {
	end := l.end.load()
	if err := l.sealForRoll(old, end.offset); err != nil {
		return nil, l.storageFailed(err)
	}
	s, err := l.createSegment(end.offset)
	if err != nil {
		return nil, l.storageFailed(fmt.Errorf("rolling the log: %w", err))
	}
	// What is synced before the new segment's first byte counts as durable: first the old one's files, then the directory.
	l.needSync(&segmentSync{old})
	for _, ext := range old.indexes() {
		l.needSync(&fileSync{l, old.name(ext)})
	}
	l.needSync(&fileSync{l, fileName(end.offset, snapshotExt)})
	list := append(slices.Clip(*l.list.Load()), s)
	l.list.Store(&list)
	l.end.store(mark{offset: end.offset, segment: s.base})
	return s, nil
}

// sealForRoll writes what goes with a sealed segment: its indexes and the producer state at its end.
func (l *Log) sealForRoll(s *segment, end int64) error {
	if l.cfg.Load().Preallocate {
		// Blocks reserved beyond the end go back.
		if err := s.data.file.Truncate(s.size.Load()); err != nil {
			return fmt.Errorf("trimming %s: %w", s.path(logExt), err)
		}
	}
	return errors.Join(s.seal(), l.writeSnapshot(end, l.producers.EncodeSnapshot(nil)))
}

// createSegment makes the file of a new segment. The directory is to be synced before bytes in it count as durable.
func (l *Log) createSegment(base int64) (*segment, error) {
	s := newSegment(l, base)
	path := s.path(logExt)
	f, err := l.fs.Create(path)
	if err != nil {
		return nil, err
	}
	if err := l.preallocate(f); err != nil {
		return nil, errors.Join(err, f.Close(), l.fs.Remove(path))
	}
	s.pin(f)
	s.proven.Store(base)
	s.firstOpen.Store(l.firstOpen.Load())
	l.needDirSync()
	return s, nil
}

func (l *Log) preallocate(f vfs.File) error {
	cfg := l.cfg.Load()
	if !cfg.Preallocate {
		return nil
	}
	if err := f.Preallocate(cfg.SegmentBytes); err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		return fmt.Errorf("preallocating a segment: %w", err)
	}
	return nil
}

// parentDir is where the log's directory is an entry.
func (l *Log) parentDir() string { return filepath.Dir(l.Dir()) }
