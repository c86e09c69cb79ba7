package broker

import (
	"fmt"

	"gregor/log"
	"gregor/log/batch"
)

// loadChunk is how much is read of a log at once, in bytes.
const loadChunk = 1 << 20

// entryPrefix is what batch.EntrySize needs to see, in bytes.
const entryPrefix = batch.OverheadSize + 5

// stateReplay reads the partitions of an internal topic from start to end.
type stateReplay struct {
	// entry is given each batch, verified, with the reader set to it. Records below from are not to be used.
	entry  func(h *batch.Header, records *batch.Reader, from int64) error
	stop   func() bool
	reader batch.Reader
	buf    []byte
	bytes  int64 // of all batches
}

// run reads a partition, until its end or until stop says so.
func (r *stateReplay) run(p *partition) error {
	for from, end := p.log.StartOffset(), p.log.EndOffset(); from < end && !r.stop(); {
		next, err := r.chunk(p, from)
		if err != nil {
			return err
		}
		if next == from {
			break // a gap at the end
		}
		from = next
	}
	return nil
}

// chunk replays what one read gives, and returns the offset to go on from.
func (r *stateReplay) chunk(p *partition, from int64) (int64, error) {
	slice, err := p.log.Read(from, loadChunk, log.ToLogEnd, true)
	if err != nil || slice.Size == 0 {
		return from, err
	}
	defer slice.Release()
	if cap(r.buf) < slice.Size {
		r.buf = make([]byte, slice.Size)
	}
	b := r.buf[:slice.Size]
	if _, err := slice.File.ReadAt(b, slice.Pos); err != nil {
		return from, fmt.Errorf("reading %d bytes at %d: %w", slice.Size, slice.Pos, err)
	}
	damaged := func(offset int64, err error) error {
		return fmt.Errorf("batch at offset %d of %s-%d: %w", offset, p.topic.name, p.num, err)
	}
	next := from
	for len(b) >= entryPrefix {
		size, err := batch.EntrySize(b)
		if err != nil {
			return next, damaged(next, err)
		}
		if size > len(b) {
			break // cut off by the size of the read
		}
		e, err := batch.ReadEntry(b[:size])
		if err == nil {
			err = r.one(b[:size], from)
		}
		if err != nil {
			return next, damaged(next, err)
		}
		next = e.LastOffset + 1
		r.bytes += int64(size)
		b = b[size:]
	}
	return next, nil
}

// one replays one batch.
func (r *stateReplay) one(b []byte, from int64) error {
	if err := batch.Verify(b); err != nil {
		return err
	}
	if err := r.reader.Reset(b, 0); err != nil {
		return err
	}
	h := r.reader.Header()
	if err := r.entry(&h, &r.reader, from); err != nil {
		return err
	}
	return r.reader.Err()
}
