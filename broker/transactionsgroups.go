package broker

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/group"
	"gregor/log/producer"
)

// txnGroups are the groups of a partition of __consumer_offsets that have offsets of transactions without an end, by producer id.
type txnGroups map[int64]map[string]bool

func (t txnGroups) add(producer int64, id string) {
	if t[producer] == nil {
		t[producer] = make(map[string]bool)
	}
	t[producer][id] = true
}

// offsetsPartitionOf finds the coordinator's part of a partition of __consumer_offsets, nil when it is not this coordinator's.
func (c *coordinator) offsetsPartitionOf(part *partition) *offsetsPartition {
	if all := c.all(); int(part.num) < len(all) && all[part.num].part == part {
		return all[part.num]
	}
	return nil
}

// followMarker sees to it that the groups of a partition of __consumer_offsets hear of a marker that somebody else appended.
func (c *coordinator) followMarker(part *partition, m producer.Marker, last int64) {
	if p := c.offsetsPartitionOf(part); p != nil {
		p.follow(flying{owner: &txnEnd{p, m.ProducerID, m.Commit, nil}, last: last})
	}
}

// txnEnd tells the groups of a partition that a transaction's marker is durable there. It is the owner of the marker's write.
type txnEnd struct {
	p        *offsetsPartition
	producer int64
	commit   bool
	mark     *txnMark // nil: nobody else is to be told
}

// stored implements writer.
func (e *txnEnd) stored(_ uint64, err *kerr.Error) {
	if err == nil {
		e.p.openMu.Lock()
		ids := e.p.open[e.producer]
		delete(e.p.open, e.producer)
		e.p.openMu.Unlock()
		for id := range ids {
			if s := e.p.peek(id); s != nil {
				s.event(func(g *group.Group, at group.Instant) group.Effects { return g.EndTxn(at, e.producer, e.commit) })
			}
		}
	}
	if e.mark != nil {
		e.mark.stored(0, err)
	}
}
