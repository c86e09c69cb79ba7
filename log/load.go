package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// smallSegment is the size in bytes up to which a segment is read from its start rather than from what its indexes say: one
// read instead of two files to open.
const smallSegment = 64 << 10

// errIndex is an index that cannot be that of its segment.
var errIndex = errors.New("index does not match the log")

// resume finds where reading s, a segment that becomes the active one, may begin: the batch of the last index entry that is
// durable and not after the batch with the largest timestamp so far. What the indexes say up to there is kept. When they
// say nothing useful it is the start.
func (r *recovery) resume(s *segment, size int64) (place, error) {
	below := int64(math.MaxInt64) // relative offsets that count
	if !r.trust {
		below = r.point - s.base
	}
	if size <= smallSegment || below <= 0 {
		return place{}, nil
	}
	at, err := s.resumeAt(size, below, r.trust)
	if errors.Is(err, errIndex) {
		r.logger.Warn("rebuilding the indexes of a segment", "file", s.path(logExt), "reason", err)
		s.offsets.reset(0)
		s.times.reset(0)
		r.changed = true
		return place{}, nil
	}
	return at, err
}

func (s *segment) resumeAt(size, below int64, cheap bool) (place, error) {
	if err := s.readIndexes(size, below, cheap); err != nil {
		return place{}, err
	}
	newest, err := s.times.floor(math.MaxInt64)
	if err != nil {
		return place{}, err
	}
	ts, relative := timeEntry(newest.entry[:])
	entry, err := s.offsets.floor(relative)
	if newest.number < 0 || entry.number < 0 || err != nil {
		s.offsets.reset(0)
		s.times.reset(0)
		return place{}, err
	}
	_, pos := offsetEntry(entry.entry[:])
	s.size.Store(size)
	if err := s.checkNewest(s.data.file, ts, relative); err != nil {
		return place{}, err
	}
	first, err := s.entryAt(s.data.file, 0)
	if err != nil {
		return place{}, err
	}
	e, err := s.entryAt(s.data.file, pos)
	if err != nil {
		return place{}, err
	}
	s.offsets.reset(entry.number + 1)
	s.maxTime.Store(ts)
	s.writer.firstTime, s.writer.indexedTime, s.writer.maxTimeOffset = first.MaxTimestamp, ts, s.base+relative
	return place{pos: pos, size: e.Size, offset: e.BaseOffset}, nil
}

