package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"gregor/log/vfs"
)

// Slice is a range of whole batches of one segment file; the last one may be cut off. File stays open and readable until
// Release, which is to be called exactly once, whatever happens to the segment. The zero Slice is empty and needs none.
type Slice struct {
	File       vfs.File
	Pos        int64 // of the first byte in File
	Size       int   // in bytes; 0: nothing to read
	Offset     int64 // base offset of the first batch; of magic 0 and 1 its only, or last, offset
	FirstBatch int   // size of the first batch in bytes; more than Size if it did not fit and minOne was not asked

	handles *HandleCache
	file    *sharedFile
	seg     *segment
}

// Release lets the file go. The slice must not be used afterwards.
func (s *Slice) Release() {
	if s.file != nil {
		s.handles.release(s.file)
		*s = Slice{}
	}
}

// Read finds the batches from the one that holds offset on, up to limit, in one segment. ErrOffsetOutOfRange is an offset outside
// [StartOffset, EndOffset]; at the limit or above the slice is empty. With minOne the first batch is whole even if it is larger
// than maxBytes; otherwise the slice may end inside a batch, the first one too.
func (l *Log) Read(offset int64, maxBytes int, limit ReadLimit, minOne bool) (Slice, error) {
	for {
		list := l.list.Load()
		s, err := l.read(*list, offset, limit)
		if err == nil {
			return s.fit(maxBytes, minOne), nil
		}
		if !l.changedSince(list) {
			return Slice{}, err
		}
	}
}

// changedSince says that a read of list may have failed because its files were cut or deleted under it. Only then readers wait for
// the writer.
func (l *Log) changedSince(list *segments) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Load() != list
}

// fit cuts the slice to maxBytes.
func (s Slice) fit(maxBytes int, minOne bool) Slice {
	if minOne {
		maxBytes = max(maxBytes, s.FirstBatch)
	}
	s.Size = min(s.Size, max(maxBytes, 0))
	return s
}

func (l *Log) read(list segments, offset int64, limit ReadLimit) (Slice, error) {
	if l.closed.Load() {
		return Slice{}, ErrClosed
	}
	bound := l.bound(limit)
	if start, end := l.StartOffset(), l.EndOffset(); offset < start || offset > end {
		return Slice{}, fmt.Errorf("%w: %d is not in [%d, %d]", ErrOffsetOutOfRange, offset, start, end)
	}
	if offset >= bound.offset {
		return Slice{}, nil
	}
	// A gap that compaction left at the end of a segment leads on to the next.
	for i := max(list.find(offset), 0); i < len(list) && list[i].base <= bound.segment; i++ {
		s, err := list[i].slice(offset, bound)
		if err != nil || s.Size > 0 {
			return s, err
		}
	}
	return Slice{}, nil
}

// unknownPos is the position of a mark that only the index knows.
const unknownPos = -1

// bound is how far a read may go. With an open transaction it is the transaction's first batch, wherever that lies.
func (l *Log) bound(limit ReadLimit) mark {
	if limit == ToLogEnd {
		return l.end.load()
	}
	high := l.high.load()
	if open := max(l.firstOpen.Load(), l.StartOffset()); limit == ToLastStable && open < high.offset {
		list := *l.list.Load()
		return mark{offset: open, segment: list[max(list.find(open), 0)].base, pos: unknownPos}
	}
	return high
}

// endBelow is the position in s below which bound lets read.
func (s *segment) endBelow(bound mark, file vfs.File) (int64, error) {
	end := s.size.Load()
	switch {
	case bound.pos == unknownPos:
		at, err := s.seek(file, bound.offset, end)
		if err == io.EOF {
			return end, nil
		}
		return at.pos, err
	case bound.segment == s.base:
		return bound.pos, nil
	}
	return end, nil
}

// slice is the part of s that holds offset and what follows; empty if all of s lies below.
func (s *segment) slice(offset int64, bound mark) (Slice, error) {
	handles := s.log.handles
	file, err := handles.acquire(&s.data, s, logExt)
	if err != nil {
		return Slice{}, err
	}
	out := Slice{File: file, handles: handles, file: &s.data, seg: s}
	end, err := s.endBelow(bound, file)
	if err == nil {
		var at place
		if at, err = s.seek(file, offset, end); err == nil {
			out.Pos, out.Size, out.Offset, out.FirstBatch = at.pos, int(end-at.pos), at.offset, at.size
			return out, nil
		}
	}
	out.Release()
	if err == io.EOF {
		err = nil
	}
	return Slice{}, err
}

// place is where an entry lies.
type place struct {
	pos    int64
	size   int
	offset int64 // base offset
}

// seek finds the entry that holds offset, or the first after it, below position end. io.EOF: there is none.
func (s *segment) seek(file vfs.File, offset, end int64) (place, error) {
	if err := s.ensure(); err != nil {
		return place{}, err
	}
	blocks := &s.log.handles.blocks
	buf := blocks.get()
	defer blocks.put(buf)
	scan := scanner{file: file, end: end, buf: buf.b}
	err := s.startScan(&scan, offset)
	for err == nil && scan.entry.LastOffset < offset {
		err = scan.next()
	}
	if err != nil {
		return place{}, s.damaged(&scan, err)
	}
	return place{pos: scan.at, size: scan.entry.Size, offset: scan.entry.BaseOffset}, nil
}

// startScan reads the first entry for a scan that looks for offset, where the index says. An index whose ends are right may still
// be wrong in between: what is found there cannot be an entry, or begins after offset. Then the scan starts with the segment.
func (s *segment) startScan(scan *scanner, offset int64) error {
	pos, err := s.lookup(offset, scan.end)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an index that somebody deleted is only slow
		return &readError{err}
	}
	scan.pos = pos
	err = scan.next()
	if pos == 0 || err == nil && scan.entry.BaseOffset <= offset || err != nil && !isDamage(err) {
		return err
	}
	s.log.logger.Warn("index entry is wrong, reading the segment from its start", "file", s.path(indexExt), "offset", offset, "position", pos)
	scan.pos = 0
	return scan.next()
}

// lookup is a position at or before the entry that holds offset, by the index.
func (s *segment) lookup(offset, end int64) (int64, error) {
	at, err := s.offsets.floor(offset - s.base)
	if err != nil || at.number < 0 {
		return 0, err
	}
	_, pos := offsetEntry(at.entry[:])
	if pos >= end {
		// An entry that a reader may not see yet, or a wrong one: the start is always right.
		return 0, nil
	}
	return pos, nil
}

// damaged makes an error of the scanner one of the log: io.EOF stays, a failed read is wrapped, anything else is corruption.
func (s *segment) damaged(scan *scanner, err error) error {
	switch {
	case err == io.EOF:
		return err
	case isDamage(err):
		return &CorruptError{File: s.path(logExt), Pos: scan.pos, Err: err}
	}
	return fmt.Errorf("reading %s: %w", s.path(logExt), err)
}

// isDamage tells what the scanner found to be no entry from the end and from reads that failed.
func isDamage(err error) bool {
	var failed *readError
	return err != nil && err != io.EOF && !errors.As(err, &failed)
}
