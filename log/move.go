package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"

	"gregor/log/commit"
	"gregor/log/vfs"
)

// Move takes a log into another directory, maybe on another disk, while it is in use: Copy copies it as far as it is, Finish copies the rest with
// appends held back and lets the log go on there. Watches, readers and producers notice nothing. It is used by one goroutine, but for Progress.
type Move struct {
	log *Log
	dir string

	copies map[*segment]*segmentCopy
	files  map[string]struct{} // indexes and snapshots that were copied, by name
	offset atomic.Int64
	bytes  atomic.Int64
}

// segmentCopy is how far a segment was copied.
type segmentCopy struct {
	bytes int64
	whole bool // it is sealed, and its indexes were copied
}

const (
	// nearBytes is what Copy leaves for Finish at most, if it can keep up.
	nearBytes = 1 << 20
	// movePasses bounds the tries to keep up.
	movePasses = 20
)

// NewMove prepares to move the log to dir, which is there and has nothing of a log in it.
func (l *Log) NewMove(dir string) *Move {
	return &Move{log: l, dir: dir, copies: make(map[*segment]*segmentCopy), files: make(map[string]struct{})}
}

// Progress is the number of bytes that were copied, and the offset up to which whole segments were.
func (m *Move) Progress() (bytes, offset int64) { return m.bytes.Load(), m.offset.Load() }

// Copy copies until little is left. The log is not held up.
func (m *Move) Copy(ctx context.Context) error {
	for range movePasses {
		if err := m.log.writable(); err != nil {
			return err
		}
		list := m.log.list.Load()
		did, err := m.pass(ctx, *list)
		if err != nil && (ctx.Err() != nil || !m.log.changedSince(list)) {
			return fmt.Errorf("copying log %s to %s: %w", m.log.Dir(), m.dir, err)
		}
		if err == nil && did <= nearBytes {
			break
		}
	}
	return m.log.writable()
}

// pass copies what there is now.
func (m *Move) pass(ctx context.Context, list segments) (did int64, err error) {
	if err := m.forget(list); err != nil {
		return 0, err
	}
	for i, s := range list {
		n, err := m.copySegment(ctx, s, i < len(list)-1)
		did += n
		if err != nil {
			return did, err
		}
		if i < len(list)-1 {
			m.offset.Store(list[i+1].base)
		}
	}
	return did, nil
}

