package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Offsets that are committed in a transaction (KIP-98, KIP-447). They are in the log at once, as a transactional batch, and count when the
// transaction's COMMIT marker has come to the group's partition. Of two commits of one partition the one that is later in the log wins, whichever
// marker comes first. A tombstone removes those before it.

// Producer is the producer of a transaction.
type Producer struct {
	ID    int64
	Epoch int16
}

// TxnCommit is a TxnOffsetCommit as far as the group is concerned.
type TxnCommit struct {
	Commit
	Producer Producer
}

// txnOffset is an offset of a transaction that has not ended.
type txnOffset struct {
	offset Offset
	place  uint64 // of its record in the log, see entry
}

// knowsMissingGroupsInTxn is the first version of TxnOffsetCommit that may be told that the group does not exist.
const knowsMissingGroupsInTxn = 6

// CommitTxn is a TxnOffsetCommit. It is answered when it is durable.
func (g *Group) CommitTxn(at Instant, w Waiter, c *TxnCommit) Effects {
	s := step{Instant: at}
	if err := g.checkTxnCommit(c); err != nil {
		s.done(w, err)
		return s.Effects
	}
	if len(c.Offsets) == 0 {
		s.done(w, nil)
		return s.Effects
	}
	g.create(&s)
	offsets := append([]PartitionOffset(nil), c.Offsets...)
	producer := c.Producer
	seq := g.write(&s, g.commitRecords(offsets), func(s *step, err *kerr.Error) {
		g.settleTxn(producer.ID, offsets, err == nil, s.seq)
		g.vanish(err)
		s.done(w, commitError(err))
	})
	s.Writes[len(s.Writes)-1].Producer = &producer
	for i := range offsets {
		g.pend(producer.ID, offsets[i].Partition, txnOffset{offsets[i].Offset, seq})
	}
	return s.Effects
}

// checkTxnCommit decides who may commit. Old clients name no member, and the state of the group does not matter.
func (g *Group) checkTxnCommit(c *TxnCommit) *kerr.Error {
	if err := g.closing(); err != nil {
		return err
	}
	instance := instanceOf(c.InstanceID)
	named := c.Generation >= 0 || c.MemberID != "" || instance != ""
	switch {
	case g.state == Dead && c.Generation < 0:
		return nil
	case g.state == Dead && c.Version >= knowsMissingGroupsInTxn:
		return kerr.GroupIDNotFound
	case g.state == Dead:
		return kerr.IllegalGeneration
	case c.Generation < 0 && g.state == Empty, !named:
		return nil
	}
	if _, err := g.validate(c.MemberID, instance); err != nil {
		return err
	}
	if c.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	return nil
}

// pend notes an offset of an open transaction. The newest of a partition is the last of its list; older ones are there while the newest may fail.
func (g *Group) pend(producer int64, p Partition, o txnOffset) {
	if g.txns == nil {
		g.txns = make(map[int64]map[Partition][]txnOffset)
	}
	if g.txns[producer] == nil {
		g.txns[producer] = make(map[Partition][]txnOffset)
	}
	g.txns[producer][p] = append(g.txns[producer][p], o)
}

// settleTxn drops offsets that could not be stored, or those before them when they are durable.
func (g *Group) settleTxn(producer int64, offsets []PartitionOffset, stored bool, seq uint64) {
	for i := range offsets {
		g.unpend(producer, offsets[i].Partition, func(o txnOffset) bool { return o.place == seq && !stored || o.place < seq && stored })
	}
}

// unpend drops offsets of an open transaction.
func (g *Group) unpend(producer int64, p Partition, drop func(txnOffset) bool) {
	list := slices.DeleteFunc(g.txns[producer][p], drop)
	if len(list) > 0 {
		g.txns[producer][p] = list
		return
	}
	delete(g.txns[producer], p)
	if len(g.txns[producer]) == 0 {
		delete(g.txns, producer)
	}
}

// bury drops what transactions committed of a partition before a tombstone.
func (g *Group) bury(p Partition, place uint64) {
	for producer := range g.txns {
		g.unpend(producer, p, func(o txnOffset) bool { return o.place < place })
	}
}

// Unstable reports if a transaction that has not ended committed an offset of the partition (KIP-447).
func (g *Group) Unstable(p Partition) bool {
	for _, offsets := range g.txns {
		if _, ok := offsets[p]; ok {
			return true
		}
	}
	return false
}

// AllUnstable calls yield with every partition that is unstable, some more than once, until that returns false.
func (g *Group) AllUnstable(yield func(Partition) bool) {
	for _, offsets := range g.txns {
		for p := range offsets {
			if !yield(p) {
				return
			}
		}
	}
}

// EndTxn says that the marker of a producer's transaction is durable in the group's partition.
func (g *Group) EndTxn(at Instant, producer int64, commit bool) Effects {
	s := step{Instant: at}
	offsets := g.txns[producer]
	delete(g.txns, producer)
	if commit {
		for p, list := range offsets {
			o := list[len(list)-1]
			g.place(p, o.offset, o.place)
		}
	} else if g.state == Empty && g.meta == nil && len(g.offsets) == 0 && len(g.txns) == 0 && len(g.pending) == 0 && len(g.inFlight) == 0 {
		g.reset() // the transaction was all there was
	}
	return s.Effects
}

// place makes a durable offset visible, unless a later one is.
func (g *Group) place(p Partition, o Offset, place uint64) {
	e := g.entry(p)
	if e.has && e.place > place {
		return
	}
	if !e.has {
		g.stored++
	}
	e.stored, e.has, e.place = o, true, place
}

// ReplayTxn takes over a record of a transaction from the log. It is for groups that had no event yet, as Replay.
func (g *Group) ReplayTxn(producer int64, k Key, value []byte) error {
	if k.Kind != OffsetKind || value == nil {
		return g.Replay(k, value)
	}
	o, err := parseOffset(value)
	if err != nil {
		return err
	}
	g.seq++
	g.pend(producer, k.Partition, txnOffset{o, g.seq})
	return nil
}

// Open lists the producers with transactions that have offsets of the group and have not ended.
func (g *Group) Open() []int64 {
	list := make([]int64, 0, len(g.txns))
	for id := range g.txns {
		list = append(list, id)
	}
	return list
}
