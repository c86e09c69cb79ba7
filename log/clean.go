package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"gregor/log/batch"
	"gregor/log/compact"
)

// Compaction. A clean reads the dirty segments into an index of the newest offset of each key, then passes all segments up to where the index ends
// through a filter, group by group, and swaps each group for one segment. Reading and writing hold no lock; only the swap of a group takes Log.files, which
// appends and syncs do not wait for, and Log.mu for the moment in which the list changes.

// ErrCleanAgain is a clean that met a truncation, a deletion or a move of the log: nothing is lost, and another clean may begin at once.
var ErrCleanAgain = errors.New("log changed while it was cleaned")

// Cleanable is what a clean would find.
type Cleanable struct {
	First      int64 // first dirty offset
	End        int64 // first offset that may not be cleaned yet: the base of a segment
	CleanBytes int64 // size of the segments below First
	DirtyBytes int64 // size of the segments from First to End
	// OldestMs is the least timestamp of the first batches of all dirty segments but the active one, math.MaxInt64 if there is none; for
	// max.compaction.lag.ms.
	OldestMs int64
}

// Ratio is the dirty share of what can be cleaned, from 0 to 1.
func (c Cleanable) Ratio() float64 {
	if c.DirtyBytes == 0 {
		return 0
	}
	return float64(c.DirtyBytes) / float64(c.DirtyBytes+c.CleanBytes)
}

// CleanBelow is the offset below which the log is clean, as far as it is known; for cleaner-offset-checkpoint.
func (l *Log) CleanBelow() int64 { return l.cleanBelow.Load() }

// Cleanable says what can be cleaned. What may not be cleaned: the active segment, segments that the last stable offset has not passed, and
// segments with records younger than minLagMs. OldestMs is looked for only if it is asked for: it costs a read for each dirty segment.
func (l *Log) Cleanable(minLagMs int64, oldest bool) (Cleanable, error) {
	for {
		if err := l.writable(); err != nil {
			return Cleanable{}, err
		}
		list := l.list.Load()
		c, err := l.cleanable(*list, minLagMs, oldest)
		if err == nil || !l.changedSince(list) {
			return c, err
		}
	}
}

func (l *Log) cleanable(list segments, minLagMs int64, oldest bool) (Cleanable, error) {
	c := Cleanable{First: l.firstDirty(list), OldestMs: math.MaxInt64}
	end, err := l.cleanEnd(list, c.First, minLagMs)
	if err != nil {
		return Cleanable{}, err
	}
	from := max(list.find(c.First), 0)
	for _, s := range list[:min(from, end)] {
		c.CleanBytes += s.size.Load()
	}
	for _, s := range list[from:max(end, from)] {
		c.DirtyBytes += s.size.Load()
	}
	c.End = max(list[end].base, c.First)
	if !oldest {
		return c, nil
	}
	for _, s := range list[from : len(list)-1] {
		at, err := s.firstTime()
		if err != nil {
			return Cleanable{}, err
		}
		if at > 0 {
			c.OldestMs = min(c.OldestMs, at)
		}
	}
	return c, nil
}

// firstDirty is the first offset that is not clean. One from a checkpoint that cannot be right, being outside of what is durable and sealed, counts as
// the log start: to clean again what is clean costs time, to leave something out could bring a deleted key back.
func (l *Log) firstDirty(list segments) int64 {
	first := l.cleanBelow.Load()
	if start := max(l.StartOffset(), list[0].base); first < start || first > min(list.active().base, l.RecoveryPoint()) {
		return start
	}
	return first
}

// cleanEnd is the number of the first segment that may not be cleaned.
func (l *Log) cleanEnd(list segments, first, minLagMs int64) (int, error) {
	end := max(min(list.find(l.LastStable()), len(list)-1), 0)
	if minLagMs <= 0 {
		return end, nil
	}
	youngest := l.now().UnixMilli() - minLagMs
	for i := max(list.find(first), 0); i < end; i++ {
		at, err := list[i].lastTime()
		if err != nil {
			return 0, err
		}
		if at > youngest {
			return i, nil
		}
	}
	return end, nil
}

// lastTime is the largest timestamp of a segment, or when it was written if it has none.
func (s *segment) lastTime() (int64, error) {
	if err := s.ensure(); err != nil {
		return 0, err
	}
	if at := s.maxTime.Load(); at > noTime {
		return at, nil
	}
	return s.modified()
}

