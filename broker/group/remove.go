package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Delete removes an empty group with its offsets (DeleteGroups). The answer's Err says why not.
func (g *Group) Delete(at Instant, w Waiter) Effects {
	s := step{Instant: at}
	switch {
	case g.closing() != nil:
		s.done(w, g.closing())
	case g.state == Dead:
		s.done(w, kerr.GroupIDNotFound)
	case g.state != Empty:
		s.done(w, kerr.NonEmptyGroup)
	default:
		g.dissolve(&s, w)
	}
	return s.Effects
}

// dissolve writes tombstones for all there is; the group is gone when they are durable.
func (g *Group) dissolve(s *step, w Waiter) {
	all := g.known(func(Partition) bool { return true })
	records := g.tombstones(all)
	if g.meta != nil {
		records = append(records, Record{Key: groupKey(g.id)})
	}
	clear(g.pending)
	if len(records) == 0 {
		g.reset()
		s.done(w, nil)
		return
	}
	seq := g.seq + 1
	g.deleting = true
	g.write(s, records, func(s *step, err *kerr.Error) {
		g.deleting = false
		g.removed(seq, all, err)
		if err == nil {
			g.reset()
		}
		s.done(w, storeError(err))
	})
}

// known lists the partitions with offsets, of open transactions too, that a filter lets through.
func (g *Group) known(wanted func(Partition) bool) []Partition {
	var all []Partition
	for topic, parts := range g.offsets {
		for n := range parts {
			all = append(all, Partition{topic, n})
		}
	}
	for p := range g.AllUnstable {
		all = append(all, p)
	}
	all = slices.DeleteFunc(all, func(p Partition) bool { return !wanted(p) })
	sortPartitions(all)
	return slices.Compact(all)
}

// CheckOffsetDelete says if offsets may be deleted at all (OffsetDelete), nil if so.
func (g *Group) CheckOffsetDelete() *kerr.Error {
	switch {
	case g.closing() != nil:
		return g.closing()
	case g.state == Dead:
		return kerr.GroupIDNotFound
	case g.state != Empty && g.protocolType != consumerType:
		return kerr.NonEmptyGroup
	}
	return nil
}

// Subscribed reports if the members use a topic, whose offsets must not be deleted then.
func (g *Group) Subscribed(topic string) bool { return g.subscribed(topic) }

// DeleteOffsets removes committed offsets. Those that are not there are no error.
func (g *Group) DeleteOffsets(at Instant, w Waiter, partitions []Partition) Effects {
	s := step{Instant: at}
	if err := g.closing(); err != nil {
		s.done(w, err)
		return s.Effects
	}
	there := g.known(func(p Partition) bool { return slices.Contains(partitions, p) })
	g.removeOffsets(&s, w, there)
	return s.Effects
}

// RemoveTopic removes the offsets of a topic that was deleted.
func (g *Group) RemoveTopic(at Instant, topic string) Effects {
	s := step{Instant: at}
	if !g.deleting {
		g.removeOffsets(&s, nil, g.known(func(p Partition) bool { return p.Topic == topic }))
	}
	return s.Effects
}

func (g *Group) removeOffsets(s *step, w Waiter, partitions []Partition) {
	if len(partitions) == 0 {
		s.done(w, nil)
		return
	}
	seq := g.seq + 1
	g.write(s, g.tombstones(partitions), func(s *step, err *kerr.Error) {
		g.removed(seq, partitions, err)
		s.done(w, storeError(err))
	})
}

// Expire removes offsets that were kept long enough, and the group when nothing is left of it (KIP-211).
func (g *Group) Expire(at Instant) Effects {
	s := step{Instant: at}
	if g.deleting || g.state == Dead {
		return s.Effects
	}
	var old []Partition
	kept := len(g.txns)
	for topic, parts := range g.offsets {
		for n, e := range parts {
			if e.newest == 0 && g.expired(at.Wall, topic, &e.stored) && !g.Unstable(Partition{topic, n}) {
				old = append(old, Partition{topic, n})
			} else {
				kept++
			}
		}
	}
	if kept == 0 && g.state == Empty && len(g.pending) == 0 && len(g.inFlight) == 0 {
		g.dissolve(&s, nil)
		return s.Effects
	}
	sortPartitions(old)
	g.removeOffsets(&s, nil, old)
	return s.Effects
}

// expired decides on one offset. The clock starts when the group became empty; for a simple group, and for topics that a live group of
// consumers does not use, when the offset was committed.
func (g *Group) expired(now int64, topic string, o *Offset) bool {
	from := o.Committed
	switch {
	case g.protocolType == "":
	case g.state == Empty:
		if g.since >= 0 {
			from = g.since
		}
	case g.state != Stable || g.protocolType != consumerType || g.subscribed(topic):
		return false
	}
	if o.Expires >= 0 {
		return now >= o.Expires
	}
	return wallAfter(now, from, g.conf.Retention)
}
