package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/wire"
)

// AddPartitionsToTxn (key 24), versions 0 to 5, and AddOffsetsToTxn (25), versions 0 to 4. Version 4 and 5 of the first are for brokers that ask for
// several producers at once, or only whether partitions are in the transaction. A partition that does not exist keeps all of its transaction out.

const (
	fencesAdd  = 2 // first version that is told PRODUCER_FENCED
	batchesAdd = 4 // first version with several transactions
)

func (b *Broker) handleAddPartitionsToTxn(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.AddPartitionsToTxnRequest)
	a := &addedPartitions{wake: req.Wake, version: r.Version, resp: kmsg.NewPtrAddPartitionsToTxnResponse()}
	all := r.Transactions
	if r.Version < batchesAdd {
		one := kmsg.NewAddPartitionsToTxnRequestTransaction()
		one.TransactionalID, one.ProducerID, one.ProducerEpoch = r.TransactionalID, r.ProducerID, r.ProducerEpoch
		for _, t := range r.Topics {
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		all = []kmsg.AddPartitionsToTxnRequestTransaction{one}
	}
	a.resp.Transactions = make([]kmsg.AddPartitionsToTxnResponseTransaction, len(all))
	a.left.Store(int32(len(all)) + 1)
	for i := range all {
		b.addPartitions(a, &all[i], &a.resp.Transactions[i])
	}
	a.left.Add(-1)
	if reply, ok := a.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: a}
}

// addPartitions does what one transaction of the request asks for.
func (b *Broker) addPartitions(a *addedPartitions, in *kmsg.AddPartitionsToTxnRequestTransaction, out *kmsg.AddPartitionsToTxnResponseTransaction) {
	one := &addedTransaction{a, out}
	out.TransactionalID = in.TransactionalID
	partitions, missing := b.txnPartitions(in, out)
	who := txn.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}
	p, err := b.txns.find(in.TransactionalID)
	switch {
	case in.TransactionalID == "":
		one.receiveTxn(refusedTxn(kerr.InvalidRequest))
	case missing:
		a.left.Add(-1) // the errors are there
	case err != nil:
		one.receiveTxn(refusedTxn(err))
	case in.VerifyOnly:
		one.verify(p, who)
	default:
		version := int16(0)
		if a.version >= batchesAdd {
			version = 2
		}
		p.event(in.TransactionalID, func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Add(at, one, who, partitions, version) })
	}
}

// txnPartitions makes the answer for one transaction, and lists its partitions. Missing says that one does not exist.
func (b *Broker) txnPartitions(in *kmsg.AddPartitionsToTxnRequestTransaction, out *kmsg.AddPartitionsToTxnResponseTransaction) (all []txn.Partition, missing bool) {
	out.Topics = make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, len(in.Topics))
	for i := range in.Topics {
		name := in.Topics[i].Topic
		out.Topics[i].Topic = name
		t := b.topics.name(name)
		for _, n := range in.Topics[i].Partitions {
			res := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
			res.Partition = n
			if t == nil || t.partition(n) == nil {
				missing = true
				res.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			out.Topics[i].Partitions = append(out.Topics[i].Partitions, res)
			all = append(all, txn.Partition{Topic: name, Number: n})
		}
	}
	if missing {
		eachPartition(out, func(_ txn.Partition, code *int16) {
			if *code == 0 {
				*code = kerr.OperationNotAttempted.Code
			}
		})
	}
	return all, missing
}

func eachPartition(out *kmsg.AddPartitionsToTxnResponseTransaction, f func(at txn.Partition, code *int16)) {
	for i := range out.Topics {
		for j := range out.Topics[i].Partitions {
			p := &out.Topics[i].Partitions[j]
			f(txn.Partition{Topic: out.Topics[i].Topic, Number: p.Partition}, &p.ErrorCode)
		}
	}
}

// addedPartitions is an AddPartitionsToTxn that waits.
type addedPartitions struct {
	wake    func()
	version int16
	resp    *kmsg.AddPartitionsToTxnResponse
	left    atomic.Int32 // transactions without a result, and one for the handler
}

// addedTransaction waits for one of them.
type addedTransaction struct {
	of  *addedPartitions
	out *kmsg.AddPartitionsToTxnResponseTransaction
}

// receiveTxn implements txnReceiver.
func (a *addedTransaction) receiveTxn(r txn.Reply) {
	eachPartition(a.out, func(_ txn.Partition, code *int16) { *code = fencedAs(r.Err, a.of.version, fencesAdd) })
	if a.of.left.Add(-1) == 0 {
		a.of.wake()
	}
}

// verify says of each partition if it is in the transaction.
func (a *addedTransaction) verify(p *txnPartition, who txn.Producer) {
	known := p.read(a.out.TransactionalID, func(t *txn.Txn) {
		eachPartition(a.out, func(at txn.Partition, code *int16) { *code = fencedAs(t.Admit(who, at), a.of.version, fencesAdd) })
	})
	if !known {
		a.receiveTxn(refusedTxn(kerr.InvalidProducerIDMapping))
		return
	}
	a.of.left.Add(-1)
}

// Poll implements wire.Pending.
func (a *addedPartitions) Poll(time.Time) (wire.Reply, bool) {
	if a.left.Load() > 0 {
		return wire.Reply{}, false
	}
	if a.version < batchesAdd {
		for _, t := range a.resp.Transactions[0].Topics {
			one := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				one.Partitions = append(one.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			a.resp.Topics = append(a.resp.Topics, one)
		}
	}
	return wire.Reply{Body: wire.Message(a.resp)}, true
}

// Deadline implements wire.Pending, as txnAnswer does.
func (a *addedPartitions) Deadline() time.Time { return time.Time{} }

// Cancel implements wire.Pending.
func (a *addedPartitions) Cancel() {}

func (b *Broker) handleAddOffsetsToTxn(ctx context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.AddOffsetsToTxnRequest)
	fill := func(reply txn.Reply) kmsg.Response {
		resp := kmsg.NewPtrAddOffsetsToTxnResponse()
		resp.ErrorCode = fencedAs(reply.Err, r.Version, fencesAdd)
		return resp
	}
	if r.TransactionalID == "" {
		return wire.Reply{Body: wire.Message(fill(refusedTxn(kerr.InvalidRequest)))}
	}
	at, err := b.offsetsPartitionFor(ctx, r.Group)
	if err != nil {
		return wire.Reply{Body: wire.Message(fill(refusedTxn(err)))}
	}
	who := txn.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}
	return b.askTxn(req, r.TransactionalID, fill, func(t *txn.Txn, now txn.Instant, w txn.Waiter) txn.Effects {
		return t.Add(now, w, who, []txn.Partition{at}, 0)
	})
}

// offsetsPartitionFor is the partition of __consumer_offsets that a group lives in.
func (b *Broker) offsetsPartitionFor(ctx context.Context, id string) (txn.Partition, *kerr.Error) {
	if err := b.groups.ensure(ctx); err != nil {
		return txn.Partition{}, kerr.CoordinatorNotAvailable
	}
	n, err := b.groups.number(id)
	return txn.Partition{Topic: offsetsTopic, Number: n}, err
}
