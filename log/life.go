package log

import (
	"fmt"

	"gregor/log/vfs"
)

// Close syncs, writes indexes and producer snapshot, and closes the files. Slices stay readable until they are released. The
// error is that of the sync: then the stop was not clean. A second Close does nothing.
func (l *Log) Close() error {
	l.files.Lock()
	defer l.files.Unlock()
	l.exclude()
	defer l.ready()
	if !l.shut() {
		return nil
	}
	defer l.letGo()
	if err := l.flushExcluded(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.changed || l.EndOffset() == (*l.list.Load())[0].base {
		return nil
	}
	// These are hints, checked when they are read: not worth a sync each.
	end := l.EndOffset()
	if err := l.sealForRoll(l.list.Load().active(), end); err != nil {
		l.logger.Warn("indexes or producer snapshot cannot be written, the next start reads more", "dir", l.Dir(), "error", err)
		return nil
	}
	l.pruneSnapshots()
	return nil
}

// Abandon closes the files without syncing or writing anything.
func (l *Log) Abandon() {
	l.files.Lock()
	defer l.files.Unlock()
	l.exclude()
	defer l.ready()
	if l.shut() {
		l.letGo()
	}
}

// shut ends appending; false says that it had ended before. An append that is under way is waited for, so that a sync after shut
// covers all.
func (l *Log) shut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed.Swap(true)
}

// letGo gives the files up and tells whoever waits.
func (l *Log) letGo() {
	l.mu.Lock()
	for _, s := range *l.list.Load() {
		s.retire()
	}
	l.mu.Unlock()
	l.waiters.wakeAll()
}

// Delete closes the log and removes its directory.
func (l *Log) Delete() error {
	l.Abandon()
	if err := l.fs.RemoveAll(l.Dir()); err != nil {
		return fmt.Errorf("deleting log %s: %w", l.Dir(), err)
	}
	return nil
}

// Rename moves the directory; the log stays open. The caller syncs the parent directories.
func (l *Log) Rename(newDir string) error {
	l.files.Lock()
	defer l.files.Unlock()
	l.exclude()
	defer l.ready()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fs.Rename(l.Dir(), newDir); err != nil {
		return fmt.Errorf("renaming log %s: %w", l.Dir(), err)
	}
	l.dir.Store(&newDir)
	return nil
}

// readAt reads n bytes at pos.
func readAt(file vfs.File, pos int64, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := file.ReadAt(b, pos); err != nil {
		return nil, noEOF(err)
	}
	return b, nil
}
