package broker

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/txn"
	"gregor/log/producer"
)

// txnMark is a marker on its way to the disk. It is the owner of the marker's write.
type txnMark struct {
	slot  *txnSlot
	round uint64
	at    txn.Partition
}

// stored implements writer.
func (m *txnMark) stored(_ uint64, err *kerr.Error) {
	m.slot.event(func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Marked(at, m.round, m.at, err) })
}

// mark appends the markers of a transaction and sees to it that the id hears of each. The slot is locked.
func (s *txnSlot) mark(m *txn.Markers) {
	for _, at := range m.Partitions {
		mark := &txnMark{s, m.Round, at}
		if flight := s.markOne(m, mark); flight != nil {
			s.carryOut(s.t.Marked(s.p.c.instant(), m.Round, at, flight.err))
		}
	}
}

// marked is a marker that need not be waited for: it could not be written, or there is nothing to write.
type marked struct{ err *kerr.Error }

// markOne appends one marker and follows it. It returns how it ended if it ended at once.
func (s *txnSlot) markOne(m *txn.Markers, mark *txnMark) *marked {
	b := s.p.broker
	epoch, err := s.p.ledUnder()
	if err != nil {
		return &marked{kafkaError(err)}
	}
	marker := producer.Marker{ProducerID: m.Producer.ID, Epoch: m.Producer.Epoch, CoordinatorEpoch: epoch, Commit: m.Commit, Version: m.Version}
	part := b.partitionAt(mark.at)
	if part == nil {
		s.p.c.sendMarker(nowhere, sentMarker{mark, marker})
		return nil
	}
	if l := part.lead.Load(); !l.led && l.leader != noLeader {
		s.p.c.sendMarker(l.leader, sentMarker{mark, marker})
		return nil
	}
	_, err = b.appendMarker(part, marker, mark)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, producer.ErrFenced) || errors.Is(err, producer.ErrCoordinatorFenced):
		// A later epoch was there before, so the transaction has its marker.
		b.logger.Info("marker of an older epoch is not needed any more", "transactional.id", s.id, "topic", mark.at.Topic, "partition", mark.at.Number, "error", err)
		return &marked{}
	}
	if b.txnAlarm.due() {
		b.logger.Warn("transaction marker could not be written and is tried again", "transactional.id", s.id, "topic", mark.at.Topic, "partition", mark.at.Number, "error", err)
	}
	return &marked{kafkaError(err)}
}

// partitionAt finds a partition, nil when it is not known.
func (b *Broker) partitionAt(at txn.Partition) *partition {
	if t := b.topics.name(at.Topic); t != nil {
		return t.partition(at.Number)
	}
	return nil
}
