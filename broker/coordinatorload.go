package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gregor/broker/group"
	"gregor/log"
	"gregor/log/batch"
)

// loadChunk is how much is read of a log at once, in bytes.
const loadChunk = 1 << 20

// entryPrefix is what batch.EntrySize needs to see, in bytes.
const entryPrefix = batch.OverheadSize + 5

// loadAll reads partitions of __consumer_offsets, one after another.
func (c *coordinator) loadAll(parts []*offsetsPartition) {
	begin := time.Now()
	records := 0
	for _, p := range parts {
		if c.closing.Load() {
			return
		}
		l := loader{p: p, groups: make(map[string]*group.Group), open: make(map[int64][]txnRecord)}
		if err := l.load(); err != nil {
			p.state.CompareAndSwap(stateLoading, stateFailed)
			c.broker.logger.Error("groups could not be loaded, their clients will wait", "partition", p.part.num, "error", err)
			continue
		}
		if c.closing.Load() {
			return // what was read may not be all
		}
		l.finish()
		records += l.records
	}
	c.broker.logger.Info("groups loaded", "partitions", len(parts), "records", records, "took", time.Since(begin))
}

// loader replays one partition.
type loader struct {
	p       *offsetsPartition
	groups  map[string]*group.Group
	open    map[int64][]txnRecord // commits of transactions without an end yet, by producer id
	reader  batch.Reader
	buf     []byte
	records int
	bad     int
	bytes   int64
}

type txnRecord struct {
	key   group.Key
	value []byte
}

// load replays the log from its start to its end.
func (l *loader) load() error {
	logs := l.p.part.log
	for from, end := logs.StartOffset(), logs.EndOffset(); from < end && !l.p.c.closing.Load(); {
		next, err := l.chunk(logs, from)
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
func (l *loader) chunk(logs *log.Log, from int64) (int64, error) {
	slice, err := logs.Read(from, loadChunk, log.ToLogEnd, true)
	if err != nil || slice.Size == 0 {
		return from, err
	}
	defer slice.Release()
	if cap(l.buf) < slice.Size {
		l.buf = make([]byte, slice.Size)
	}
	b := l.buf[:slice.Size]
	if _, err := slice.File.ReadAt(b, slice.Pos); err != nil {
		return from, fmt.Errorf("reading %d bytes at %d: %w", slice.Size, slice.Pos, err)
	}
	next := from
	for len(b) >= entryPrefix {
		size, err := batch.EntrySize(b)
		if err != nil {
			return next, l.damaged(next, err)
		}
		if size > len(b) {
			break // cut off by the size of the read
		}
		e, err := batch.ReadEntry(b[:size])
		if err == nil {
			err = l.entry(b[:size], from)
		}
		if err != nil {
			return next, l.damaged(next, err)
		}
		next = e.LastOffset + 1
		l.bytes += int64(size)
		b = b[size:]
	}
	return next, nil
}

func (l *loader) damaged(offset int64, err error) error {
	return fmt.Errorf("batch at offset %d of %s-%d: %w", offset, offsetsTopic, l.p.part.num, err)
}

// entry replays one batch.
func (l *loader) entry(b []byte, from int64) error {
	if err := batch.Verify(b); err != nil {
		return err
	}
	if err := l.reader.Reset(b, 0); err != nil {
		return err
	}
	h := l.reader.Header()
	var rec batch.Record
	for l.reader.Next(&rec) {
		switch {
		case rec.Offset < from:
		case h.Magic == 2 && h.Control():
			l.marker(h.ProducerID, rec.Key)
		default:
			l.record(&h, &rec)
		}
	}
	return l.reader.Err()
}

// record replays one record, or keeps it until its transaction ends.
func (l *loader) record(h *batch.Header, rec *batch.Record) {
	l.records++
	key, err := group.ParseKey(rec.Key)
	switch {
	case err != nil:
		l.bad++
		l.p.c.broker.logger.Warn("record is left out", "partition", l.p.part.num, "offset", rec.Offset, "error", err)
	case key.Kind == group.OtherKind:
		l.p.foreign.Store(true)
	case h.Magic == 2 && h.Transactional():
		l.p.foreign.Store(true)
		var value []byte
		if rec.Value != nil {
			value = append([]byte{}, rec.Value...)
		}
		l.open[h.ProducerID] = append(l.open[h.ProducerID], txnRecord{key, value})
	default:
		l.apply(key, rec.Value)
	}
}

// commitMarker is the type of a control record that commits a transaction (KIP-98).
const commitMarker = 1

// marker ends a transaction.
func (l *loader) marker(producer int64, key []byte) {
	records := l.open[producer]
	delete(l.open, producer)
	if len(key) < 4 || binary.BigEndian.Uint16(key[2:]) != commitMarker {
		return
	}
	for _, r := range records {
		l.apply(r.key, r.value)
	}
}

func (l *loader) apply(key group.Key, value []byte) {
	g := l.groups[key.Group]
	if g == nil {
		g = group.New(key.Group, &l.p.c.conf)
		l.groups[key.Group] = g
	}
	if err := g.Replay(key, value); err != nil {
		l.bad++
		if errors.Is(err, group.ErrFormat) {
			l.p.foreign.Store(true) // newer than we are: it stays as it is
		}
		l.p.c.broker.logger.Warn("record is left out", "partition", l.p.part.num, "group", key.Group, "error", err)
	}
}

// finish puts the groups in their places and opens the partition. Offsets of topics that were deleted meanwhile are removed.
func (l *loader) finish() {
	p := l.p
	p.grown.Store(l.bytes)
	for id, g := range l.groups {
		// A group is whole before others can find it: a topic may be deleted at any time.
		effects := g.Loaded(p.c.instant())
		if !g.Exists() {
			continue
		}
		s := &groupSlot{id: id, p: p, g: g}
		p.mu.Lock()
		p.groups[id] = s
		p.mu.Unlock()
		s.event(func(g *group.Group, at group.Instant) group.Effects {
			s.carryOut(effects)
			for _, topic := range l.missingTopics(g) {
				s.carryOut(g.RemoveTopic(at, topic))
			}
			return group.Effects{}
		})
	}
	p.state.CompareAndSwap(stateLoading, stateReady)
}

func (l *loader) missingTopics(g *group.Group) []string {
	seen := make(map[string]bool)
	var missing []string
	for p := range g.AllCommitted {
		if !seen[p.Topic] {
			seen[p.Topic] = true
			if l.p.c.broker.topics.name(p.Topic) == nil {
				missing = append(missing, p.Topic)
			}
		}
	}
	return missing
}
