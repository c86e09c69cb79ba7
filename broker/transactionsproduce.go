package broker

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/log/batch"
	"gregor/wire"
)

// Batches of transactions in Produce (KIP-98, KIP-890).
//
//   - A batch is written only when its partition is in the transaction that the coordinator has open for its producer. Batches are written under the
//     lock of the transactional id, so that none comes after the marker. When another broker is the coordinator see transactionsverify.go.
//   - From version 12 on a partition that is not in the transaction is put into it first. The batches of such a request are copied and wait for
//     that to be durable, and nothing else is read from the connection meanwhile, so that the order stays.
//   - Before, a partition that is missing is refused: INVALID_TXN_STATE, from version 11 on TRANSACTION_ABORTABLE. What passes is NOT_ENOUGH_REPLICAS
//     for these versions, which every client retries on.

const (
	abortableProduce = 11 // first version that is told TRANSACTION_ABORTABLE
	addsPartitions   = 12 // first version whose partitions join the transaction by themselves
)

// enlisted is a Produce with batches of a transaction.
type enlisted struct {
	broker   *Broker
	request  *kmsg.ProduceRequest
	id       string
	producer txn.Producer
	wanted   []txn.Partition // partitions of its batches
	part     *txnPartition   // where the id lives
	away     *away           // when another broker coordinates it
	err      error           // why no batch of a transaction can be written; nil while they can
	free     bool            // nobody asks if partitions are in the transaction

	txn *txn.Txn // while it is locked
}

// enlist looks for batches of a transaction in a request: nil when there is none.
func (b *Broker) enlist(r *kmsg.ProduceRequest) *enlisted {
	var e *enlisted
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			if !isTransactional(p.Records) {
				continue
			}
			if e == nil {
				e = &enlisted{broker: b, request: r}
			}
			e.add(&r.Topics[i], p)
		}
	}
	if e == nil || e.err != nil {
		return e
	}
	if r.TransactionID == nil || *r.TransactionID == "" {
		e.err = kerr.TransactionalIDAuthorizationFailed
		return e
	}
	e.id = *r.TransactionID
	if e.free = !e.addsPartitions() && !b.settings().TransactionVerification; e.free {
		return e
	}
	part, err := b.txns.find(e.id)
	switch e.part = part; {
	case part == nil:
		e.away = &away{producer: e.producer}
	case err != nil:
		e.err = e.refusal(err)
	}
	return e
}

// isTransactional looks at the header of a batch that is not checked yet.
func isTransactional(b []byte) bool {
	return len(b) >= batch.HeaderSize && b[batch.MagicPos] == 2 && b[batch.AttributesPos+1]&batch.AttrTransactional != 0
}

func (e *enlisted) add(t *kmsg.ProduceRequestTopic, p *kmsg.ProduceRequestTopicPartition) {
	h, err := batch.ReadHeader(p.Records)
	if err != nil {
		return // the check of the batch says what is wrong
	}
	who := txn.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch}
	if len(e.wanted) > 0 && who != e.producer {
		e.err = fmt.Errorf("transactional batches of several producers in one request: %w", kerr.InvalidProducerIDMapping)
		return
	}
	e.producer = who
	name := t.Topic
	if e.request.Version >= 13 {
		known := e.broker.topics.id(t.TopicID)
		if known == nil {
			return
		}
		name = known.name
	}
	if known := e.broker.topics.name(name); known != nil && known.partition(p.Partition) != nil {
		e.wanted = append(e.wanted, txn.Partition{Topic: name, Number: p.Partition})
	}
}

// refusal is what a version is told of the coordinator's error.
func (e *enlisted) refusal(err *kerr.Error) error {
	adds := e.addsPartitions()
	switch {
	case err == kerr.ProducerFenced:
		return kerr.InvalidProducerEpoch
	case err == kerr.TransactionAbortable && e.request.Version < abortableProduce:
		return fmt.Errorf("partition is not in the transaction: %w", kerr.InvalidTxnState)
	case err == kerr.ConcurrentTransactions && !adds,
		err == kerr.CoordinatorLoadInProgress, err == kerr.CoordinatorNotAvailable, err == kerr.NotCoordinator:
		return fmt.Errorf("the transaction coordinator does not know yet if the partition is in the transaction (%s): %w", err.Message, kerr.NotEnoughReplicas)
	}
	return err
}

