package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"gregor/log/vfs"
)

// swap puts out in the place of old. What a power cut leaves at each step:
//
//	files with .cleaned, some of them with .swap: the clean did not happen; they are removed
//	all with .swap, durably: the clean happened; the start deletes what they replace and takes the suffix off
//	some without suffix, the others with .swap: likewise
//
// The old segments go one after the other, durably: those that are left after a cut are the newest, so that no record comes back without what
// came after it.
func (c *clean) swap(out *output, old segments) error {
	c.files.Lock()
	defer c.files.Unlock()
	if err := c.settle(); err != nil {
		return c.giveUp(out, err)
	}
	if !c.holds(old) {
		return c.giveUp(out, errSegmentGone)
	}
	fresh, err := out.publishable(old[0])
	if err != nil {
		return c.giveUp(out, c.cannotWrite(err))
	}
	if err := c.armSwap(out); err != nil {
		closeFresh(fresh)
		return err
	}
	snapshots := c.exchange(fresh, old)
	err = c.replace(fresh, old)
	for _, f := range []*sharedFile{&fresh.data, &fresh.offsets.file, &fresh.times.file, &fresh.aborted.file} {
		if f.file != nil {
			c.handles.release(f)
		}
	}
	if err != nil {
		return c.setOffline(fmt.Errorf("swapping in %s: %w; the next start ends it", fresh.path(logExt), err))
	}
	for _, offset := range snapshots {
		c.removeSnapshot(offset, nil)
	}
	return nil
}

// holds says that old are in the log yet, one after the other.
func (c *clean) holds(old segments) bool {
	list := *c.Log.list.Load()
	i := slices.Index(list, old[0])
	return i >= 0 && i+len(old) < len(list) && slices.Equal(list[i:i+len(old)], old)
}

// publishable is the segment of out with open handles, under the names that its files will have.
func (out *output) publishable(first *segment) (*segment, error) {
	s := newSegment(out.log, out.base)
	s.data.adopt(out.file)
	for _, x := range []struct{ to, from *sparse }{{&s.offsets, &out.offsets}, {&s.times, &out.times}, {&s.aborted, &out.segment.aborted}} {
		if x.from.ext == txnExt && x.from.entries() == 0 {
			continue
		}
		f, err := out.log.openRead(out.name(x.from.ext))
		if err != nil {
			closeFresh(s)
			return nil, err
		}
		x.to.file.adopt(f)
		x.to.reset(x.from.entries())
	}
	s.size.Store(out.end)
	s.maxTime.Store(out.maxTime.Load())
	// The transactions come from indexes that were proven.
	s.writer.abortedInFile = s.aborted.entries()
	s.proven.Store(s.base)
	s.firstOpen.Store(first.firstOpen.Load())
	s.loaded.Store(true)
	return s, nil
}

// closeFresh closes the indexes of a segment that will not be published; its .log is out's.
func closeFresh(s *segment) {
	for _, f := range []vfs.File{s.offsets.file.file, s.times.file.file, s.aborted.file.file} {
		if f != nil {
			_ = f.Close() // only read
		}
	}
}

// armSwap renames the files from .cleaned to .swap, durably: from then on the clean has happened. When it fails nothing of them may stay, since a
// later start would take it for a clean of what the log is then.
func (c *clean) armSwap(out *output) error {
	dir := c.Dir()
	err := c.renameAll(out.base, cleanedExt, swapExt)
	if err == nil {
		if err = c.fs.SyncDir(dir); err == nil {
			return nil
		}
	}
	undo := out.file.Close()
	for _, suffix := range []string{swapExt, cleanedExt} { // while there is a .cleaned, a .swap does not count
		for _, ext := range segmentExts() {
			if e := c.fs.Remove(filepath.Join(dir, fileName(out.base, ext)+suffix)); e != nil && !errors.Is(e, fs.ErrNotExist) {
				undo = errors.Join(undo, e)
			}
		}
		undo = errors.Join(undo, c.fs.SyncDir(dir))
	}
	if undo != nil {
		return c.setOffline(fmt.Errorf("taking back a swap of %s: %w", dir, errors.Join(undo, err)))
	}
	return c.cannotWrite(err)
}

// renameAll renames the files of a segment from one suffix to another. A transaction index may not be there, nor any index after an older failure.
func (l *Log) renameAll(base int64, from, to string) error {
	for _, ext := range segmentExts() {
		path := filepath.Join(l.Dir(), fileName(base, ext))
		err := l.fs.Rename(path+from, path+to)
		if err != nil && (ext == logExt || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// exchange publishes the log with fresh in the place of old, and returns the producer snapshots that go with old.
func (c *clean) exchange(fresh *segment, old segments) (snapshots []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := *c.Log.list.Load()
	i := slices.Index(list, old[0]) // Log.files is held: it is there
	next := list[i+len(old)]
	c.liftHigh(old, next.base)
	changed := slices.Concat(list[:i], segments{fresh}, list[i+len(old):])
	c.Log.list.Store(&changed)
	newest, _ := c.snapshots.newest()
	c.snapshots.offsets = slices.DeleteFunc(c.snapshots.offsets, func(offset int64) bool {
		if offset == newest || offset <= fresh.base || offset >= next.base {
			return false
		}
		snapshots = append(snapshots, offset)
		return true
	})
	return snapshots
}

// liftHigh moves the high watermark from the end of a segment that goes to the same offset at the start of the next. It is stored before the list, which
// readers load first.
func (c *clean) liftHigh(old segments, next int64) {
	c.flush.Lock()
	defer c.flush.Unlock()
	high := c.high.load()
	if high.segment >= old[0].base && high.segment < next {
		c.high.store(mark{offset: max(high.offset, next), segment: next})
	}
}

// replace takes the old files away and gives the new ones their names.
func (c *clean) replace(fresh *segment, old segments) error {
	if err := c.discard(old); err != nil {
		return err
	}
	if err := c.fs.SyncDir(c.Dir()); err != nil {
		return err
	}
	if err := c.renameAll(fresh.base, swapExt, ""); err != nil {
		return err
	}
	return c.fs.SyncDir(c.Dir())
}