// modified is when the file of a segment was written last, in milliseconds.
func (s *segment) modified() (int64, error) {
	info, err := s.log.fs.Stat(s.path(logExt))
	if err != nil {
		return 0, err
	}
	return info.ModTime().UnixMilli(), nil
}

// firstTime is the timestamp of a segment's first batch, noTime if there is none.
func (s *segment) firstTime() (int64, error) {
	if s.size.Load() == 0 {
		return noTime, nil
	}
	file, err := s.log.handles.acquire(&s.data, s, logExt)
	if err != nil {
		return 0, err
	}
	defer s.log.handles.release(&s.data)
	var head [batch.EntryHeaderSize]byte
	scan := scanner{file: file, end: s.size.Load(), buf: head[:]}
	if err := scan.next(); err != nil {
		return 0, s.damaged(&scan, err)
	}
	return scan.entry.MaxTimestamp, nil
}

// CleanOptions say what a clean does.
type CleanOptions struct {
	// Bound is an offset below which everything is durable and below the checkpointed recovery point: what a clean leaves has gaps, which a recovery would not
	// take from a log that is not compacted any more.
	Bound             int64
	MinLagMs          int64 // min.compaction.lag.ms
	DeleteRetentionMs int64 // delete.retention.ms
	Index             compact.Limits
	BufferBytes       int // of a read and of a write, log.cleaner.io.buffer.size
	// Pace is told of every so many bytes that were read or written and may wait (log.cleaner.io.max.bytes.per.second). Its error ends the clean. nil: no limit.
	Pace func(bytes int) error
}

// Cleaned is what a clean did.
type Cleaned struct {
	Next int64 // first offset that is not clean, for the next clean
	Full bool  // the index was full: there is more that could be cleaned
	// Keys and IndexBytes are those of the index.
	Keys       int64
	IndexBytes int64
	// IndexedBytes is what was read for the index, besides what Filter counts.
	IndexedBytes             int64
	Filter                   compact.Stats
	SegmentsOld, SegmentsNew int
}

// Clean compacts the log up to the first segment that may not be cleaned, or as far as the index goes. After an error what is below is as it was, or clean;
// the clean can be done again. One clean of a log may run at a time. Errors: a *CorruptError names the damage; ErrCleanAgain; ErrNoSpace; ErrClosed;
// ErrOffline; those of ctx and of Pace.
func (l *Log) Clean(ctx context.Context, o CleanOptions) (Cleaned, error) {
	c := &clean{Log: l, ctx: ctx, options: o, buf: make([]byte, max(o.BufferBytes, chunkBytes))}
	err := c.run()
	if errors.Is(err, errSegmentGone) || errors.Is(err, fs.ErrNotExist) {
		err = ErrCleanAgain
	}
	if l.closed.Load() && err != nil {
		err = ErrClosed
	}
	return c.done, err
}

// errSegmentGone is a segment that went while it was cleaned.
var errSegmentGone = errors.New("segment is not in the log any more")

// clean is a Clean that runs.
type clean struct {
	*Log
	ctx     context.Context
	options CleanOptions
	list    segments // those that may be cleaned
	bound   int64    // base of the segment after them
	index   *compact.Index
	filter  *compact.Filter
	legacy  int64 // modification time from which on segments keep their tombstones of magic 0 and 1
	done    Cleaned
	buf     []byte // for reading
	big     []byte // for entries larger than buf
}

func (c *clean) run() error {
	if err := c.writable(); err != nil {
		return err
	}
	list := *c.Log.list.Load()
	first := c.firstDirty(list)
	c.done.Next = first
	end, err := c.cleanEnd(list, first, c.options.MinLagMs)
	if err != nil {
		return err
	}
	for end > 0 && list[end].base > c.options.Bound {
		end--
	}
	c.list, c.bound = list[:end], list[end].base
	if first >= c.bound {
		return nil
	}
	if err := c.makeIndex(first); err != nil {
		return err
	}
	if c.index.End() <= first {
		return fmt.Errorf("cleaning %s: no key fits into an index of %d bytes; raise log.cleaner.dedupe.buffer.size", c.Dir(), c.options.Index.Bytes)
	}
	if err := c.makeFilter(first); err != nil {
		return err
	}
	last := c.list.find(c.index.End() - 1)
	for _, group := range c.groups(c.list[:last+1]) {
		if err := c.group(group); err != nil {
			return err
		}
	}
	c.done.Next = c.index.End()
	c.advance(first)
	return nil
}

