package txn

import "github.com/twmb/franz-go/pkg/kerr"

// A kept transaction (KIP-939) has two producers. The one that it was written by stays in meta.producer: the markers name it with its next epoch,
// and an application finds in the answer of its Init the transaction that it has prepared. The other is in nextID and nextEpoch: the client's, which is another
// at each Init, so that clients that were before are fenced. It can end the transaction and nothing else, and goes on with the epoch after.

// keep leaves the transaction open for the client that comes, under a producer that those before it do not have. Its timeout stays what it was.
func (t *Txn) keep(s *step, w Waiter, r *Init) *kerr.Error {
	next := t.meta.holder()
	next.Epoch++
	if t.meta.exhausted() {
		if r.Fresh < 0 {
			return kerr.ConcurrentTransactions
		}
		next = Producer{r.Fresh, 0}
	}
	m := t.meta.become(Ongoing, s.Instant)
	m.nextID, m.nextEpoch, m.lastEpoch = next.ID, next.Epoch, -1
	t.store(s, m, func(s *step, err *kerr.Error) {
		if err != nil {
			s.refuse(w, storeError(err))
			return
		}
		if w != nil {
			s.Replies = append(s.Replies, Reply{To: w, Producer: next, Ongoing: &m.producer})
		}
	})
	return nil
}

// kept says that the client has another producer than the transaction.
func (m *meta) kept() bool { return m.nextEpoch >= 0 }

// holder is the producer that the client has.
func (m *meta) holder() Producer {
	if m.kept() && m.state == Ongoing {
		return Producer{m.nextID, m.nextEpoch}
	}
	return m.producer
}

// has reports if an id is the client's, or of the transaction that it has kept.
func (m *meta) has(id int64) bool { return id == m.holder().ID || id == m.producer.ID }

// clientID is the producer id that the client of a decided transaction had.
func (m *meta) clientID() int64 {
	if m.kept() {
		return m.previousID
	}
	return m.producer.ID
}

// after is the producer when the transaction is complete.
func (m *meta) after() Producer {
	switch {
	case m.kept():
		return Producer{m.nextID, m.nextEpoch}
	case m.nextID >= 0:
		return Producer{m.nextID, 0}
	}
	return m.producer
}
