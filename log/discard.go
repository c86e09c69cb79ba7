package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// deletedExt goes after the name of a file that is to be removed, as in Kafka. Open removes what a stop left of them.
const deletedExt = ".deleted"

// discards are segments on their way off the disk. Guarded by Log.files.
type discards struct {
	segments []*segment  // not in the list any more, whose files have their names yet, in the order in which they go
	files    []discarded // renamed
}

// discarded is a file with deletedExt.
type discarded struct {
	name string
	due  time.Time
}

// discard takes segments off the disk that are not in the published list any more: their files get the suffix .deleted at once and are
// removed by Sweep file.delete.delay.ms later. Log.files must be held, and Log.mu not: this is I/O, which no append waits for. No
// sync may be pending for the segments (settle). Slices of them stay readable until they are released.
//
// The segments go in the order of list, each for good before the next: a directory may forget any of several renames, and the log must not come
// back with a hole in it. The .log goes before its indexes: while it is there the segment is. The last rename is durable with the next
// sync, or when the caller syncs the directory. After an error (ErrNoSpace; others take the log offline) what is left goes with the next discard.
func (l *Log) discard(list []*segment) error {
	l.mu.Lock()
	for _, s := range list {
		s.retire()
	}
	l.mu.Unlock()
	l.discards.segments = append(l.discards.segments, list...)
	for renamed := false; len(l.discards.segments) > 0; renamed = true {
		var err error
		if renamed {
			err = l.fs.SyncDir(l.Dir())
		}
		if err == nil {
			err = l.markDeleted(l.discards.segments[0])
		}
		if err != nil {
			return l.storageFailed(fmt.Errorf("deleting a segment of %s: %w", l.Dir(), err))
		}
		l.discards.segments = l.discards.segments[1:]
		l.needDirSync()
	}
	l.discards.segments = nil
	if l.cfg.Load().FileDeleteDelayMs == 0 {
		l.sweep()
	}
	return nil
}

// markDeleted renames the files of s.
func (l *Log) markDeleted(s *segment) error {
	// A reader that is rebuilding the indexes would write them under their old names.
	s.loadMu.Lock()
	s.discarded = true
	s.loadMu.Unlock()
	due := l.now().Add(milliseconds(l.cfg.Load().FileDeleteDelayMs))
	for _, ext := range []string{logExt, indexExt, timeExt, txnExt} {
		err := l.fs.Rename(s.path(ext), s.path(ext)+deletedExt)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		l.discards.files = append(l.discards.files, discarded{s.name(ext) + deletedExt, due})
	}
	return nil
}

// milliseconds is a duration of ms, or the longest there is.
func milliseconds(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}

// Sweep removes the files of segments that were deleted file.delete.delay.ms ago. It returns when the next ones are due, zero if there
// are none. Removing a large file may take long; nothing but truncation, compaction and Close waits for it.
func (l *Log) Sweep() (next time.Time) {
	l.files.Lock()
	defer l.files.Unlock()
	return l.sweep()
}

// sweep does it with Log.files held.
func (l *Log) sweep() (next time.Time) {
	now := l.now()
	l.discards.files = slices.DeleteFunc(l.discards.files, func(d discarded) bool {
		if d.due.After(now) {
			if next.IsZero() || d.due.Before(next) {
				next = d.due
			}
			return false
		}
		path := filepath.Join(l.Dir(), d.name)
		if err := l.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.logger.Warn("file of a deleted segment cannot be removed, the next start tries again", "file", path, "error", err)
		}
		return true
	})
	return next
}

// settle makes sure that no sync waits for a file of a sealed segment, which could then not be deleted. Log.files is held.
func (l *Log) settle() error {
	l.flush.Lock()
	waiting := len(l.flush.pending) > 0
	l.flush.Unlock()
	if !waiting {
		return l.writable()
	}
	return l.Flush()
}

// AdvanceStart moves the log start offset forward (MoveStart) and deletes the segments below it (DeleteBelowStart).
func (l *Log) AdvanceStart(offset int64) error {
	if err := l.MoveStart(offset); err != nil {
		return err
	}
	return l.DeleteBelowStart()
}

// MoveStart moves the log start offset forward, at most to the high watermark: readers find nothing below it from now on. An offset below the
// start changes nothing. The start is kept by the caller (log-start-offset-checkpoint), before he calls DeleteBelowStart if it is not to
// fall back after a crash to the base of the segment that holds it. It writes nothing.
func (l *Log) MoveStart(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if high := l.HighWatermark(); offset > high {
		return fmt.Errorf("%w: moving the log start to %d, the high watermark is %d", ErrOffsetOutOfRange, offset, high)
	}
	l.start.Store(max(l.start.Load(), offset))
	return nil
}

// DeleteBelowStart deletes the segments that lie wholly below the log start offset. Appends and syncs go on meanwhile.
func (l *Log) DeleteBelowStart() error {
	l.files.Lock()
	defer l.files.Unlock()
	if len(l.discards.segments) == 0 && (*l.list.Load()).find(l.StartOffset()) <= 0 {
		return l.writable()
	}
	if err := l.settle(); err != nil {
		return err
	}
	gone, snapshots, err := l.dropBelowStart()
	if err != nil {
		return err
	}
	// The epochs below stay until the next open: they are needed should the new start be forgotten.
	err = l.discard(gone)
	for _, offset := range snapshots {
		l.removeSnapshot(offset, nil)
	}
	return err
}

// dropBelowStart publishes the log without the segments below its start, and returns those and the snapshots that go with them.
func (l *Log) dropBelowStart() (gone segments, snapshots []int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return nil, nil, err
	}
	list := *l.list.Load()
	i := max(list.find(l.start.Load()), 0)
	if i == 0 {
		return nil, nil, nil
	}
	kept := slices.Clone(list[i:])
	l.list.Store(&kept)
	newest, _ := l.snapshots.newest()
	l.snapshots.offsets = slices.DeleteFunc(l.snapshots.offsets, func(offset int64) bool {
		if offset >= kept[0].base || offset == newest {
			return false
		}
		snapshots = append(snapshots, offset)
		return true
	})
	return list[:i], snapshots, nil
}
