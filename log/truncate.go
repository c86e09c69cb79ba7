package log

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// TruncateTo cuts the log so that its end offset is at most offset; a batch that holds offset goes as a whole. The caller first
// checkpoints a recovery point that is no higher: a crash in between would else look like a loss.
//
// Consumers never see it: they were given nothing above the high watermark, which followers do not truncate below. A slice that was
// read to the log end may change under its reader.
func (l *Log) TruncateTo(offset int64) error {
	if offset < l.StartOffset() {
		return fmt.Errorf("%w: truncating to %d, the log starts at %d", ErrOffsetOutOfRange, offset, l.StartOffset())
	}
	return l.change(func() error {
		if offset >= l.EndOffset() {
			// The caller found that nobody else has these epochs, records or not.
			return l.setEpochs(l.epochs().truncateEnd(l.EndOffset()))
		}
		return l.truncate(offset)
	})
}

// TruncateFullyAndStartAt deletes everything and goes on at offset. The caller first checkpoints a recovery point of 0.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	if offset < 0 {
		return fmt.Errorf("%w: starting at %d", ErrOffsetOutOfRange, offset)
	}
	return l.change(func() error { return l.startOver(offset) })
}

// startOver does it with Log.mu held, alone.
func (l *Log) startOver(offset int64) error {
	old := *l.list.Load()
	at := mark{offset: offset, segment: offset}
	l.lower(at)
	// A segment that could not be deleted may have the name of the new one.
	if err := l.removeSynced(slices.Concat(l.discards.segments, old)); err != nil {
		return err
	}
	l.discards.segments = nil
	s, err := l.createSegment(offset)
	if err != nil {
		return err
	}
	l.start.Store(offset)
	l.install(segments{s}, at, at)
	if err := l.setEpochs(epochList{}); err != nil {
		return err
	}
	l.producers.Reset()
	l.publishFirstOpen()
	for _, offset := range l.snapshots.offsets {
		l.removeSnapshot(offset, nil)
	}
	l.snapshots = snapshotList{}
	return l.fs.SyncDir(l.Dir())
}

// removeSynced deletes segments before others take the place of their offsets, which must not meet one that came back.
func (l *Log) removeSynced(list segments) error {
	if err := removeAll(list); err != nil {
		return err
	}
	return l.fs.SyncDir(l.Dir())
}

// change runs f, which rewrites what lies on disk, alone: no sync, no append beside it, and everything synced before. A failure
// leaves the files in doubt, so that the log goes offline.
func (l *Log) change(f func() error) error {
	l.files.Lock()
	defer l.files.Unlock()
	l.exclude()
	defer l.waiters.wakeAll()
	defer l.ready()
	if l.closed.Load() {
		return ErrClosed
	}
	if err := l.flushExcluded(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return l.setOffline(err)
	}
	return nil
}

// truncate cuts at offset, which is below the end. Log.mu must be held, alone. What a crash in between leaves is cut less, or has
// indexes that say less than they could.
func (l *Log) truncate(offset int64) error {
	list := *l.list.Load()
	i := list.find(offset)
	old := list[i]
	at, err := old.cutPoint(offset)
	if err != nil {
		return err
	}
	cut := mark{offset: at.offset, segment: old.base, pos: at.pos}
	l.lower(cut)
	l.start.Store(min(l.start.Load(), cut.offset)) // the batch that goes may hold the log start
	if err := removeAll(list[i+1:]); err != nil {
		return err
	}
	if err := old.cutIndexes(cut.offset); err != nil {
		return err
	}
	// Another segment of the same name takes the place of the old one, whose indexes readers may be looking at.
	s := newSegment(l, old.base)
	if err := l.reopenCut(s, cut.pos); err != nil {
		return err
	}
	l.install(append(slices.Clone(list[:i]), s), cut, l.high.load())
	old.retire()
	if err := l.setEpochs(l.epochs().truncateEnd(cut.offset)); err != nil {
		return err
	}
	if err := l.reloadProducers(); err != nil {
		return err
	}
	return l.fs.SyncDir(l.Dir())
}

