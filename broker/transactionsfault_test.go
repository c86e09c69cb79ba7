package broker

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// TestTransactionTimeout: a transaction that takes too long is aborted by itself, its producer hears of it and can go on.
func TestTransactionTimeout(t *testing.T) {
	b, c := txnBroker(t, t.TempDir(), "transaction.abort.timed.out.transaction.cleanup.interval.ms", "20")
	c.createTopic("out")
	p := &txnClient{client: c, id: "t"}
	r := idRequest(&p.id, -1, -1)
	r.TransactionTimeoutMillis = 50
	resp := ask[*kmsg.InitProducerIDResponse](c, 4, r)
	p.who = batch.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
	if got := p.add("out", 0); got != 0 {
		t.Fatalf("add: error %d", got)
	}
	if got := p.write(9, "out", 0, "a"); got != 0 {
		t.Fatalf("write: error %d", got)
	}
	waitFor(t, func() bool { return b.stable("out", 0) == 2 })
	p.who.Sequence++
	if got := p.write(9, "out", 0, "b"); got != kerr.InvalidProducerEpoch.Code {
		t.Errorf("write after the timeout: error %d", got)
	}
	if got := p.end(true); got != kerr.ProducerFenced.Code {
		t.Errorf("commit after the timeout: error %d", got)
	}
	again := idRequest(&p.id, p.who.ID, p.who.Epoch)
	again.TransactionTimeoutMillis = 60_000
	if got := ask[*kmsg.InitProducerIDResponse](c, 4, again); got.ErrorCode != 0 || got.ProducerEpoch != 1 {
		t.Errorf("going on after the timeout: %+v", got)
	}
	if got := c.committedValues("out", 0); got != nil {
		t.Errorf("a reader gets %v", got)
	}
}

// TestTransactionsComeBack: what is open stays open over a clean stop and a kill, what was decided is finished.
func TestTransactionsComeBack(t *testing.T) {
	for name, stop := range map[string]func(*testBroker){"stop": (*testBroker).stopClean, "kill": (*testBroker).abandon} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, c := txnBroker(t, dir)
			c.createTopic("out")
			p := c.initTxn("t", true)
			if got := p.write(12, "out", 0, "a"); got != 0 {
				t.Fatalf("write: error %d", got)
			}
			if got := p.commitOffset(5, "g", "out", 5); got != 0 {
				t.Fatalf("offset: error %d", got)
			}
			stop(b)
			b, c = txnBroker(t, dir)
			p.client = c
			p.who.Sequence = 1
			waitFor(t, func() bool { return loaded(b) })
			f := fetchOffsetsRequest("g", "out", 0)
			f.RequireStable = true
			if got := ask[*kmsg.OffsetFetchResponse](c, 7, f).Topics[0].Partitions[0].ErrorCode; got != kerr.UnstableOffsetCommit.Code {
				t.Errorf("offset in the transaction: error %d", got)
			}
			if got := retried(t, func() int16 { return p.write(12, "out", 0, "b") }); got != 0 {
				t.Fatalf("write: error %d", got)
			}
			if got := b.stable("out", 0); got != 0 {
				t.Errorf("last stable offset is %d", got)
			}
			if got := p.end(true); got != 0 {
				t.Fatalf("end: error %d", got)
			}
			stop(b) // markers may not be written yet
			b, c = txnBroker(t, dir)
			waitFor(t, func() bool { // a marker may be there twice
				log := b.topics.name("out").partition(0).log
				return log.LastStable() >= 3 && log.LastStable() == log.EndOffset()
			})
			waitFor(t, func() bool { return c.fetchOne("g", "out").Offset == 5 })
			if got := fmt.Sprint(c.committedValues("out", 0)); got != "[a b]" {
				t.Errorf("a reader gets %v", got)
			}
		})
	}
}