// locked runs f while nothing can end the transaction.
func (e *enlisted) locked(f func()) {
	if e == nil || e.err != nil || e.free {
		f()
		return
	}
	if e.away != nil {
		f()
		e.away.release()
		return
	}
	known := e.part.read(e.id, func(t *txn.Txn) {
		e.txn = t
		f()
		e.txn = nil
	})
	if !known {
		e.err = e.refusal(kerr.InvalidProducerIDMapping)
		f()
	}
}

// admit says if a batch of the transaction may be written to a partition now. leave is to be called when it is.
func (e *enlisted) admit(p *partition, h *batch.Header) (leave func(), err error) {
	nothing := func() {}
	if e == nil {
		return nil, kerr.TransactionalIDAuthorizationFailed
	}
	if e.err != nil || e.free {
		return nothing, e.err
	}
	if e.away != nil {
		leave, refused := e.away.enter(p)
		if refused != nil {
			return nil, e.refusal(refused)
		}
		return leave, nil
	}
	who := txn.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch}
	if err := e.txn.Admit(who, txn.Partition{Topic: p.topic.name, Number: p.num}); err != nil {
		return nil, e.refusal(err)
	}
	return nothing, nil
}

// addsPartitions says that the producer has transaction version 2.
func (e *enlisted) addsPartitions() bool { return e.request.Version >= addsPartitions }

// missing reports if partitions must be put into the transaction first, or another broker asked about them.
func (e *enlisted) missing() bool {
	if e != nil && e.away != nil {
		return len(e.away.missing(e.broker, e.wanted)) > 0
	}
	if e == nil || e.err != nil || !e.addsPartitions() || len(e.wanted) == 0 {
		return false
	}
	missing := true
	e.part.read(e.id, func(t *txn.Txn) {
		missing = false
		for _, at := range e.wanted {
			missing = missing || t.Admit(e.producer, at) != nil
		}
	})
	return missing
}

// enlisting is a Produce that waits for its partitions to be in the transaction, and then for its batches to be durable.
type enlisting struct {
	*enlisted
	req    *wire.Request
	result atomic.Pointer[txn.Reply]
	next   *wire.Reply // when the batches are written
}

// enlistFirst puts the partitions of a request into the transaction, or asks about them. Records are copied: they are not ours when the handler has
// returned.
func (b *Broker) enlistFirst(e *enlisted, req *wire.Request) wire.Reply {
	for i := range e.request.Topics {
		for j := range e.request.Topics[i].Partitions {
			p := &e.request.Topics[i].Partitions[j]
			p.Records = bytes.Clone(p.Records)
		}
	}
	p := &enlisting{enlisted: e, req: req}
	if e.away != nil {
		e.away.ask(b, e.id, e.away.missing(b, e.wanted), e.addsPartitions(), func() { p.receiveTxn(txn.Reply{}) })
		return wire.Reply{Pending: p}
	}
	e.part.event(e.id, func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Add(at, p, e.producer, e.wanted, 2) })
	if reply, ok := p.Poll(time.Now()); ok {
		return reply
	}
	return wire.Reply{Pending: p}
}

// receiveTxn implements txnReceiver.
func (p *enlisting) receiveTxn(r txn.Reply) {
	p.result.Store(&r)
	p.req.Wake()
}

// Poll implements wire.Pending.
func (p *enlisting) Poll(now time.Time) (wire.Reply, bool) {
	if p.next == nil {
		r := p.result.Load()
		if r == nil {
			return wire.Reply{}, false
		}
		if r.Err != nil {
			p.err = p.refusal(r.Err)
		}
		next := p.broker.produce(p.request, p.req, p.enlisted)
		p.next = &next
	}
	if p.next.Pending != nil {
		return p.next.Pending.Poll(now)
	}
	return *p.next, true
}

// Deadline implements wire.Pending.
func (p *enlisting) Deadline() time.Time {
	if p.next != nil && p.next.Pending != nil {
		return p.next.Pending.Deadline()
	}
	return time.Time{}
}

// Cancel implements wire.Pending. Batches that were not written are not.
func (p *enlisting) Cancel() {
	if p.away != nil && p.next == nil {
		p.away.release()
	}
	if p.next != nil && p.next.Pending != nil {
		p.next.Pending.Cancel()
	}
}
