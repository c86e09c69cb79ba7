package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/broker/txn"
	"gregor/wire"
)

// TxnOffsetCommit (key 28), versions 0 to 6: offsets that count when the transaction is committed. It goes to the coordinator of the group. As with
// Produce, the offsets are written under the lock of the transactional id while the transaction is open in the group's partition of
// __consumer_offsets, which version 5 puts into it by itself; a transaction that another broker coordinates is verified there (transactionsverify.go).
// Version 6 names topics by id.

const (
	loadsInTxn     = 2 // first version that is told COORDINATOR_LOAD_IN_PROGRESS
	abortsInTxn    = 4 // first version that is told TRANSACTION_ABORTABLE
	addsOffsets    = 5 // first version whose group's partition joins the transaction by itself
	topicIDsInTxn  = 6
	knowsBusyInTxn = addsOffsets // first version whose clients retry on CONCURRENT_TRANSACTIONS
)

func (b *Broker) handleTxnOffsetCommit(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.TxnOffsetCommitRequest)
	c := &txnCommit{broker: b, request: r, wake: req.Wake, resp: kmsg.NewPtrTxnOffsetCommitResponse(), producer: txn.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}}
	c.list()
	if err := c.find(); err != nil {
		c.refuse(err)
	} else if c.away != nil {
		c.verify()
	} else if r.Version >= addsOffsets {
		c.txns.event(r.TransactionalID, func(t *txn.Txn, at txn.Instant) txn.Effects {
			return t.Add(at, c, c.producer, []txn.Partition{c.at()}, 2)
		})
	} else {
		c.commit()
	}
	if reply, ok := c.Poll(time.Now()); ok {
		return reply
	}
	return wire.Reply{Pending: c}
}

// txnCommit is a TxnOffsetCommit that waits: for the partition to be in the transaction, then for its records to be durable.
type txnCommit struct {
	broker   *Broker
	request  *kmsg.TxnOffsetCommitRequest
	wake     func()
	resp     *kmsg.TxnOffsetCommitResponse
	producer txn.Producer
	txns     *txnPartition
	away     *away // when another broker coordinates the transaction
	groups   *offsetsPartition
	accepted []*kmsg.TxnOffsetCommitResponseTopicPartition // to be given to the group, with offsets
	offsets  []group.PartitionOffset

	added    atomic.Pointer[txn.Reply]
	began    bool // the group was asked, or is not to be
	deadline time.Time
	result   atomic.Pointer[group.Reply]
}

// list makes the answer, with what is wrong with single partitions, and the list of the others.
func (c *txnCommit) list() {
	b, r := c.broker, c.request
	now := b.now().UnixMilli()
	c.resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		in, out := &r.Topics[i], &c.resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(in.Partitions))
		t, unknown := b.topicOf(r.Version >= topicIDsInTxn, in.Topic, in.TopicID)
		for j := range in.Partitions {
			p, res := &in.Partitions[j], &out.Partitions[j]
			res.Partition = p.Partition
			if refused := b.refuseOffset(t, unknown, p.Partition, p.Metadata); refused != nil {
				res.ErrorCode = refused.Code
				continue
			}
			o := group.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Committed: now, Expires: -1}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			c.accepted = append(c.accepted, res)
			c.offsets = append(c.offsets, group.PartitionOffset{Partition: group.Partition{Topic: t.name, Number: p.Partition}, Offset: o})
		}
	}
}

// find looks for both coordinators.
func (c *txnCommit) find() (err *kerr.Error) {
	if c.request.Group == "" {
		return kerr.InvalidGroupID
	}
	if c.groups, err = c.broker.groups.find(c.request.Group); err != nil {
		return err
	}
	c.txns, err = c.broker.txns.find(c.request.TransactionalID)
	if c.txns == nil {
		c.away = &away{producer: c.producer}
		return nil
	}
	if err == kerr.NotCoordinator {
		return kerr.CoordinatorNotAvailable // this is the group's coordinator
	}
	return err
}

// verify asks the transaction's coordinator if the group's partition is in it, or puts it in, unless that is known.
func (c *txnCommit) verify() {
	missing := c.away.missing(c.broker, []txn.Partition{c.at()})
	if len(missing) == 0 || c.unchecked() {
		c.commit()
		return
	}
	c.away.ask(c.broker, c.request.TransactionalID, missing, c.request.Version >= addsOffsets, func() { c.receiveTxn(txn.Reply{}) })
}

