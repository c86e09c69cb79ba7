package compact

import (
	"fmt"
	"math"

	"gregor/log/batch"
)

// Rules say what a round of cleaning may remove.
type Rules struct {
	Now               int64 // milliseconds
	DeleteRetentionMs int64 // delete.retention.ms
	// RoundEnd is the first offset that the round may not touch: the batch that ends there stays.
	RoundEnd int64
	// Producers are the last batches of the producers that the log knows.
	Producers map[int64]LastBatch
}

// LastBatch is the last batch of a producer.
type LastBatch struct {
	LastOffset int64 // -1: the producer has only a marker
	Epoch      int16
}

// Stats count what a filter did, in records, entries and bytes.
type Stats struct {
	EntriesRead, EntriesKept, EntriesRebuilt int64
	RecordsRead, RecordsKept                 int64
	RecordsInvalid                           int64 // without a key
	BytesRead, BytesKept                     int64
	LargestEntry                             int // bytes of the largest entry that was read
}

// Filter passes the entries of the log, from its first segment on, through an index. Entries come in the order of offsets.
type Filter struct {
	// KeepLegacyDeletes keeps tombstones of magic 0 and 1, which have no delete horizon: the segment that they come from is not old enough.
	KeepLegacyDeletes bool

	index   *Index
	rules   Rules
	txns    transactions
	reader  batch.Reader
	rebuild batch.Rebuilder
	keep    []bool
	still   []Aborted
	stats   Stats
}

// NewFilter makes a filter. aborted are the aborted transactions of the log from its first segment to the end of the index's last, by first offset.
func NewFilter(x *Index, r Rules, aborted []Aborted) *Filter {
	return &Filter{index: x, rules: r, txns: newTransactions(aborted)}
}

// Stats returns the counts so far.
func (f *Filter) Stats() Stats { return f.stats }

// TakeAborted returns the aborted transactions whose markers passed since the last call and of which something is still there: they belong into the
// transaction index of the segment that the markers go to.
func (f *Filter) TakeAborted() []Aborted {
	still := f.still
	f.still = nil
	return still
}

// Entry appends what is left of a whole entry, whose checksum is right, to dst: all of it, as it is; some of its records; an empty batch; or nothing.
func (f *Filter) Entry(dst, b []byte) ([]byte, error) {
	e, err := batch.ReadEntry(b)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	f.stats.EntriesRead++
	f.stats.BytesRead += int64(len(b))
	f.stats.LargestEntry = max(f.stats.LargestEntry, len(b))
	if e.Magic == 2 {
		dst, err = f.modern(dst, b)
	} else {
		dst, err = f.legacy(dst, b, &e)
	}
	if err != nil {
		return dst[:start], fmt.Errorf("entry at offset %d: %w", e.BaseOffset, err)
	}
	if len(dst) > start {
		f.stats.EntriesKept++
		f.stats.BytesKept += int64(len(dst) - start)
	}
	return dst, nil
}

// verdict is what is to become of a batch.
type verdict struct {
	free    bool // of an aborted transaction, or a marker without a transaction
	discard bool // all of its records go
	retain  bool // an empty batch stays when its records go
}

func (f *Filter) modern(dst, b []byte) ([]byte, error) {
	h, err := batch.ReadHeader(b)
	if err != nil {
		return dst, err
	}
	v, err := f.judge(&h, b)
	if err != nil {
		return dst, err
	}
	if v.discard && !v.retain {
		f.stats.RecordsRead += int64(h.Count)
		return dst, nil
	}
	if v.discard || h.Count == 0 {
		f.stats.RecordsRead += int64(h.Count)
		return f.emptied(dst, b, &h, v), nil
	}
	kept, tombstones, err := f.records(b, &h)
	switch {
	case err != nil:
		return dst, err
	case kept == 0:
		return f.emptied(dst, b, &h, v), nil
	}
	_, stamped := h.DeleteHorizon()
	restamp := batch.Restamp{Set: !stamped && (tombstones || h.Control() && v.free), Horizon: later(f.rules.Now, f.rules.DeleteRetentionMs)}
	if kept == int(h.Count) && !restamp.Set {
		return append(dst, b...), nil
	}
	f.stats.EntriesRebuilt++
	return f.rebuild.Rebuild(dst, b, f.keep, restamp, f.index.limits.MaxDecompressed)
}

