package broker

import (
	"context"
	"encoding/binary"
	"errors"

	"gregor/broker/group"
	"gregor/log/batch"
)

// load implements statePartition.
func (p *offsetsPartition) load(ctx context.Context, stop func() bool) (int, error) {
	l := newLoader(p)
	l.replay.stop = stop
	if err := l.replay.run(p.part); err != nil || stop() {
		return 0, err
	}
	l.finish(ctx)
	return l.records, nil
}

// loader replays one partition.
type loader struct {
	p       *offsetsPartition
	groups  map[string]*group.Group
	open    txnGroups
	replay  stateReplay
	records int
	bad     int
	deleted map[string]bool // topics that are not known here, by whether the metadata does not have them either
}

func newLoader(p *offsetsPartition) *loader {
	l := &loader{p: p, groups: make(map[string]*group.Group), open: make(txnGroups), deleted: make(map[string]bool)}
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
func (l *loader) finish(ctx context.Context) {
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
		s, topics := &groupSlot{id: id, p: p, g: g}, committedTopics(g)
		p.mu.Lock()
		p.groups[id] = s
		p.mu.Unlock()
		missing := l.missing(ctx, topics)
		s.event(func(g *group.Group, at group.Instant) group.Effects {
			s.carryOut(effects)
			for _, topic := range missing {
				s.carryOut(g.RemoveTopic(at, topic))
			}
			return group.Effects{}
		})
	}
	p.state.CompareAndSwap(stateLoading, stateReady)
}

// committedTopics are those that the group has offsets of.
func committedTopics(g *group.Group) map[string]bool {
	topics := make(map[string]bool)
	for p := range g.AllCommitted {
		topics[p.Topic] = true
	}
	return topics
}

// missing are those topics that are no more. One that is not known here may have been made by another broker, so the metadata is asked.
func (l *loader) missing(ctx context.Context, topics map[string]bool) []string {
	var missing []string
	for name := range topics {
		if l.p.broker.topics.name(name) != nil {
			continue
		}
		gone, asked := l.deleted[name]
		if !asked {
			count, err := l.p.broker.control.PartitionCount(ctx, name)
			gone = err == nil && count == 0
			l.deleted[name] = gone
		}
		if gone {
			missing = append(missing, name)
		}
	}
	return missing
}
