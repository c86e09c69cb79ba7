package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// End is an EndTxn.
type End struct {
	Producer Producer
	Commit   bool
	// Bump says that the client speaks transaction version 2: each end gives it a new epoch (KIP-890).
	Bump bool
	// Fresh is as in Init.
	Fresh int64
}

// End is an EndTxn. Answered when the decision is durable, with the producer that the client is from then on.
func (t *Txn) End(at Instant, w Waiter, r End) Effects {
	return t.attempt(at, w, func(s *step) *kerr.Error {
		if t.busy() {
			return kerr.ConcurrentTransactions
		}
		if r.Bump {
			return t.endBumping(s, w, &r)
		}
		return t.endKeeping(s, w, &r)
	})
}

// decision is the state that an end leads to.
func (r *End) decision() State {
	if r.Commit {
		return PrepareCommit
	}
	return PrepareAbort
}

// endKeeping ends a transaction of versions 0 and 1: the producer keeps its epoch.
func (t *Txn) endKeeping(s *step, w Waiter, r *End) *kerr.Error {
	switch {
	case t.meta.state == Dead || !t.meta.has(r.Producer.ID):
		return kerr.InvalidProducerIDMapping
	case t.meta.holder() != r.Producer:
		return kerr.ProducerFenced
	case t.meta.state == Ongoing:
		t.prepare(s, w, r, 0)
		return nil
	}
	return t.endAgain(s, w, r.Commit, r.Producer)
}

// endAgain is for an end that was decided before.
func (t *Txn) endAgain(s *step, w Waiter, commit bool, p Producer) *kerr.Error {
	switch {
	case commit && t.meta.state == CompleteCommit, !commit && t.meta.state == CompleteAbort:
		s.done(w, p)
		return nil
	}
	return kerr.InvalidTxnState
}

// endBumping ends a transaction of version 2. The same epoch is another end, the one before a repeated one.
func (t *Txn) endBumping(s *step, w Waiter, r *End) *kerr.Error {
	now, p := t.meta.holder(), r.Producer
	overflown := t.meta.previousID == p.ID && p.ID != now.ID && p.Epoch == maxEpoch && now.Epoch == 0
	bumped := now.ID == p.ID && now.Epoch == p.Epoch+1
	again := false
	switch state := t.meta.state; {
	case state == Dead || !t.meta.has(p.ID) && !overflown:
		return kerr.InvalidProducerIDMapping
	case state == CompleteCommit || state == CompleteAbort:
		// What was ended with version 0 gave no epoch: the one before it is of another client, which must not come to this one's.
		again = t.meta.client >= 2 && (bumped || overflown)
	}
	switch {
	case again:
		return t.endAgain(s, w, r.Commit, now)
	case now != p:
		return kerr.ProducerFenced
	case t.meta.state != Ongoing && r.Commit:
		return kerr.InvalidTxnState
	case t.meta.exhausted() && r.Fresh < 0:
		return kerr.ConcurrentTransactions
	}
	t.prepare(s, w, r, 2)
	return nil
}

// prepare stores the decision, answers, and asks for the markers.
func (t *Txn) prepare(s *step, w Waiter, r *End, version int16) {
	m := t.meta.become(r.decision(), s.Instant)
	m.client, m.nextID, m.nextEpoch = version, -1, -1
	if t.meta.state != Ongoing {
		m.started, m.partitions = s.Wall, nil // an abort of nothing
	}
	next := t.meta.holder()
	if version >= 2 {
		m.lastEpoch = next.Epoch
		m.producer.Epoch++
		if next.Epoch++; t.meta.exhausted() {
			next = Producer{r.Fresh, 0}
			m.nextID = r.Fresh
		}
	}
	if t.meta.kept() {
		m.nextID, m.nextEpoch = next.ID, next.Epoch
	}
	t.store(s, m, func(s *step, err *kerr.Error) {
		if err != nil {
			s.refuse(w, storeError(err))
			return
		}
		s.done(w, m.after())
		t.startMarking(s)
	})
}
