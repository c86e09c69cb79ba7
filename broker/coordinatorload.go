package broker

import (
	"encoding/binary"
	"errors"
	"time"

	"gregor/broker/group"
	"gregor/log/batch"
)

// loadAll reads partitions of __consumer_offsets, one after another.
func (c *coordinator) loadAll(parts []*offsetsPartition) {
	begin := time.Now()
	records := 0
	for _, p := range parts {
		if c.closing.Load() {
			return
		}
		l := newLoader(p)
		if err := l.replay.run(p.part); err != nil {
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
	open    txnGroups
	replay  stateReplay
	records int
	bad     int
}

func newLoader(p *offsetsPartition) *loader {
	l := &loader{p: p, groups: make(map[string]*group.Group), open: make(txnGroups)}
	l.replay = stateReplay{entry: l.entry, stop: p.c.closing.Load}
	return l
}

// entry replays one batch.
func (l *loader) entry(h *batch.Header, records *batch.Reader, from int64) error {
	var rec batch.Record
	for records.Next(&rec) {
		switch {
		case rec.Offset < from:
		case h.Magic == 2 && h.Control():
			l.marker(h.ProducerID, rec.Key)
		default:
			l.record(h, &rec)
		}
	}
	return nil
}

// record replays one record.
func (l *loader) record(h *batch.Header, rec *batch.Record) {
	l.records++
	key, err := group.ParseKey(rec.Key)
	switch {
	case err != nil:
		l.bad++
		l.p.broker.logger.Warn("record is left out", "partition", l.p.part.num, "offset", rec.Offset, "error", err)
		return
	case key.Kind == group.OtherKind:
		l.p.foreign.Store(true)
		return
	}
	g := l.groups[key.Group]
	if g == nil {
		g = group.New(key.Group, &l.p.c.conf)
		l.groups[key.Group] = g
	}
	if h.Magic == 2 && h.Transactional() {
		l.p.foreign.Store(true)
		l.open.add(h.ProducerID, key.Group)
		err = g.ReplayTxn(h.ProducerID, key, rec.Value)
	} else {
		err = g.Replay(key, rec.Value)
	}
	if err == nil {
		return
	}
	l.bad++
	if errors.Is(err, group.ErrFormat) {
		l.p.foreign.Store(true) // newer than we are: it stays as it is
	}
	l.p.broker.logger.Warn("record is left out", "partition", l.p.part.num, "group", key.Group, "error", err)
}

// commitMarker is the type of a control record that commits a transaction (KIP-98).
const commitMarker = 1

// marker ends a transaction.
func (l *loader) marker(producer int64, key []byte) {
	commit := len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == commitMarker
	for id := range l.open[producer] {
		l.groups[id].EndTxn(l.p.c.instant(), producer, commit)
	}
	delete(l.open, producer)
}

// finish puts the groups in their places and opens the partition. Offsets of topics that were deleted meanwhile are removed.
func (l *loader) finish() {
	p := l.p
	p.grown.Store(l.replay.bytes)
	p.openMu.Lock()
	p.open = l.open
	p.openMu.Unlock()
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
