package broker

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/twophase"
	"gregor/broker/txn"
	"gregor/wire"
)

// InitProducerId (key 22), versions 0 to 5, and 6 with transaction.two.phase.commit.enable. Without a transactional id every request gets an id that was
// never given before, with epoch 0, whatever id it had (KIP-360). With one, the producer is the transactional id's next, see txn.Init.
//
// Version 6 (KIP-939) may ask for transactions without timeout, and for the one that is open not to be aborted: the answer names it. Apache Kafka
// 4.4 answers the second with UNSUPPORTED_VERSION; here it does what the KIP says.

// Versions of InitProducerId.
const (
	expectsProducer = 3 // first version that says which producer the client was
	fencesInit      = 4 // first version that is told PRODUCER_FENCED
	newestInit      = 5 // without two-phase commit
)

// newestInit is the newest version of InitProducerId that is served.
func (b *Broker) newestInit() int16 {
	if b.conf.TransactionTwoPhase {
		return twophase.Version
	}
	return newestInit
}

func (b *Broker) handleInitProducerID(ctx context.Context, req *wire.Request) wire.Reply {
	r := twophase.Of(req.Body)
	fill := func(reply txn.Reply) kmsg.Response { return initAnswer(r.Version, reply) }
	refused := func(err *kerr.Error) wire.Reply { return wire.Reply{Body: wire.Message(fill(refusedTxn(err)))} }
	init := txn.Init{Timeout: r.TransactionTimeoutMillis, Expected: txn.Producer{ID: -1, Epoch: -1}, TwoPhase: r.Enable2PC, Keep: r.KeepPreparedTxn}
	if r.Version >= expectsProducer {
		init.Expected = txn.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}
	}
	switch {
	case r.TransactionalID != nil && *r.TransactionalID == "", (init.Expected.ID == -1) != (init.Expected.Epoch == -1):
		return refused(kerr.InvalidRequest)
	case r.TransactionalID == nil:
		id, err := b.producerIDs.next(ctx, b.control.AllocateProducerIDs)
		if err != nil {
			b.logger.Warn("no producer id could be given", "error", err)
			return refused(kafkaError(err))
		}
		return wire.Reply{Body: wire.Message(fill(txn.Reply{Producer: txn.Producer{ID: id}}))}
	case r.Enable2PC && !b.conf.TransactionTwoPhase:
		return refused(kerr.TransactionalIDAuthorizationFailed)
	}
	id := *r.TransactionalID
	err := b.txns.conf.CheckTimeout(init.Timeout)
	if err != nil && !init.TwoPhase {
		return refused(err)
	}
	if init.Fresh, err = b.freshProducerID(ctx, id); err != nil {
		return refused(err)
	}
	return b.askTxn(req, id, fill, func(t *txn.Txn, at txn.Instant, w txn.Waiter) txn.Effects { return t.Init(at, w, init) })
}

// initAnswer is the answer at a version.
func initAnswer(version int16, reply txn.Reply) kmsg.Response {
	resp := twophase.NewResponse(version)
	resp.ErrorCode = fencedAs(reply.Err, version, fencesInit)
	resp.ProducerID, resp.ProducerEpoch = reply.Producer.ID, reply.Producer.Epoch
	if o := reply.Ongoing; o != nil {
		resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch = o.ID, o.Epoch
	}
	return resp
}

// producerIDs gives out producer ids from the block that was taken last. The zero value has none. What is left of a block at the end of the
// process is lost; ids are 63 bits wide.
type producerIDs struct {
	mu    sync.Mutex // held over the allocation of a block, which is once in a thousand
	first int64
	left  int64
}

// next returns an id, with a new block from allocate when needed.
func (p *producerIDs) next(ctx context.Context, allocate func(context.Context) (first, count int64, err error)) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		first, count, err := allocate(ctx)
		if err != nil {
			return -1, err
		}
		p.first, p.left = first, count
	}
	id := p.first
	p.first++
	p.left--
	return id, nil
}