// later adds a duration, which may be the largest, to a time.
func later(now, ms int64) int64 {
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}

// judge decides on a batch before its records are looked at.
func (f *Filter) judge(h *batch.Header, b []byte) (v verdict, err error) {
	if h.Control() {
		if v.free, err = f.control(h, b); err != nil {
			return v, err
		}
		horizon, stamped := h.DeleteHorizon()
		v.discard = v.free && stamped && horizon <= f.rules.Now
	} else {
		v.free = f.txns.data(h)
		v.discard = v.free
	}
	v.retain = f.lastOfProducer(h) || h.LastOffset()+1 == f.rules.RoundEnd
	return v, nil
}

// control says whether a control batch can go once its delete horizon passed.
func (f *Filter) control(h *batch.Header, b []byte) (bool, error) {
	kind, ok, err := controlKind(&f.reader, b)
	f.reader.Release()
	if err != nil {
		return false, err
	}
	if !ok {
		f.txns.begin(h.LastOffset())
		return true, nil // its record went before
	}
	free, still := f.txns.marker(h, kind)
	if still != nil {
		f.still = append(f.still, *still)
	}
	return free, nil
}

// lastOfProducer says whether a batch has the state that its producer goes on from: the last sequence, or, where no records were seen since, the epoch.
func (f *Filter) lastOfProducer(h *batch.Header) bool {
	if h.ProducerID < 0 {
		return false
	}
	last, ok := f.rules.Producers[h.ProducerID]
	switch {
	case !ok:
		return false
	case last.LastOffset >= 0:
		return last.LastOffset == h.LastOffset()
	}
	return h.Control() && h.ProducerEpoch == last.Epoch
}

// emptied appends the batch without records, if it is to stay.
func (f *Filter) emptied(dst, b []byte, h *batch.Header, v verdict) []byte {
	switch {
	case !v.retain:
		return dst
	case h.Count == 0:
		return append(dst, b...)
	}
	f.stats.EntriesRebuilt++
	return batch.AppendEmpty(dst, h)
}

// records fills keep, and says how many records stay and whether one of them is a tombstone.
func (f *Filter) records(b []byte, h *batch.Header) (kept int, tombstones bool, err error) {
	if err := f.reader.Reset(b, f.index.limits.MaxDecompressed); err != nil {
		return 0, false, err
	}
	defer f.reader.Release()
	f.keep = f.keep[:0]
	var rec batch.Record
	for f.reader.Next(&rec) {
		keep := f.record(h, &rec)
		f.keep = append(f.keep, keep)
		f.stats.RecordsRead++
		if keep {
			kept++
			f.stats.RecordsKept++
			tombstones = tombstones || rec.Value == nil
		}
	}
	return kept, tombstones, f.reader.Err()
}

func (f *Filter) record(h *batch.Header, rec *batch.Record) bool {
	switch {
	case h.Control() || rec.Offset >= f.index.end:
		return true
	case rec.Key == nil:
		f.stats.RecordsInvalid++
		return false
	case rec.Offset < f.index.offsets.get(rec.Key):
		return false
	}
	return rec.Value != nil || f.keepsTombstone(h)
}

func (f *Filter) keepsTombstone(h *batch.Header) bool {
	if h.Magic < 2 {
		return f.KeepLegacyDeletes
	}
	horizon, stamped := h.DeleteHorizon()
	return !stamped || f.rules.Now < horizon
}

// legacy passes a message of magic 0 or 1, or a compressed set of them.
func (f *Filter) legacy(dst, b []byte, e *batch.Entry) ([]byte, error) {
	h := batch.Header{Magic: e.Magic}
	kept, _, err := f.records(b, &h)
	if err != nil {
		return dst, err
	}
	if kept == 0 && e.LastOffset+1 == f.rules.RoundEnd && len(f.keep) > 0 {
		// There are no empty entries in these formats, so that the last message stays.
		f.keep[len(f.keep)-1] = true
		f.stats.RecordsKept++
		kept = 1
	}
	switch kept {
	case 0:
		return dst, nil
	case len(f.keep):
		return append(dst, b...), nil
	}
	f.stats.EntriesRebuilt++
	return f.rebuild.Rebuild(dst, b, f.keep, batch.Restamp{}, f.index.limits.MaxDecompressed)
}
