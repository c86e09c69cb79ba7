package broker

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/group"
	"gregor/log"
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

// appendMarker is Broker.appendMarker for a partition of groups. Whoever unloads the partition waits for it.
func (p *offsetsPartition) appendMarker(m producer.Marker, mark *txnMark) (log.Appended, error) {
	p.openMu.Lock()
	defer p.openMu.Unlock()
	if p.usable() != nil {
		return log.Appended{}, kerr.CoordinatorLoadInProgress
	}
	appended, err := p.part.log.AppendMarker(m, p.part.epoch())
	if err == nil {
		p.follow(flying{owner: &txnEnd{p, m.ProducerID, m.Commit, mark}, last: appended.LastOffset})
	}
	return appended, err
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
