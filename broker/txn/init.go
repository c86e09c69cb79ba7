package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Init is an InitProducerId.
type Init struct {
	Timeout int32 // milliseconds
	// Expected is the producer that the client was until now (KIP-360); -1 and -1 for a new client.
	Expected Producer
	// TwoPhase says that the transactions have no timeout (KIP-939).
	TwoPhase bool
	// Keep leaves a transaction that is open as it is, for the client to end (KIP-939).
	Keep bool
	// Fresh is a producer id that was never used, if NeedsID says that one may be needed; else -1.
	Fresh int64
}

// NeedsID reports if an Init or End may need a fresh producer id. It is true a little early, since requests may be parked.
func (t *Txn) NeedsID() bool { return t.meta.state == Dead || t.meta.holder().Epoch >= LastEpochs }

// CheckTimeout says if a transaction timeout, in milliseconds, is allowed.
func (c *Config) CheckTimeout(ms int32) *kerr.Error {
	if ms <= 0 || time.Duration(ms)*time.Millisecond > c.MaxTimeout {
		return kerr.InvalidTransactionTimeout
	}
	return nil
}

// Init is an InitProducerId: it gives the id's next producer, and aborts what the one before left open, or keeps it. Answered with the producer
// when it is durable; CONCURRENT_TRANSACTIONS when a transaction had to be aborted first.
func (t *Txn) Init(at Instant, w Waiter, r Init) Effects {
	if r.TwoPhase {
		r.Timeout = endless
	} else if err := t.conf.CheckTimeout(r.Timeout); err != nil {
		s := step{Instant: at}
		s.refuse(w, err)
		return s.Effects
	}
	return t.attempt(at, w, func(s *step) *kerr.Error { return t.tryInit(s, w, &r) })
}

func (t *Txn) tryInit(s *step, w Waiter, r *Init) *kerr.Error {
	switch {
	case t.busy():
		return kerr.ConcurrentTransactions
	case t.meta.state == Dead:
		return t.found(s, w, r)
	case r.Expected.ID >= 0 && !t.knows(r.Expected):
		return kerr.ProducerFenced
	case t.meta.state == Ongoing && r.Keep:
		return t.keep(s, w, r)
	case t.meta.state == Ongoing:
		t.fence(s, false, func(s *step, err *kerr.Error) {
			if err = storeError(err); err == nil {
				err = kerr.ConcurrentTransactions
			}
			s.refuse(w, err)
		})
		return nil
	}
	return t.renew(s, w, r)
}

// knows reports if a producer is, or was just before, the id's. A producer whose epochs are used up may not know its new id yet.
// What is kept is for its present client alone: one that was before would abort what another has promised to commit.
func (t *Txn) knows(p Producer) bool {
	if t.meta.kept() {
		return p == t.meta.holder()
	}
	return p.ID == t.meta.producer.ID || p.ID == t.meta.previousID && p.Epoch >= maxEpoch
}

// found is the first Init of an id.
func (t *Txn) found(s *step, w Waiter, r *Init) *kerr.Error {
	if r.Fresh < 0 {
		return kerr.ConcurrentTransactions
	}
	m := meta{producer: Producer{r.Fresh, 0}, lastEpoch: -1, previousID: r.Fresh, nextID: -1, nextEpoch: -1, timeout: r.Timeout, state: Empty, started: -1, updated: s.Wall}
	t.store(s, m, t.answerInit(w, m.producer))
	return nil
}

// renew gives an id without transaction its next producer.
func (t *Txn) renew(s *step, w Waiter, r *Init) *kerr.Error {
	m := t.meta.become(Empty, s.Instant)
	m.timeout, m.partitions, m.started, m.nextID = r.Timeout, nil, -1, -1
	again := r.Expected.ID >= 0
	fenced := t.meta.producer.Epoch > maxEpoch // no producer may have that one
	switch {
	case t.meta.exhausted() && (!again || r.Expected.Epoch == t.meta.producer.Epoch || fenced && r.Expected.Epoch == t.meta.lastEpoch):
		if r.Fresh < 0 {
			return kerr.ConcurrentTransactions
		}
		m.producer, m.lastEpoch = Producer{r.Fresh, 0}, -1
		if again {
			m.lastEpoch = r.Expected.Epoch
		}
	case !again:
		m.producer.Epoch++
		m.lastEpoch = -1
	case r.Expected.Epoch == t.meta.producer.Epoch:
		m.lastEpoch = m.producer.Epoch
		m.producer.Epoch++
	case r.Expected.Epoch == t.meta.lastEpoch:
		// The answer to the same request got lost. Nobody else came since, for that would have forgotten the last epoch.
	default:
		return kerr.ProducerFenced
	}
	t.store(s, m, t.answerInit(w, m.producer))
	return nil
}

func (t *Txn) answerInit(w Waiter, p Producer) func(*step, *kerr.Error) {
	return func(s *step, err *kerr.Error) {
		if err != nil {
			s.refuse(w, storeError(err))
			return
		}
		s.done(w, p)
	}
}

// fence aborts the transaction under an epoch that its producer does not have. After a timeout the producer may come back with the epoch
// that it knows (KIP-588); where another takes its place it may not.
func (t *Txn) fence(s *step, timedOut bool, done func(*step, *kerr.Error)) {
	m := t.meta.become(PrepareAbort, s.Instant)
	m.lastEpoch = -1
	if timedOut || m.client >= 2 {
		m.lastEpoch = t.meta.holder().Epoch
	}
	m.producer.Epoch++
	if t.meta.kept() {
		m.nextEpoch++ // its client is fenced too
	}
	t.store(s, m, func(s *step, err *kerr.Error) {
		done(s, err)
		if err == nil {
			t.startMarking(s)
		}
	})
}
