package producer

import (
	"fmt"
	"slices"
)

// State is what one partition knows about its producers. It is not safe for concurrent use: the log's lock guards it.
type State struct {
	expiry    int64
	producers map[int64]*entry
	open      []txn // by first offset: open transactions
	ended     []txn // by first offset: ended by a marker that is not below the high watermark yet
}

// txn is a transaction in this partition.
type txn struct {
	first int64
	last  int64 // of the marker; only in State.ended
}

// New makes an empty state. Producers without an open transaction that did not append for expiryMillis are forgotten by Expire
// (producer.id.expiration.ms).
func New(expiryMillis int64) *State {
	return &State{expiry: expiryMillis, producers: make(map[int64]*entry)}
}

// SetExpiry changes producer.id.expiration.ms.
func (s *State) SetExpiry(expiryMillis int64) { s.expiry = expiryMillis }

// Transactional reports if any producer is known to have had a transaction.
func (s *State) Transactional() bool {
	for _, e := range s.producers {
		if e.coord >= 0 || e.txnFirst >= 0 {
			return true
		}
	}
	return false
}

// Len is the number of producers known.
func (s *State) Len() int { return len(s.producers) }

// Reset forgets everything, for a log that is truncated: the caller restores a snapshot and replays from there.
func (s *State) Reset() {
	s.producers = make(map[int64]*entry)
	s.open, s.ended = nil, nil
}

// Check decides if b from a client may be appended at nowMillis (broker clock, milliseconds). dup is not nil if it was appended before: the
// caller answers with it and writes nothing. Errors: ErrOutOfOrder, ErrFenced, ErrInvalidTxnState. Nothing changes. It is only for
// batches with a producer id.
//
// A producer that is not known, or idle for longer than the expiry, may go on at any sequence: its batches may all be deleted (KIP-360).
func (s *State) Check(b Batch, nowMillis int64) (dup *Accepted, err error) {
	e := s.producers[b.ProducerID]
	if e == nil || s.expired(e, nowMillis) {
		return nil, nil
	}
	if at, ok := e.find(b); ok {
		return &Accepted{FirstOffset: at.lastOffset - int64(at.delta), LastOffset: at.lastOffset, Timestamp: at.timestamp}, nil
	}
	if b.Epoch < e.epoch {
		return nil, fmt.Errorf("%w: producer %d has epoch %d, newest is %d", ErrFenced, b.ProducerID, b.Epoch, e.epoch)
	}
	if err := e.checkSequence(b); err != nil {
		return nil, err
	}
	if e.txnFirst >= 0 && !b.Transactional {
		return nil, fmt.Errorf("%w: producer %d since offset %d", ErrInvalidTxnState, b.ProducerID, e.txnFirst)
	}
	return nil, nil
}

// CheckFromZero is Check for a producer with transaction version 2: one that is not known must start at sequence 0. Its epoch is new with each
// transaction, so what the log knew of older ones cannot be missed (KIP-890).
func (s *State) CheckFromZero(b Batch, nowMillis int64) (dup *Accepted, err error) {
	if e := s.producers[b.ProducerID]; (e == nil || s.expired(e, nowMillis)) && b.BaseSequence != 0 {
		return nil, fmt.Errorf("%w: producer %d is not known and sends sequence %d, want 0", ErrOutOfOrder, b.ProducerID, b.BaseSequence)
	}
	return s.Check(b, nowMillis)
}

// CheckOwn is Check for a batch that the broker itself made in a producer's transaction: only its epoch is checked, there are no duplicates.
func (s *State) CheckOwn(b Batch, nowMillis int64) (dup *Accepted, err error) {
	e := s.producers[b.ProducerID]
	if e == nil || s.expired(e, nowMillis) || b.Epoch >= e.epoch {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: producer %d has epoch %d, newest is %d", ErrFenced, b.ProducerID, b.Epoch, e.epoch)
}

func (e *entry) checkSequence(b Batch) error {
	if e.epoch < 0 {
		return nil
	}
	if b.Epoch != e.epoch {
		if b.BaseSequence != 0 {
			return fmt.Errorf("%w: producer %d starts epoch %d at sequence %d, want 0", ErrOutOfOrder, b.ProducerID, b.Epoch, b.BaseSequence)
		}
		return nil
	}
	if !e.follows(b.BaseSequence) {
		last, _ := e.last()
		if e.n == 0 {
			last.lastSeq = -1
		}
		return fmt.Errorf("%w: producer %d epoch %d sends sequence %d after %d", ErrOutOfOrder, b.ProducerID, b.Epoch, b.BaseSequence, last.lastSeq)
	}
	return nil
}

// Append remembers b, which was appended at firstOffset. It does not check: followers and recovery take what the log says.
func (s *State) Append(b Batch, firstOffset, nowMillis int64) {
	e := s.producers[b.ProducerID]
	if e == nil {
		e = &entry{epoch: b.Epoch, coord: -1, txnFirst: -1}
		s.producers[b.ProducerID] = e
	} else if s.expired(e, nowMillis) {
		// What is forgotten lazily is forgotten before it is added to.
		*e = entry{epoch: b.Epoch, coord: -1, txnFirst: -1}
	}
	e.setEpoch(b.Epoch)
	e.seen, e.timestamp = nowMillis, b.Timestamp
	e.add(slotOf(b, firstOffset))
	if b.Transactional && e.txnFirst < 0 {
		e.txnFirst = firstOffset
		s.open = insert(s.open, txn{first: firstOffset})
	}
}

func (s *State) expired(e *entry, now int64) bool {
	return e.txnFirst < 0 && now-e.seen > s.expiry
}

// Expire forgets producers that are idle for longer than the expiry and have no open transaction. It returns how many.
func (s *State) Expire(nowMillis int64) int {
	n := 0
	for id, e := range s.producers {
		if s.expired(e, nowMillis) {
			delete(s.producers, id)
			n++
		}
	}
	return n
}

// FirstOpenOffset is the first offset that read_committed consumers may not see: the start of the oldest transaction that is
// open, or whose marker is not below the high watermark. ok is false if there is none.
func (s *State) FirstOpenOffset() (offset int64, ok bool) {
	switch {
	case len(s.open) > 0 && len(s.ended) > 0:
		return min(s.open[0].first, s.ended[0].first), true
	case len(s.open) > 0:
		return s.open[0].first, true
	case len(s.ended) > 0:
		return s.ended[0].first, true
	}
	return 0, false
}

// HasOpenTxn says if a producer has an open transaction under an epoch.
func (s *State) HasOpenTxn(id int64, epoch int16) bool {
	e := s.producers[id]
	return e != nil && e.txnFirst >= 0 && e.epoch == epoch
}

// SetHighWatermark says that markers below hw are replicated, so that their transactions are over for FirstOpenOffset.
func (s *State) SetHighWatermark(hw int64) {
	if len(s.ended) == 0 {
		return
	}
	s.ended = slices.DeleteFunc(s.ended, func(t txn) bool { return t.last < hw })
}

// Hold makes first the first open offset until the high watermark has passed offset last: for a state restored from a snapshot, which does not
// say which transactions were ended by a marker at last or below.
func (s *State) Hold(first, last int64) { s.ended = insert(s.ended, txn{first: first, last: last}) }

// insert keeps list sorted by first offset. Transactions start in offset order, so it is nearly always an append.
func insert(list []txn, t txn) []txn {
	i := len(list)
	for i > 0 && list[i-1].first > t.first {
		i--
	}
	return slices.Insert(list, i, t)
}
