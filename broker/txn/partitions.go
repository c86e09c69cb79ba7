package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Add makes partitions part of the producer's transaction, and begins one if there is none: AddPartitionsToTxn, AddOffsetsToTxn, and what a
// producer of transaction version 2 sends without asking first. Version is the client's transaction version. Answered when it is durable, at once when
// all are in it already.
func (t *Txn) Add(at Instant, w Waiter, p Producer, partitions []Partition, version int16) Effects {
	return t.attempt(at, w, func(s *step) *kerr.Error {
		if err := t.mayChange(p); err != nil {
			return err
		}
		if t.meta.state == Ongoing && !slices.ContainsFunc(partitions, func(p Partition) bool { return !contains(t.meta.partitions, p) }) {
			s.done(w, p)
			return nil
		}
		m := t.meta.become(Ongoing, s.Instant)
		m.partitions, m.client = union(t.meta.partitions, partitions), version
		if t.meta.state != Ongoing {
			m.started = s.Wall
		}
		t.store(s, m, func(s *step, err *kerr.Error) {
			if err != nil {
				s.refuse(w, storeError(err))
				return
			}
			s.done(w, p)
		})
		return nil
	})
}

// mayChange checks who wants to change the transaction. A transition ends first: its client may know the result before it is durable.
func (t *Txn) mayChange(p Producer) *kerr.Error {
	switch {
	case t.busy():
		return kerr.ConcurrentTransactions
	case t.meta.state == Dead || !t.meta.has(p.ID):
		return kerr.InvalidProducerIDMapping
	case t.meta.holder() != p:
		return kerr.ProducerFenced
	case t.meta.kept():
		return kerr.InvalidTxnState
	}
	return nil
}

// Admit says if a producer may write to a partition now as part of its transaction: nil, TRANSACTION_ABORTABLE when the partition is not in
// the transaction or there is none, CONCURRENT_TRANSACTIONS when it is being ended, INVALID_TXN_STATE when it was kept and can only be ended.
func (t *Txn) Admit(p Producer, at Partition) *kerr.Error {
	switch {
	case t.meta.state == Dead || !t.meta.has(p.ID):
		if t.next != nil {
			return kerr.ConcurrentTransactions
		}
		return kerr.InvalidProducerIDMapping
	case t.meta.holder() != p:
		if t.next != nil {
			return kerr.ConcurrentTransactions
		}
		return kerr.ProducerFenced
	case t.meta.state.prepared(), t.next != nil && t.next.to.state.prepared():
		return kerr.ConcurrentTransactions
	case t.meta.kept():
		return kerr.InvalidTxnState
	case t.meta.state != Ongoing || !contains(t.meta.partitions, at):
		return kerr.TransactionAbortable
	}
	return nil
}
