package producer

import (
	"cmp"
	"fmt"
	"slices"
)

// Marker is a transaction marker (control batch) of a producer.
type Marker struct {
	ProducerID       int64
	Epoch            int16
	CoordinatorEpoch int32
	Commit           bool
	Timestamp        int64 // milliseconds
	// Version is the transaction version (KIP-890): from 2 on a marker has the epoch after the transaction's.
	Version int16
}

// Completed is a transaction that a marker ended; aborted ones are written to the .txnindex.
type Completed struct {
	ProducerID       int64
	FirstOffset      int64 // of the transaction in this partition
	LastOffset       int64 // of the marker
	LastStableOffset int64 // once this transaction is over
	Aborted          bool
}

// CheckMarker decides if a marker from a coordinator may be appended. Errors: ErrFenced, ErrCoordinatorFenced. Before transaction version 2
// the epoch may be the current one; from then on it must be newer, unless the marker is repeated.
func (s *State) CheckMarker(m Marker) error {
	e := s.producers[m.ProducerID]
	if e == nil {
		return nil
	}
	if m.Epoch < e.epoch {
		return fmt.Errorf("%w: marker of producer %d has epoch %d, newest is %d", ErrFenced, m.ProducerID, m.Epoch, e.epoch)
	}
	if m.Version >= 2 && m.Epoch == e.epoch && e.txnFirst >= 0 {
		return fmt.Errorf("%w: marker of producer %d has the open transaction's epoch %d, want a newer one", ErrFenced, m.ProducerID, m.Epoch)
	}
	if m.CoordinatorEpoch < e.coord {
		return fmt.Errorf("%w: marker of producer %d has coordinator epoch %d, newest is %d", ErrCoordinatorFenced, m.ProducerID, m.CoordinatorEpoch, e.coord)
	}
	return nil
}

// AppendMarker ends the producer's transaction with the marker at offset. ok is false if there was none open: the marker then changes
// nothing but the epochs. Until SetHighWatermark passes offset, the transaction counts as open for FirstOpenOffset.
func (s *State) AppendMarker(m Marker, offset, nowMillis int64) (c Completed, ok bool) {
	e := s.producers[m.ProducerID]
	if e == nil {
		e = &entry{coord: -1, txnFirst: -1}
		s.producers[m.ProducerID] = e
	}
	e.setEpoch(m.Epoch)
	e.seen, e.timestamp, e.coord = nowMillis, m.Timestamp, m.CoordinatorEpoch
	if e.txnFirst < 0 {
		return Completed{}, false
	}
	c = Completed{ProducerID: m.ProducerID, FirstOffset: e.txnFirst, LastOffset: offset, LastStableOffset: offset + 1, Aborted: !m.Commit}
	e.txnFirst = -1
	if i, ok := slices.BinarySearchFunc(s.open, c.FirstOffset, func(t txn, first int64) int { return cmp.Compare(t.first, first) }); ok {
		s.open = slices.Delete(s.open, i, i+1)
	}
	if len(s.open) > 0 {
		c.LastStableOffset = s.open[0].first
	}
	s.ended = insert(s.ended, txn{first: c.FirstOffset, last: offset})
	return c, true
}
