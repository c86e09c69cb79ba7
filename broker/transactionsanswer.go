package broker

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/wire"
)

// txnAnswer is the answer of a transactional id that may have to be waited for.
type txnAnswer struct {
	wake   func()
	fill   func(txn.Reply) kmsg.Response // makes the answer
	result atomic.Pointer[txn.Reply]
}

// receiveTxn implements txnReceiver.
func (a *txnAnswer) receiveTxn(r txn.Reply) {
	a.result.Store(&r)
	a.wake()
}

// Poll implements wire.Pending.
func (a *txnAnswer) Poll(time.Time) (wire.Reply, bool) {
	r := a.result.Load()
	if r == nil {
		return wire.Reply{}, false
	}
	return wire.Reply{Body: wire.Message(a.fill(*r))}, true
}

// Deadline implements wire.Pending. The id's own timers, and writes, which end well or badly, end every wait.
func (a *txnAnswer) Deadline() time.Time { return time.Time{} }

// Cancel implements wire.Pending. What was asked for is done all the same.
func (a *txnAnswer) Cancel() {}

// askTxn gives an id an event and answers with what it says, at once or later.
func (b *Broker) askTxn(req *wire.Request, id string, fill func(txn.Reply) kmsg.Response, f func(*txn.Txn, txn.Instant, txn.Waiter) txn.Effects) wire.Reply {
	a := &txnAnswer{wake: req.Wake, fill: fill}
	p, err := b.txns.find(id)
	if err != nil {
		return wire.Reply{Body: wire.Message(fill(refusedTxn(err)))}
	}
	p.event(id, func(t *txn.Txn, at txn.Instant) txn.Effects { return f(t, at, a) })
	if reply, ok := a.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: a}
}

func refusedTxn(err *kerr.Error) txn.Reply {
	return txn.Reply{Err: err, Producer: txn.Producer{ID: -1, Epoch: -1}}
}

// fencedAs is err for a version of a request: those before from know PRODUCER_FENCED as INVALID_PRODUCER_EPOCH (KIP-588).
func fencedAs(err *kerr.Error, version, from int16) int16 {
	switch {
	case err == nil:
		return 0
	case err == kerr.ProducerFenced && version < from:
		return kerr.InvalidProducerEpoch.Code
	}
	return err.Code
}
