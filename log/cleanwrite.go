package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// cleanedExt and swapExt go after the names of a compacted segment's files while it is written, and while it takes the place of others, as in Kafka.
const (
	cleanedExt = ".cleaned"
	swapExt    = ".swap"
)

// output is a segment that a clean writes. Its files have cleanedExt until the swap.
type output struct {
	*segment
	file vfs.File
	buf  []byte // what is not written yet
	end  int64  // of the entries, written or not
}

// newOutput makes the file. One that is there is left from a clean that failed.
func (c *clean) newOutput(base int64) (*output, error) {
	s := newSegment(c.Log, base)
	s.suffix = cleanedExt
	for _, ext := range segmentExts() {
		if err := c.fs.Remove(s.path(ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	f, err := c.fs.Create(s.path(logExt))
	if err != nil {
		return nil, err
	}
	return &output{segment: s, file: f}, nil
}

// segmentExts are the files of a segment; the .log is the segment and comes first.
func segmentExts() [4]string { return [4]string{logExt, indexExt, timeExt, txnExt} }

// group cleans segments into one and swaps it in.
func (c *clean) group(old segments) error {
	out, err := c.newOutput(old[0].base)
	if err != nil {
		return c.cannotWrite(err)
	}
	before := c.filter.Stats()
	err = c.fill(out, old)
	after := c.filter.Stats()
	if err == nil && len(old) == 1 && after.BytesKept-before.BytesKept == old[0].size.Load() && after.EntriesRebuilt == before.EntriesRebuilt {
		// Nothing went.
		c.done.Filter = after
		c.done.SegmentsOld++
		c.done.SegmentsNew++
		return c.giveUp(out, nil)
	}
	if err == nil {
		err = out.finish(old)
	}
	if err != nil {
		return c.giveUp(out, c.cannotWrite(err))
	}
	if err := c.swap(out, old); err != nil {
		return err
	}
	c.done.Filter = after
	c.done.SegmentsOld += len(old)
	c.done.SegmentsNew++
	return nil
}

// cannotWrite says where an error comes from; a full disk is told from others.
func (c *clean) cannotWrite(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%w: cleaning %s: %w", ErrNoSpace, c.Dir(), err)
	}
	return fmt.Errorf("cleaning %s: %w", c.Dir(), err)
}

// giveUp closes and removes what was written.
func (c *clean) giveUp(out *output, cause error) error {
	err := out.file.Close()
	for _, ext := range segmentExts() {
		if e := c.fs.Remove(out.path(ext)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if cause != nil {
		return cause // the files go at the next clean or start
	}
	return err
}

// fill passes the segments through the filter into out.
func (c *clean) fill(out *output, old segments) error {
	for _, s := range old {
		written, err := s.modified()
		if errors.Is(err, fs.ErrNotExist) {
			return errSegmentGone
		}
		if err != nil {
			return err
		}
		c.filter.KeepLegacyDeletes = written > c.legacy
		if err := c.entries(s, s.base, func(b []byte) (bool, error) { return true, c.pass(out, b) }); err != nil {
			return err
		}
	}
	for _, a := range c.filter.TakeAborted() {
		var b [txnEntrySize]byte
		out.aborted.add(appendAborted(b[:0], AbortedTxn(a)))
	}
	return out.write()
}

// pass adds what is left of one entry to out.
func (c *clean) pass(out *output, b []byte) error {
	from := len(out.buf)
	var err error
	if out.buf, err = c.filter.Entry(out.buf, b); err != nil || len(out.buf) == from {
		return err
	}
	kept := out.buf[from:]
	e, err := batch.ReadEntry(kept)
	if err != nil {
		return err
	}
	if out.end+int64(len(kept)) > math.MaxInt32 {
		return fmt.Errorf("what is left of segment %s would not fit into one", out.name(logExt))
	}
	out.account(out.end, &e)
	out.end += int64(len(kept))
	if len(out.buf) >= len(c.buf) {
		if err := c.pace(len(out.buf)); err != nil {
			return err
		}
		return out.write()
	}
	return nil
}

// write empties the buffer.
func (out *output) write() error {
	if len(out.buf) == 0 {
		return nil
	}
	if _, err := out.file.WriteAt(out.buf, out.end-int64(len(out.buf))); err != nil {
		return err
	}
	out.buf = out.buf[:0]
	return nil
}

// finish writes the indexes and makes all files durable, entries of the directory too.
func (out *output) finish(old segments) error {
	out.size.Store(out.end)
	if err := out.seal(); err != nil {
		return err
	}
	files := []string{out.name(indexExt), out.name(timeExt)}
	if out.aborted.entries() > 0 {
		if err := out.aborted.seal(); err != nil {
			return err
		}
		files = append(files, out.name(txnExt))
	}
	// Tombstones of magic 0 and 1, and segments without timestamps, are as old as their files.
	if err := keepTime(out, old[len(old)-1]); err != nil {
		return err
	}
	if err := out.file.Sync(); err != nil {
		return err
	}
	for _, name := range files {
		if err := (&hardSync{out.log, name}).Sync(); err != nil {
			return err
		}
	}
	return out.log.fs.SyncDir(out.log.Dir())
}

// hardSync syncs a file that must be there.
type hardSync struct {
	log  *Log
	name string
}

func (s *hardSync) Sync() error {
	f, err := s.log.openRead(s.name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// keepTime gives the output the modification time of the newest segment that it stands for.
func keepTime(out *output, newest *segment) error {
	setter, ok := out.log.fs.(vfs.ModTimeSetter)
	if !ok {
		return nil
	}
	written, err := newest.modified()
	if err != nil {
		return err
	}
	return setter.SetModTime(out.path(logExt), time.UnixMilli(written))
}
