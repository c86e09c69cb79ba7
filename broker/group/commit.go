package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// knowsMissingGroups is the first version of OffsetCommit that may be told that the group does not exist (KIP-848).
const knowsMissingGroups = 9

// entry is the offset of one partition.
type entry struct {
	stored Offset // durable
	has    bool   // there is a stored one
	place  uint64 // of the stored one's record in the log: later ones have larger numbers

	// What was appended and is not known to be durable; newest 0 says that there is nothing.
	newest uint64 // write that it is in
	next   Offset
	gone   bool // it is a tombstone
}

// Commit is an OffsetCommit. It is answered when it is durable.
func (g *Group) Commit(at Instant, w Waiter, c *Commit) Effects {
	s := step{Instant: at}
	if err := g.checkCommit(&s, c); err != nil {
		s.done(w, err)
		return s.Effects
	}
	if len(c.Offsets) == 0 {
		s.done(w, nil)
		return s.Effects
	}
	g.create(&s)
	offsets := append([]PartitionOffset(nil), c.Offsets...)
	seq := g.write(&s, g.commitRecords(offsets), func(s *step, err *kerr.Error) {
		g.committed(s.seq, offsets, err)
		s.done(w, commitError(err))
	})
	for i := range offsets {
		e := g.entry(offsets[i].Partition)
		e.newest, e.next, e.gone = seq, offsets[i].Offset, false
	}
	return s.Effects
}

func (g *Group) commitRecords(offsets []PartitionOffset) []Record {
	records := make([]Record, len(offsets))
	for i := range offsets {
		o := &offsets[i]
		records[i] = Record{offsetKey(g.id, o.Partition), offsetValue(&o.Offset)}
	}
	return records
}

// checkCommit decides who may commit, and takes a member's commit for a heartbeat.
func (g *Group) checkCommit(s *step, c *Commit) *kerr.Error {
	if err := g.closing(); err != nil {
		return err
	}
	instance := instanceOf(c.InstanceID)
	switch {
	case g.state == Dead:
		return missingForCommit(c)
	case c.Generation < 0 && g.state == Empty:
		return nil // a consumer that assigns itself, or an admin
	case c.Generation < 0 && c.MemberID == "" && instance == "":
		return kerr.UnknownMemberID
	}
	m, err := g.validate(c.MemberID, instance)
	switch {
	case err != nil:
		return err
	case c.Generation != g.generation:
		return kerr.IllegalGeneration
	case g.state == CompletingRebalance:
		return kerr.RebalanceInProgress
	}
	if !m.waits() {
		g.touch(s, m)
	}
	return nil
}

// missingForCommit is for a commit to a group that does not exist: a simple consumer makes it.
func missingForCommit(c *Commit) *kerr.Error {
	switch {
	case c.Generation < 0:
		return nil
	case c.Version >= knowsMissingGroups:
		return kerr.GroupIDNotFound
	}
	return kerr.IllegalGeneration
}

// commitError is what a client is told when its offsets could not be stored.
func commitError(err *kerr.Error) *kerr.Error {
	switch err {
	case nil:
		return nil
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize:
		return kerr.InvalidCommitOffsetSize
	}
	return storeError(err)
}

// committed makes offsets visible, or forgets them.
func (g *Group) committed(seq uint64, offsets []PartitionOffset, err *kerr.Error) {
	for i := range offsets {
		p := offsets[i].Partition
		e := g.entry(p)
		if err == nil {
			g.place(p, offsets[i].Offset, seq)
		}
		g.settle(p, e, seq)
	}
	g.vanish(err)
}

// tombstones removes offsets: at once for later events, and for readers when it is durable.
func (g *Group) tombstones(partitions []Partition) []Record {
	records := make([]Record, len(partitions))
	for i, p := range partitions {
		records[i] = Record{Key: offsetKey(g.id, p)}
		e := g.entry(p)
		e.newest, e.gone = g.seq+1, true
	}
	return records
}

// removed makes the removal of offsets visible, or takes it back.
func (g *Group) removed(seq uint64, partitions []Partition, err *kerr.Error) {
	for _, p := range partitions {
		e := g.entry(p)
		if err == nil {
			g.bury(p, seq)
		}
		if err == nil && e.has && e.place < seq {
			e.has = false
			g.stored--
		}
		g.settle(p, e, seq)
	}
}

// settle ends the flight of a write for one entry.
func (g *Group) settle(p Partition, e *entry, seq uint64) {
	if e.newest == seq {
		e.newest, e.next = 0, Offset{}
	}
	if e.newest == 0 && !e.has {
		delete(g.offsets[p.Topic], p.Number)
		if len(g.offsets[p.Topic]) == 0 {
			delete(g.offsets, p.Topic)
		}
	}
}

// vanish lets a simple group go whose first commit failed.
func (g *Group) vanish(err *kerr.Error) {
	if err != nil && g.state == Empty && g.meta == nil && len(g.offsets) == 0 && len(g.txns) == 0 && len(g.pending) == 0 && len(g.inFlight) == 0 {
		g.reset()
	}
}

// entry finds or makes the entry of a partition.
func (g *Group) entry(p Partition) *entry {
	parts := g.offsets[p.Topic]
	if parts == nil {
		parts = make(map[int32]*entry)
		g.offsets[p.Topic] = parts
	}
	e := parts[p.Number]
	if e == nil {
		e = new(entry)
		parts[p.Number] = e
	}
	return e
}

// Committed is the durable offset of a partition.
func (g *Group) Committed(p Partition) (Offset, bool) {
	e := g.offsets[p.Topic][p.Number]
	if e == nil || !e.has {
		return Offset{}, false
	}
	return e.stored, true
}

// AllCommitted calls yield with every durable offset, in no order, until that returns false.
func (g *Group) AllCommitted(yield func(Partition, Offset) bool) {
	for topic, parts := range g.offsets {
		for n, e := range parts {
			if e.has && !yield(Partition{topic, n}, e.stored) {
				return
			}
		}
	}
}