// ensure looks at the indexes of a sealed segment when they are needed first, and rebuilds them if they are wrong.
func (s *segment) ensure() error {
	if s.loaded.Load() {
		return nil
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if s.loaded.Load() {
		return nil
	}
	if s.discarded {
		return fs.ErrNotExist // the reader looks for the segment again
	}
	err := s.checkSealed()
	if errors.Is(err, errIndex) {
		s.log.logger.Warn("rebuilding the indexes of a segment", "file", s.path(logExt), "reason", err)
		err = s.rebuild()
	}
	if err != nil {
		return err
	}
	s.loaded.Store(true)
	return nil
}

// checkSealed compares the ends of the indexes with the segment. What is right there was whole when it was written.
func (s *segment) checkSealed() error {
	size := s.size.Load()
	if err := s.readIndexes(size, math.MaxInt64, true); err != nil {
		return err
	}
	newest, err := s.times.floor(math.MaxInt64)
	if err != nil {
		return err
	}
	file, err := s.log.handles.acquire(&s.data, s, logExt)
	if err != nil {
		return err
	}
	defer s.log.handles.release(&s.data)
	ts, relative := int64(noTime), int64(0)
	if newest.number >= 0 {
		ts, relative = timeEntry(newest.entry[:])
		if err := s.checkNewest(file, ts, relative); err != nil {
			return err
		}
	}
	s.maxTime.Store(ts)
	return s.checkTail(file, ts)
}

// checkTail reads from the last index entry to the end: no batch there may lack an entry or be newer than the time index says.
func (s *segment) checkTail(file vfs.File, newest int64) error {
	last, err := s.offsets.floor(math.MaxInt64)
	if err != nil {
		return err
	}
	pos := int64(0)
	if last.number >= 0 {
		_, pos = offsetEntry(last.entry[:])
	}
	buf := s.log.handles.blocks.get()
	defer s.log.handles.blocks.put(buf)
	scan := scanner{file: file, pos: pos, end: s.size.Load(), buf: buf.b}
	// The interval may have been another one when the index was written.
	enough := int64(max(smallSegment, 4*s.log.cfg.Load().IndexIntervalBytes))
	for {
		err := scan.next()
		if err == io.EOF {
			return nil
		}
		if isDamage(err) && pos > 0 {
			return fmt.Errorf("%w: the last entry leads nowhere: %w", errIndex, err)
		}
		if err != nil {
			return s.damaged(&scan, err)
		}
		if scan.at-pos > enough {
			return fmt.Errorf("%w: no entry for the last %d bytes", errIndex, scan.end-pos)
		}
		if scan.entry.MaxTimestamp > max(newest, noTime) {
			return fmt.Errorf("%w: the largest timestamp is not %d", errIndex, newest)
		}
	}
}

// rebuild makes the indexes of a sealed segment from its headers. If they cannot be written they stay in memory.
func (s *segment) rebuild() error {
	s.offsets.reset(0)
	s.times.reset(0)
	s.maxTime.Store(noTime)
	s.writer = segmentWriter{firstTime: noTime, indexedTime: noTime, maxTimeOffset: s.base}
	file, err := s.log.handles.acquire(&s.data, s, logExt)
	if err != nil {
		return err
	}
	defer s.log.handles.release(&s.data)
	buf := s.log.handles.chunks.get()
	defer s.log.handles.chunks.put(buf)
	scan := scanner{file: file, end: s.size.Load(), buf: buf.b}
	for err = scan.next(); err == nil; err = scan.next() {
		if !s.fits(scan.entry.LastOffset) || scan.entry.LastOffset < s.base {
			return s.damaged(&scan, fmt.Errorf("offset %d is not one of this segment", scan.entry.LastOffset))
		}
		s.account(scan.at, &scan.entry)
	}
	if err != io.EOF {
		return s.damaged(&scan, err)
	}
	if err := s.seal(); err != nil {
		s.log.logger.Warn("rebuilt indexes cannot be written and stay in memory", "file", s.path(logExt), "error", err)
		return nil
	}
	s.log.needSync(&fileSync{s.log, s.name(indexExt)})
	s.log.needSync(&fileSync{s.log, s.name(timeExt)})
	return nil
}

// checkNewest checks that the batch that holds the relative offset has the timestamp, as the last entry of the time index says.
func (s *segment) checkNewest(file vfs.File, ts, relative int64) error {
	from, err := s.lookup(s.base+relative, s.size.Load())
	if err != nil {
		return err
	}
	buf := s.log.handles.blocks.get()
	defer s.log.handles.blocks.put(buf)
	scan := scanner{file: file, pos: from, end: s.size.Load(), buf: buf.b}
	for err = scan.next(); err == nil; err = scan.next() {
		if scan.entry.LastOffset < s.base+relative {
			continue
		}
		if scan.entry.MaxTimestamp == ts && scan.entry.BaseOffset <= s.base+relative {
			return nil
		}
		break
	}
	if err != nil && err != io.EOF && !isDamage(err) {
		return err
	}
	return fmt.Errorf("%w: timestamp %d is not at offset %d", errIndex, ts, s.base+relative)
}

// entryAt reads the header of the entry at pos, which an index says is there.
func (s *segment) entryAt(file vfs.File, pos int64) (batch.Entry, error) {
	var head [batch.EntryHeaderSize]byte
	scan := scanner{file: file, pos: pos, end: s.size.Load(), buf: head[:]}
	err := scan.next()
	if err != nil && (err == io.EOF || isDamage(err)) {
		return batch.Entry{}, fmt.Errorf("%w: no batch at byte %d", errIndex, pos)
	}
	return scan.entry, err
}

// readIndexes finds how much of both index files can be right for a segment of size bytes; entries for relative offsets from
// below on do not count. Cheaply: if the last entries are right, all are.
func (s *segment) readIndexes(size, below int64, cheap bool) error {
	lastKey, lastPos := int64(-1), int64(-1)
	err := s.offsets.readFile(cheap, below == math.MaxInt64, func(b []byte, first bool) bool {
		key, pos := offsetEntry(b)
		ok := (first || key > lastKey && pos > lastPos) && key >= 0 && pos >= 0 && key < below && pos < size
		lastKey, lastPos = key, pos
		return ok
	})
	if err != nil {
		return err
	}
	lastTime, lastRelative := int64(noTime), int64(-1)
	return s.times.readFile(cheap, below == math.MaxInt64, func(b []byte, first bool) bool {
		ts, relative := timeEntry(b)
		ok := (first || ts > lastTime && relative >= lastRelative) && ts >= 0 && relative >= 0 && relative < below
		lastTime, lastRelative = ts, relative
		return ok
	})
}

// readFile counts the entries at the start of the index file that ascend, as next tells. cheap looks at the last ones first;
// whole asks for an error when not all are good.
func (x *sparse) readFile(cheap, whole bool, next func(b []byte, first bool) bool) error {
	x.reset(0)
	f, err := x.seg.log.openRead(x.seg.name(x.ext))
	if errors.Is(err, fs.ErrNotExist) {
		if whole {
			err = fmt.Errorf("%w: %s is missing", errIndex, x.seg.name(x.ext))
		} else {
			err = nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	n := int(size / int64(x.width))
	from := 0
	if cheap {
		from = max(0, n-blockBytes/x.width)
	}
	good, err := x.count(f, from, n, next)
	if err == nil && from > 0 && good < n {
		good, err = x.count(f, 0, n, next)
	}
	if err != nil {
		return err
	}
	if whole && (good < n || size%int64(x.width) != 0) {
		return fmt.Errorf("%w: %s has %d good entries in %d bytes", errIndex, x.seg.name(x.ext), good, size)
	}
	x.reset(good)
	return nil
}

// count reads entries from number from to n until one is not good, and returns its number.
func (x *sparse) count(f io.ReaderAt, from, n int, next func(b []byte, first bool) bool) (int, error) {
	blocks := &x.seg.log.handles.blocks
	buf := blocks.get()
	defer blocks.put(buf)
	per := len(buf.b) / x.width
	for at := from; at < n; at += per {
		b := buf.b[:min(per, n-at)*x.width]
		if _, err := f.ReadAt(b, int64(at*x.width)); err != nil {
			return 0, fmt.Errorf("reading %s: %w", x.seg.path(x.ext), noEOF(err))
		}
		for i := 0; i < len(b); i += x.width {
			if !next(b[i:i+x.width], at == from && i == 0) {
				return at + i/x.width, nil
			}
		}
	}
	return n, nil
}