// unchecked says that nobody asks if the partition is in the transaction.
func (c *txnCommit) unchecked() bool {
	return c.request.Version < addsOffsets && !c.broker.settings().TransactionVerification
}

// at is the group's partition.
func (c *txnCommit) at() txn.Partition {
	return txn.Partition{Topic: offsetsTopic, Number: c.groups.part.num}
}

// commit gives the offsets to the group, if the transaction is open.
func (c *txnCommit) commit() {
	c.began = true
	c.deadline = time.Now().Add(c.broker.conf.OffsetsCommitTimeout)
	r := c.request
	commit := &group.TxnCommit{Producer: group.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}, Commit: group.Commit{
		MemberID: r.MemberID, InstanceID: r.InstanceID, Generation: r.Generation, Version: r.Version, Offsets: c.offsets}}
	if r.Version < 3 {
		commit.Generation, commit.MemberID, commit.InstanceID = -1, "", nil
	}
	refused := c.admitted(func() {
		c.groups.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.CommitTxn(at, c, commit) })
	})
	if refused != nil {
		c.refuse(refused)
	}
}

// admitted runs f while nothing can end the transaction, or says why it may not be run.
func (c *txnCommit) admitted(f func()) (refused *kerr.Error) {
	if c.away != nil {
		defer c.away.release()
		if c.unchecked() {
			f()
			return nil
		}
		leave, refused := c.away.enter(c.groups.part)
		if refused == nil {
			f()
			leave()
		}
		return refused
	}
	refused = kerr.InvalidProducerIDMapping
	c.txns.read(c.request.TransactionalID, func(t *txn.Txn) {
		if refused = t.Admit(c.producer, c.at()); refused == nil || c.unchecked() {
			refused = nil
			f()
		}
	})
	return refused
}

// refuse ends the request with an error for all that was not refused by itself.
func (c *txnCommit) refuse(err *kerr.Error) {
	c.began = true
	c.result.Store(&group.Reply{Err: err})
}

// told is what a version is told of an error.
func (c *txnCommit) told(err *kerr.Error) *kerr.Error {
	v := c.request.Version
	switch {
	case err == kerr.ProducerFenced:
		return kerr.InvalidProducerEpoch
	case err == kerr.TransactionAbortable && v < abortsInTxn:
		return kerr.InvalidTxnState
	case err == kerr.ConcurrentTransactions && v < knowsBusyInTxn:
		err = kerr.CoordinatorLoadInProgress
	}
	if err == kerr.CoordinatorLoadInProgress && v < loadsInTxn {
		return kerr.CoordinatorNotAvailable
	}
	return err
}

// receiveTxn implements txnReceiver.
func (c *txnCommit) receiveTxn(r txn.Reply) {
	c.added.Store(&r)
	c.wake()
}

// receive implements receiver.
func (c *txnCommit) receive(r group.Reply) {
	c.result.Store(&r)
	c.wake()
}

// Poll implements wire.Pending.
func (c *txnCommit) Poll(now time.Time) (wire.Reply, bool) {
	if r := c.added.Load(); r != nil && !c.began {
		if r.Err != nil {
			c.refuse(r.Err)
		} else {
			c.commit()
		}
	}
	r := c.result.Load()
	switch {
	case r != nil && r.Err != nil:
		c.answer(c.told(r.Err))
	case r != nil:
	case c.began && !now.Before(c.deadline):
		c.answer(kerr.CoordinatorNotAvailable) // the offsets may become durable yet; committing them again does no harm
	default:
		return wire.Reply{}, false
	}
	return wire.Reply{Body: wire.Message(c.resp)}, true
}

func (c *txnCommit) answer(err *kerr.Error) {
	for _, res := range c.accepted {
		res.ErrorCode = err.Code
	}
}

// Deadline implements wire.Pending.
func (c *txnCommit) Deadline() time.Time { return c.deadline }

// Cancel implements wire.Pending. A commit that began stands.
func (c *txnCommit) Cancel() {
	if c.away != nil && !c.began {
		c.away.release()
	}
}