// TestTransactionOnFullDisk: nothing of what is refused happened, epochs do not run out, and all goes on when there is room.
func TestTransactionOnFullDisk(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), quickGroups("transaction.state.log.num.partitions", "1")...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.findTxnCoordinator("t")
	c.createTopic("out")
	p := c.initTxn("t", true)
	full := func(pattern string, during func()) {
		room := faults.Add(faultfs.Rule{Kind: faultfs.Write, Path: pattern, Err: syscall.ENOSPC})
		during()
		room()
	}
	full("*.log", func() {
		if got := p.write(12, "out", 0, "a"); got != kerr.NotEnoughReplicas.Code {
			t.Errorf("write: error %d", got)
		}
		r := idRequest(&p.id, -1, -1)
		r.TransactionTimeoutMillis = 60_000
		for range 3 {
			if got := ask[*kmsg.InitProducerIDResponse](c, 4, r); got.ErrorCode != kerr.NotCoordinator.Code {
				t.Errorf("init: %+v", got)
			}
		}
	})
	if got := p.write(12, "out", 0, "a"); got != 0 {
		t.Fatalf("write with room again: error %d", got)
	}
	full("*.log", func() {
		if got := p.end(true); got != kerr.NotCoordinator.Code {
			t.Errorf("end: error %d", got)
		}
	})
	epoch := p.who.Epoch
	if got := p.end(true); got != 0 || p.who.Epoch != epoch+1 {
		t.Fatalf("end with room again: error %d, epoch %d after %d", got, p.who.Epoch, epoch)
	}
	waitFor(t, func() bool { return b.stable("out", 0) == 2 })
}

// TestMarkerOnFullDisk: a decision stands, its marker is written when there is room.
func TestMarkerOnFullDisk(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), quickGroups("transaction.state.log.num.partitions", "1")...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.findTxnCoordinator("t")
	c.createTopic("out")
	p := c.initTxn("t", true)
	if got := p.write(12, "out", 0, "a"); got != 0 {
		t.Fatalf("write: error %d", got)
	}
	tried := make(chan struct{}, 100)
	room := faults.Add(faultfs.Rule{Kind: faultfs.Write, Path: "/out-0/0000", Err: syscall.ENOSPC, Entered: tried})
	if got := p.end(true); got != 0 {
		t.Fatalf("end: error %d", got)
	}
	<-tried
	<-tried
	if got := b.stable("out", 0); got != 0 {
		t.Errorf("last stable offset is %d without a marker", got)
	}
	if got := p.write(12, "out", 0, "b"); got != kerr.ConcurrentTransactions.Code {
		t.Errorf("next transaction: error %d", got)
	}
	room()
	waitFor(t, func() bool { return b.stable("out", 0) == 2 })
}

// TestDeletedTopicInTransaction: markers to a topic that is gone are given up, the rest of the transaction ends.
func TestDeletedTopicInTransaction(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	c.createTopic("out")
	c.createTopic("gone")
	p := c.initTxn("t", true)
	for _, topic := range []string{"out", "gone"} {
		if got := p.write(12, topic, 0, "a"); got != 0 {
			t.Fatalf("write: error %d", got)
		}
	}
	if err := b.deleteTopics(context.Background(), []*topic{b.topics.name("gone")}); err != nil {
		t.Fatal(err)
	}
	if got := p.end(true); got != 0 {
		t.Fatalf("end: error %d", got)
	}
	waitFor(t, func() bool { return b.stable("out", 0) == 2 })
	if got := retried(t, func() int16 { return p.write(12, "out", 0, "b") }); got != 0 {
		t.Errorf("next transaction: error %d", got)
	}
}

