package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// txnClient is a raw transactional producer.
type txnClient struct {
	*client
	id  string
	who batch.Producer
	tv2 bool
}

func txnBroker(t *testing.T, dir string, settings ...string) (*testBroker, *client) {
	t.Helper()
	b := startBroker(t, dir, quickGroups(append([]string{"transaction.state.log.num.partitions", "4"}, settings...)...)...)
	c := b.dial()
	c.findTxnCoordinator("t")
	return b, c
}

func (c *client) findTxnCoordinator(id string) {
	c.t.Helper()
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = 1, id, []string{id}
	if got := ask[*kmsg.FindCoordinatorResponse](c, 4, r).Coordinators[0]; got.ErrorCode != 0 {
		c.t.Fatalf("coordinator: %+v", got)
	}
	r.CoordinatorType = 0
	if got := ask[*kmsg.FindCoordinatorResponse](c, 4, r).Coordinators[0]; got.ErrorCode != 0 {
		c.t.Fatalf("coordinator: %+v", got)
	}
}

// retried asks until the answer's code is not CONCURRENT_TRANSACTIONS.
func retried(t *testing.T, try func() int16) int16 {
	t.Helper()
	code := kerr.ConcurrentTransactions.Code
	waitFor(t, func() bool {
		code = try()
		return code != kerr.ConcurrentTransactions.Code && code != kerr.CoordinatorLoadInProgress.Code
	})
	return code
}

// initTxn takes the id for a producer, which it makes.
func (c *client) initTxn(id string, tv2 bool) *txnClient {
	c.t.Helper()
	p := &txnClient{client: c, id: id, tv2: tv2}
	r := idRequest(&id, -1, -1)
	r.TransactionTimeoutMillis = 60_000
	var resp *kmsg.InitProducerIDResponse
	if code := retried(c.t, func() int16 { resp = ask[*kmsg.InitProducerIDResponse](c, 4, r); return resp.ErrorCode }); code != 0 {
		c.t.Fatalf("init: error %d", code)
	}
	p.who = batch.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
	return p
}

// add puts a partition into the transaction.
func (p *txnClient) add(topic string, partition int32) int16 {
	p.t.Helper()
	return retried(p.t, func() int16 {
		r := kmsg.NewPtrAddPartitionsToTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch = p.id, p.who.ID, p.who.Epoch
		r.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
		return ask[*kmsg.AddPartitionsToTxnResponse](p.client, 3, r).Topics[0].Partitions[0].ErrorCode
	})
}

// write produces a batch of the transaction at a version, and returns the error.
func (p *txnClient) write(version int16, topic string, partition int32, values ...string) int16 {
	p.t.Helper()
	var w batch.Builder
	w.Reset(batch.Options{LeaderEpoch: -1, Producer: &p.who, Transactional: true})
	for _, v := range values {
		w.Append(1, nil, []byte(v))
	}
	b, err := w.Finish(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r := produceRequest(topic, partition, -1, b)
	r.TransactionID = &p.id
	return ask[*kmsg.ProduceResponse](p.client, version, r).Topics[0].Partitions[0].ErrorCode
}

// end commits or aborts.
func (p *txnClient) end(commit bool) int16 {
	p.t.Helper()
	version := int16(4)
	if p.tv2 {
		version = 5
	}
	return retried(p.t, func() int16 {
		r := kmsg.NewPtrEndTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = p.id, p.who.ID, p.who.Epoch, commit
		resp := ask[*kmsg.EndTxnResponse](p.client, version, r)
		if resp.ErrorCode == 0 && p.tv2 {
			p.who.ID, p.who.Epoch = resp.ProducerID, resp.ProducerEpoch
		}
		return resp.ErrorCode
	})
}

// commitOffset is a TxnOffsetCommit of one offset.
func (p *txnClient) commitOffset(version int16, group, topic string, offset int64) int16 {
	p.t.Helper()
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch, r.Generation = p.id, group, p.who.ID, p.who.Epoch, -1
	r.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: offset, LeaderEpoch: -1}}}}
	return ask[*kmsg.TxnOffsetCommitResponse](p.client, version, r).Topics[0].Partitions[0].ErrorCode
}

func (p *txnClient) addOffsets(group string) int16 {
	p.t.Helper()
	return retried(p.t, func() int16 {
		r := kmsg.NewPtrAddOffsetsToTxnRequest()
		r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = p.id, p.who.ID, p.who.Epoch, group
		return ask[*kmsg.AddOffsetsToTxnResponse](p.client, 3, r).ErrorCode
	})
}

// stable is the last stable offset of a partition.
func (b *testBroker) stable(topic string, partition int32) int64 {
	return b.topics.name(topic).partition(partition).log.LastStable()
}

// TestTransactionByHand: what a client of transaction version 0 sends for one transaction.
func TestTransactionByHand(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	c.createTopic("out")
	p := c.initTxn("t", false)
	if got := p.write(9, "out", 0, "early"); got != kerr.InvalidTxnState.Code {
		t.Errorf("write to a partition that is not in the transaction: error %d", got)
	}
	if got := p.write(11, "out", 0, "early"); got != kerr.TransactionAbortable.Code {
		t.Errorf("v11 write to a partition that is not in the transaction: error %d", got)
	}
	for round := range int64(3) {
		if got := p.add("out", 0); got != 0 {
			t.Fatalf("add: error %d", got)
		}
		if got := p.write(9, "out", 0, "a", "b"); got != 0 {
			t.Fatalf("write: error %d", got)
		}
		p.who.Sequence += 2
		if got := b.stable("out", 0); got != 3*round {
			t.Errorf("last stable offset is %d before the end", got)
		}
		if got := p.addOffsets("g"); got != 0 {
			t.Fatalf("add offsets: error %d", got)
		}
		if got := p.commitOffset(3, "g", "out", round+1); got != 0 {
			t.Fatalf("offset commit: error %d", got)
		}
		if got := c.fetchOne("g", "out").Offset; got != round-1 && !(round == 0 && got == -1) && got != round {
			t.Errorf("offset is %d before the end", got)
		}
		if got := p.end(true); got != 0 {
			t.Fatalf("end: error %d", got)
		}
		waitFor(t, func() bool { return b.stable("out", 0) == 3*(round+1) })
		waitFor(t, func() bool { return c.fetchOne("g", "out").Offset == round+1 })
	}
}

// TestTransactionByHandV2: a client of transaction version 2 asks for nothing before it writes, and has another epoch after each end.
func TestTransactionByHandV2(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	c.createTopic("out")
	p := c.initTxn("t", true)
	for round := range int64(6) {
		begin := time.Now()
		epoch := p.who.Epoch
		if got := p.write(12, "out", 0, "a"); got != 0 {
			t.Fatalf("write: error %d", got)
		}
		if got := p.commitOffset(5, "g", "out", round); got != 0 {
			t.Fatalf("offset commit: error %d", got)
		}
		if got := p.end(round%2 == 0); got != 0 {
			t.Fatalf("end: error %d", got)
		}
		if p.who.Epoch != epoch+1 {
			t.Errorf("epoch is %d after %d", p.who.Epoch, epoch)
		}
		t.Log(time.Since(begin))
	}
	waitFor(t, func() bool { return b.stable("out", 0) == 12 })
	waitFor(t, func() bool { return c.fetchOne("g", "out").Offset == 4 })
}