// lower moves the recovery point and the high watermark down to at before anything is cut, so that nobody is given or checkpoints
// what goes.
func (l *Log) lower(at mark) {
	l.flush.Lock()
	defer l.flush.Unlock()
	l.synced.Store(min(l.synced.Load(), at.offset))
	l.cleanBelow.Store(min(l.cleanBelow.Load(), at.offset))
	if l.high.offset.Load() > at.offset {
		l.high.store(at)
	}
}

// install publishes a shorter log, which is synced up to its end.
func (l *Log) install(list segments, end, high mark) {
	l.list.Store(&list)
	l.end.store(end)
	l.flush.Lock()
	l.synced.Store(end.offset)
	l.high.store(high)
	l.flush.Unlock()
	l.changed = true
}

// cutPoint is where a log that is to end at offset is cut: at the batch that holds it.
func (s *segment) cutPoint(offset int64) (place, error) {
	file, err := s.log.handles.acquire(&s.data, s, logExt)
	if err != nil {
		return place{}, err
	}
	defer s.log.handles.release(&s.data)
	at, err := s.seek(file, offset, s.size.Load())
	if err == io.EOF {
		// Compaction left only a gap from here to the next segment.
		return place{pos: s.size.Load(), offset: offset}, nil
	}
	if err != nil {
		return at, err
	}
	if at.offset, err = s.firstOffset(file, at); err != nil {
		return at, err
	}
	at.offset = min(at.offset, offset)
	return at, nil
}

// firstOffset is the offset of the first record of an entry. A compressed one of magic 0 and 1 has only that of its last record.
func (s *segment) firstOffset(file vfs.File, at place) (int64, error) {
	b := make([]byte, min(at.size, batch.EntryHeaderSize))
	if _, err := file.ReadAt(b, at.pos); err != nil {
		return 0, fmt.Errorf("reading %s: %w", s.path(logExt), noEOF(err))
	}
	if e, err := batch.ReadEntry(b); err != nil || e.Magic > 1 || e.Codec == batch.None {
		return at.offset, err
	}
	b = make([]byte, at.size)
	if _, err := file.ReadAt(b, at.pos); err != nil {
		return 0, fmt.Errorf("reading %s: %w", s.path(logExt), noEOF(err))
	}
	var r batch.Reader
	var first batch.Record
	if err := r.Reset(b, 0); err != nil || !r.Next(&first) {
		return 0, &CorruptError{File: s.path(logExt), Pos: at.pos, Err: errors.Join(err, r.Err())}
	}
	return first.Offset, nil
}

// cutIndexes leaves the entries for offsets below end in the index files, and syncs them: an entry that outlived its batch could
// later be taken for one of the batches that come in its place.
func (s *segment) cutIndexes(end int64) error {
	last, err := s.offsets.floor(end - s.base - 1)
	if err != nil {
		return err
	}
	newest, err := s.timeBefore(end)
	if err != nil {
		return err
	}
	return errors.Join(s.offsets.cut(last.number+1), s.times.cut(newest.number+1), s.cutAborted(end))
}

// reopenCut opens the file of s for writing, cuts it at pos and reads what is left, as after a clean stop.
func (l *Log) reopenCut(s *segment, pos int64) error {
	f, err := l.fs.Open(s.path(logExt))
	if err != nil {
		return err
	}
	s.pin(f)
	if err := errors.Join(f.Truncate(pos), f.Sync()); err != nil {
		return err
	}
	r := &recovery{Log: l, trust: true}
	damage, err := r.load(s)
	if damage != nil {
		return &CorruptError{File: s.path(logExt), Pos: s.size.Load(), Err: damage}
	}
	return err
}

// reloadProducers makes the producer state that of the log's end anew.
func (l *Log) reloadProducers() error {
	r := &recovery{Log: l, list: *l.list.Load(), end: l.EndOffset(), inv: &inventory{snapshots: l.snapshots.offsets}}
	l.snapshots.since = 0
	err := r.loadProducers()
	l.snapshots.offsets = r.inv.snapshots
	return err
}