// advance notes how far the log is clean now, unless a truncation went below where the clean began.
func (c *clean) advance(first int64) {
	c.flush.Lock()
	defer c.flush.Unlock()
	if list := *c.Log.list.Load(); c.firstDirty(list) == first && c.done.Next <= min(list.active().base, c.synced.Load()) {
		c.cleanBelow.Store(c.done.Next)
	}
}

// makeIndex reads the dirty segments.
func (c *clean) makeIndex(first int64) error {
	aborted, err := c.abortedFrom(first)
	if err != nil {
		return err
	}
	c.index = compact.NewIndex(c.options.Index, first, c.bound, aborted)
	defer func() {
		c.done.Keys, c.done.IndexBytes = int64(c.index.Len()), c.index.Bytes()
	}()
	from := max(c.list.find(first), 0)
	for i, s := range c.list[from:] {
		room := true
		err := c.entries(s, first, func(b []byte) (bool, error) {
			c.done.IndexedBytes += int64(len(b))
			var err error
			room, err = c.index.Add(b)
			return room, err
		})
		if err != nil {
			return err
		}
		if !room {
			c.done.Full = true
			return nil
		}
		c.index.Reached(c.after(from + i))
	}
	return nil
}

// after is the base of the segment after number i of those that may be cleaned.
func (c *clean) after(i int) int64 {
	if i+1 < len(c.list) {
		return c.list[i+1].base
	}
	return c.bound
}

// makeFilter prepares the second pass.
func (c *clean) makeFilter(first int64) error {
	aborted, err := c.abortedFrom(c.list[0].base)
	if err != nil {
		return err
	}
	rules := compact.Rules{Now: c.now().UnixMilli(), DeleteRetentionMs: c.options.DeleteRetentionMs, RoundEnd: c.bound, Producers: c.lastBatches()}
	c.filter = compact.NewFilter(c.index, rules, aborted)
	c.legacy = math.MinInt64
	if i := c.list.find(first - 1); i >= 0 {
		written, err := c.list[i].modified()
		if err != nil {
			return err
		}
		c.legacy = written - c.options.DeleteRetentionMs
	}
	return nil
}

// abortedFrom are the aborted transactions that overlap what is cleaned, from an offset on, by their first offsets.
func (c *clean) abortedFrom(offset int64) ([]compact.Aborted, error) {
	found, err := c.AbortedIn(offset, c.bound)
	if err != nil {
		return nil, err
	}
	list := make([]compact.Aborted, len(found))
	for i, a := range found {
		list[i] = compact.Aborted(a)
	}
	slices.SortFunc(list, func(a, b compact.Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return list, nil
}

// lastBatches are the last batches of the producers that the log knows. A producer that writes meanwhile has its last batch above the bound.
func (l *Log) lastBatches() map[int64]compact.LastBatch {
	l.mu.Lock()
	entries := l.producers.Entries()
	l.mu.Unlock()
	last := make(map[int64]compact.LastBatch, len(entries))
	for _, e := range entries {
		last[e.ProducerID] = compact.LastBatch{LastOffset: e.LastOffset, Epoch: e.Epoch}
	}
	return last
}

// groups divides segments so that what is left of each group fits into one.
func (c *clean) groups(list segments) []segments {
	cfg := c.cfg.Load()
	var all []segments
	for at := 0; at < len(list); {
		n, size := 1, list[at].size.Load()
		offsets, times := list[at].offsets.entries()*offsetEntrySize, list[at].times.entries()*timeEntrySize
		for ; at+n < len(list); n++ {
			s := list[at+n]
			size += s.size.Load()
			offsets += s.offsets.entries() * offsetEntrySize
			times += s.times.entries() * timeEntrySize
			// Room for the last entry of the time index.
			full := size > cfg.SegmentBytes || offsets > cfg.SegmentIndexBytes || times > cfg.SegmentIndexBytes-timeEntrySize
			if full || !list[at].fits(c.after(at+n)-1) {
				break
			}
		}
		all = append(all, slices.Clip(list[at:at+n]))
		at += n
	}
	return all
}
