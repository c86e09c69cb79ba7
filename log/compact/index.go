package compact

import (
	"fmt"

	"gregor/log/batch"
)

// Limits of an Index.
type Limits struct {
	Bytes int64 // of memory, log.cleaner.dedupe.buffer.size
	// Load is how full the table may get, log.cleaner.io.buffer.load.factor.
	Load float64
	// MaxDecompressed bounds what an entry may inflate to, in bytes; 0 is batch.DefaultMaxDecompressed.
	MaxDecompressed int64
}

// Index has the newest offset of each key in the part of a log that is not clean yet.
type Index struct {
	offsets *offsets
	txns    transactions
	reader  batch.Reader
	limits  Limits
	start   int64
	end     int64
}

// NewIndex makes an index of the offsets from start on, below bound. aborted are the aborted transactions of that part of the log by first offset. No more
// memory is taken than bound-start keys need.
func NewIndex(l Limits, start, bound int64, aborted []Aborted) *Index {
	return &Index{offsets: newOffsets(l.Bytes, l.Load, bound-start), txns: newTransactions(aborted), limits: l, start: start, end: start}
}

// End is the offset below which all records are known.
func (x *Index) End() int64 { return x.end }

// Len is the number of keys.
func (x *Index) Len() int { return x.offsets.n }

// Bytes is the memory of the table.
func (x *Index) Bytes() int64 { return int64(len(x.offsets.slots)) * slotBytes }

// Reached says that there is nothing below offset that was not added: entries that would follow were removed.
func (x *Index) Reached(offset int64) { x.end = max(x.end, offset) }

// Add takes the next whole entry of the log, whose checksum is right, in the order of offsets. False: there is no room for all of it, and nothing more may be
// added; what is below End is known.
func (x *Index) Add(b []byte) (bool, error) {
	e, err := batch.ReadEntry(b)
	if err != nil {
		return false, err
	}
	skip, err := x.skip(b, &e)
	if err != nil {
		return false, fmt.Errorf("entry at offset %d: %w", e.BaseOffset, err)
	}
	if !skip {
		room, err := x.addRecords(b)
		if err != nil {
			return false, fmt.Errorf("entry at offset %d: %w", e.BaseOffset, err)
		}
		if !room {
			return false, nil
		}
	}
	x.Reached(e.LastOffset + 1)
	return true, nil
}

// skip says whether an entry has no records that count: it is a control batch, or of an aborted transaction.
func (x *Index) skip(b []byte, e *batch.Entry) (bool, error) {
	if e.Magic < 2 {
		return false, nil
	}
	h, err := batch.ReadHeader(b)
	if err != nil {
		return false, err
	}
	if !h.Control() {
		return x.txns.data(&h), nil
	}
	kind, ok, err := controlKind(&x.reader, b)
	if ok && err == nil {
		x.txns.marker(&h, kind)
	}
	return true, err
}

func (x *Index) addRecords(b []byte) (room bool, err error) {
	if err := x.reader.Reset(b, x.limits.MaxDecompressed); err != nil {
		return false, err
	}
	defer x.reader.Release()
	var rec batch.Record
	for x.reader.Next(&rec) {
		if rec.Key == nil || rec.Offset < x.start {
			continue
		}
		if !x.offsets.put(rec.Key, rec.Offset) {
			x.end = max(x.end, rec.Offset)
			return false, nil
		}
	}
	return true, x.reader.Err()
}