// forget removes copies of segments that are not in list any more. The log may have been truncated, so that no snapshot is kept either.
func (m *Move) forget(list segments) error {
	dropped := false
	for s, c := range m.copies {
		if slices.Contains(list, s) {
			continue
		}
		dropped = true
		for _, ext := range []string{logExt, indexExt, timeExt, txnExt} {
			if err := m.remove(s.name(ext)); err != nil {
				return err
			}
		}
		m.bytes.Add(-c.bytes)
		delete(m.copies, s)
	}
	if !dropped {
		return nil
	}
	for name := range m.files {
		if filepath.Ext(name) == snapshotExt {
			if err := m.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Move) remove(name string) error {
	delete(m.files, name)
	err := m.log.fs.Remove(filepath.Join(m.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copySegment copies what is new of s, and syncs it.
func (m *Move) copySegment(ctx context.Context, s *segment, sealed bool) (did int64, err error) {
	c := m.copies[s]
	if c == nil {
		c = &segmentCopy{}
		m.copies[s] = c
	}
	if c.whole {
		return 0, nil
	}
	from := c.bytes
	if err := m.copyData(ctx, s, c); err != nil || !sealed {
		return c.bytes - from, err
	}
	for _, ext := range []string{indexExt, timeExt, txnExt, snapshotExt} {
		if err := m.copyFile(s.name(ext)); err != nil {
			return c.bytes - from, err
		}
	}
	c.whole = true
	return c.bytes - from, m.keepTime(s)
}

// keepTime gives the copy of a sealed segment its modification time, which is the age of one without timestamps.
func (m *Move) keepTime(s *segment) error {
	setter, ok := m.log.fs.(vfs.ModTimeSetter)
	if !ok {
		return nil
	}
	info, err := m.log.fs.Stat(s.path(logExt))
	if err != nil {
		return err
	}
	return setter.SetModTime(filepath.Join(m.dir, s.name(logExt)), info.ModTime())
}

// copyData copies the batches of s that are not copied yet.
func (m *Move) copyData(ctx context.Context, s *segment, c *segmentCopy) error {
	size := s.size.Load()
	from, err := m.log.handles.acquire(&s.data, s, logExt)
	if err != nil {
		return err
	}
	defer m.log.handles.release(&s.data)
	to, err := m.open(s.name(logExt))
	if err != nil {
		return err
	}
	buf := m.log.handles.chunks.get()
	defer m.log.handles.chunks.put(buf)
	for err == nil && c.bytes < size {
		b := buf.b[:min(int64(len(buf.b)), size-c.bytes)]
		if err = ctx.Err(); err != nil {
			break
		}
		if _, err = from.ReadAt(b, c.bytes); err != nil {
			err = noEOF(err)
			break
		}
		if _, err = to.WriteAt(b, c.bytes); err == nil {
			c.bytes += int64(len(b))
			m.bytes.Add(int64(len(b)))
		}
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// open opens a file of the new directory for writing, making it if it is not there.
func (m *Move) open(name string) (vfs.File, error) {
	path := filepath.Join(m.dir, name)
	f, err := m.log.fs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m.log.fs.Create(path)
	}
	return f, err
}

// copyFile copies a file that is a hint, if it is there, and syncs it.
func (m *Move) copyFile(name string) error {
	if _, done := m.files[name]; done {
		return nil
	}
	from, err := m.log.openRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	size, err := from.Size()
	if err != nil {
		return err
	}
	if err := m.remove(name); err != nil {
		return err
	}
	to, err := m.open(name)
	if err != nil {
		return err
	}
	buf := m.log.handles.chunks.get()
	defer m.log.handles.chunks.put(buf)
	for at := int64(0); at < size && err == nil; {
		var n int
		if n, err = from.ReadAt(buf.b[:min(int64(len(buf.b)), size-at)], at); n == 0 {
			err = noEOF(err)
			break
		}
		_, err = to.WriteAt(buf.b[:n], at)
		at += int64(n)
	}
	if err == nil {
		err = to.Sync()
	}
	if err == nil {
		m.files[name] = struct{}{}
	}
	return errors.Join(err, to.Close())
}

// Finish copies what is left while appends and syncs wait, and lets the log go on in the new directory. When all of it is durable there promote is
// called, which gives the directory its final name, durably, ends the old one, and returns the name; committer serves the log from then on. The new
// directory shares the log's HandleCache. After an error the log goes on where it was.
func (m *Move) Finish(ctx context.Context, committer interface{ Dirty(commit.Source) }, promote func() (dir string, err error)) error {
	l := m.log
	l.files.Lock()
	defer l.files.Unlock()
	l.exclude()
	defer l.ready()
	if err := l.writable(); err != nil {
		return err
	}
	if err := l.flushExcluded(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list, err := m.complete(ctx)
	if err != nil {
		return fmt.Errorf("copying the end of log %s to %s: %w", l.Dir(), m.dir, err)
	}
	dir, err := promote()
	if err != nil {
		list.active().retire()
		return fmt.Errorf("moving log %s: %w", l.Dir(), err)
	}
	m.settle(dir, list, committer)
	return nil
}

// complete makes the copy whole and durable, and returns its segments. Log.mu must be held, alone.
func (m *Move) complete(ctx context.Context) (segments, error) {
	l := m.log
	if active := l.list.Load().active(); active.size.Load() > 0 {
		// So the new directory begins with a segment of its own, and the old one's indexes are files.
		if _, err := l.roll(active); err != nil {
			return nil, err
		}
	}
	old := *l.list.Load()
	if _, err := m.pass(ctx, old); err != nil {
		return nil, err
	}
	for _, offset := range l.snapshots.offsets {
		if err := m.copyFile(fileName(offset, snapshotExt)); err != nil {
			return nil, err
		}
	}
	if err := m.writeEpochs(); err != nil {
		return nil, err
	}
	active, err := m.open(old.active().name(logExt))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.preallocate(active), l.fs.SyncDir(m.dir)); err != nil {
		return nil, errors.Join(err, active.Close())
	}
	return m.segments(old, active), nil
}

func (m *Move) writeEpochs() error {
	if err := m.remove(epochFile); err != nil {
		return err
	}
	f, err := m.open(epochFile)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(m.log.epochs().encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// segments are those of the copy, as after a clean stop; active is the file of the last, which is empty.
func (m *Move) segments(old segments, active vfs.File) segments {
	list := make(segments, len(old))
	for i, s := range old {
		n := newSegment(m.log, s.base)
		n.size.Store(s.size.Load())
		n.firstOpen.Store(s.firstOpen.Load())
		n.recovered = s.recovered
		list[i] = n
	}
	last := list.active()
	last.writer.created = old.active().writer.created
	last.pin(active)
	last.proven.Store(last.base)
	return list
}

// settle makes the copy the log. Everything in it is durable. Log.mu must be held, alone.
func (m *Move) settle(dir string, list segments, committer interface{ Dirty(commit.Source) }) {
	l := m.log
	old := *l.list.Load()
	for _, s := range old {
		s.loadMu.Lock()
		s.discarded = true
		s.loadMu.Unlock()
	}
	l.dir.Store(&dir)
	f := &l.flush
	f.Lock()
	f.pending, f.covered, f.dir, f.parent, f.dirty = nil, 0, false, false, false
	f.source = newSource(l, committer)
	f.Unlock()
	l.list.Store(&list)
	l.end.store(mark{offset: l.end.load().offset, segment: list.active().base})
	for _, s := range old {
		s.retire()
	}
	l.discards = discards{}
	l.snapshots.offsets = slices.DeleteFunc(l.snapshots.offsets, func(offset int64) bool {
		_, ok := m.files[fileName(offset, snapshotExt)]
		return !ok
	})
}
