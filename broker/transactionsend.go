package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/wire"
)

// EndTxn (key 26), versions 0 to 5. Answered when the decision is durable; markers are written after that. From version 5 on each end gives the
// producer its next epoch (KIP-890).

const (
	fencesEnd = 2 // first version that is told PRODUCER_FENCED
	bumpsEnd  = 5 // first version of transaction version 2
)

func (b *Broker) handleEndTxn(ctx context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.EndTxnRequest)
	fill := func(reply txn.Reply) kmsg.Response {
		resp := kmsg.NewPtrEndTxnResponse()
		resp.ErrorCode = fencedAs(reply.Err, r.Version, fencesEnd)
		resp.ProducerID, resp.ProducerEpoch = reply.Producer.ID, reply.Producer.Epoch
		return resp
	}
	if r.TransactionalID == "" {
		return wire.Reply{Body: wire.Message(fill(refusedTxn(kerr.InvalidRequest)))}
	}
	end := txn.End{Producer: txn.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}, Commit: r.Commit, Bump: r.Version >= bumpsEnd, Fresh: -1}
	if end.Bump && r.ProducerEpoch >= txn.LastEpochs {
		var err *kerr.Error
		if end.Fresh, err = b.freshProducerID(ctx, r.TransactionalID); err != nil {
			return wire.Reply{Body: wire.Message(fill(refusedTxn(err)))}
		}
	}
	return b.askTxn(req, r.TransactionalID, fill, func(t *txn.Txn, at txn.Instant, w txn.Waiter) txn.Effects { return t.End(at, w, end) })
}

// freshProducerID takes a producer id for an event that may need one; -1 when it will not.
func (b *Broker) freshProducerID(ctx context.Context, id string) (int64, *kerr.Error) {
	p, err := b.txns.find(id)
	if err != nil {
		return -1, nil // the event says so
	}
	needed := true
	if p.read(id, func(t *txn.Txn) { needed = t.NeedsID() }); !needed {
		return -1, nil
	}
	return b.newProducerID(ctx)
}

// newProducerID takes a producer id. The error is one that producers retry on.
func (b *Broker) newProducerID(ctx context.Context) (int64, *kerr.Error) {
	fresh, err := b.producerIDs.next(ctx, b.control.AllocateProducerIDs)
	if err == nil {
		return fresh, nil
	}
	if b.txnAlarm.due() {
		b.logger.Warn("no producer id could be given", "error", err)
	}
	return -1, kerr.CoordinatorNotAvailable
}