// TestTransactionsLoading: while a partition of __transaction_state is read, every answer is one that clients retry on.
func TestTransactionsLoading(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	c.createTopic("out")
	p := c.initTxn("t", true)
	for _, part := range b.txns.all() {
		part.state.Store(stateLoading)
	}
	loading := kerr.CoordinatorLoadInProgress.Code
	r := idRequest(&p.id, -1, -1)
	r.TransactionTimeoutMillis = 1000
	e := kmsg.NewPtrEndTxnRequest()
	e.TransactionalID = p.id
	a := kmsg.NewPtrAddOffsetsToTxnRequest()
	a.TransactionalID, a.Group = p.id, "g"
	d := kmsg.NewPtrDescribeTransactionsRequest()
	d.TransactionalIDs = []string{p.id}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.Topics = p.id, []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "out", Partitions: []int32{0}}}
	for what, got := range map[string]int16{
		"init":           ask[*kmsg.InitProducerIDResponse](c, 4, r).ErrorCode,
		"end":            ask[*kmsg.EndTxnResponse](c, 5, e).ErrorCode,
		"add":            ask[*kmsg.AddPartitionsToTxnResponse](c, 3, add).Topics[0].Partitions[0].ErrorCode,
		"add offsets":    ask[*kmsg.AddOffsetsToTxnResponse](c, 3, a).ErrorCode,
		"describe":       ask[*kmsg.DescribeTransactionsResponse](c, 0, d).TransactionStates[0].ErrorCode,
		"list":           ask[*kmsg.ListTransactionsResponse](c, 2, kmsg.NewPtrListTransactionsRequest()).ErrorCode,
		"offset commit":  p.commitOffset(5, "g", "out", 1),
		"offset commit2": p.commitOffset(3, "g", "out", 1),
	} {
		if got != loading {
			t.Errorf("%s: error %d", what, got)
		}
	}
	if got := p.commitOffset(1, "g", "out", 1); got != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("offset commit v1: error %d", got)
	}
	for _, version := range []int16{9, 11, 12} {
		if got := p.write(version, "out", 0, "a"); got != kerr.NotEnoughReplicas.Code {
			t.Errorf("write v%d: error %d", version, got)
		}
	}
}

// TestTransactionalProduceRefusals: batches that say they are of a transaction and are not.
func TestTransactionalProduceRefusals(t *testing.T) {
	b, c := txnBroker(t, t.TempDir(), "num.partitions", "2")
	c.createTopic("out")
	p, q := c.initTxn("t", false), c.initTxn("u", false)
	if p.add("out", 0) != 0 || q.add("out", 1) != 0 {
		t.Fatal("partitions were not added")
	}
	one := func(x *txnClient, partition int32) *kmsg.ProduceRequest {
		var w batch.Builder
		w.Reset(batch.Options{LeaderEpoch: -1, Producer: &x.who, Transactional: true})
		w.Append(1, nil, []byte("a"))
		raw, err := w.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := produceRequest("out", partition, -1, raw)
		r.TransactionID = &x.id
		return r
	}
	r := one(p, 0)
	r.TransactionID = nil
	if got := ask[*kmsg.ProduceResponse](c, 9, r).Topics[0].Partitions[0].ErrorCode; got != kerr.TransactionalIDAuthorizationFailed.Code {
		t.Errorf("without an id: error %d", got)
	}
	for _, version := range []int16{9, 12} {
		r, other := one(p, 0), one(q, 1)
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, other.Topics[0].Partitions...)
		for _, got := range ask[*kmsg.ProduceResponse](c, version, r).Topics[0].Partitions {
			if got.ErrorCode != kerr.InvalidProducerIDMapping.Code {
				t.Errorf("v%d, of two producers: error %d", version, got.ErrorCode)
			}
		}
	}
	stranger := one(q, 1)
	stranger.TransactionID = &p.id
	if got := ask[*kmsg.ProduceResponse](c, 9, stranger).Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("of another id: error %d", got)
	}
	if got := b.topics.name("out").partition(0).log.EndOffset(); got != 0 {
		t.Errorf("log end is %d", got)
	}
}

// TestWithoutVerification: with transaction.partition.verification.enable=false old clients may write to any partition, as in Kafka.
func TestWithoutVerification(t *testing.T) {
	_, c := txnBroker(t, t.TempDir(), "transaction.partition.verification.enable", "false")
	c.createTopic("out")
	p := &txnClient{client: c, id: "nobody", who: batch.Producer{ID: 7}}
	if got := p.write(9, "out", 0, "a"); got != 0 {
		t.Errorf("write: error %d", got)
	}
	if got := p.write(12, "out", 0, "a"); got != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("v12 write: error %d", got)
	}
}
