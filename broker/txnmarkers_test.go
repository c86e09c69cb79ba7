package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// inTransaction appends one record of a transaction, past the checks of Produce, and returns its offset.
func (b *testBroker) inTransaction(topic string, id int64, sequence int32, value string) int64 {
	b.t.Helper()
	var w batch.Builder
	w.Reset(batch.Options{LeaderEpoch: -1, Producer: &batch.Producer{ID: id, Sequence: sequence}, Transactional: true})
	w.Append(nowMillis(), nil, []byte(value))
	raw, err := w.Finish(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	h, err := batch.ReadHeader(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	p := b.topics.name(topic).partition(0)
	appended, err := p.log.Append(raw, h, p.epoch())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := p.log.Flush(); err != nil {
		b.t.Fatal(err)
	}
	return appended.BaseOffset
}

// markerRequest asks for one marker in partition 0 of a topic.
func markerRequest(topic string, id int64, epoch int16, coordinator int32, commit bool) *kmsg.WriteTxnMarkersRequest {
	r := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch, m.Committed = id, epoch, coordinator, commit
	m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: []int32{0}}}
	r.Markers = append(r.Markers, m)
	return r
}

// mark writes one marker and returns its error code.
func (c *client) mark(topic string, id int64, commit bool) int16 {
	c.t.Helper()
	resp := ask[*kmsg.WriteTxnMarkersResponse](c, 1, markerRequest(topic, id, 0, 0, commit))
	return resp.Markers[0].Topics[0].Partitions[0].ErrorCode
}

// fetchCommitted reads one partition as a read_committed consumer.
func (c *client) fetchCommitted(version int16, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	r := fetchRequest("txn", 0, offset, 0)
	r.IsolationLevel = 1
	return ask[*kmsg.FetchResponse](c, version, r).Topics[0].Partitions[0]
}

// TestFetchTransactions: a read_committed reader gets what is decided, and what of it was aborted; the others get all.
func TestFetchTransactions(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("txn")
	b.inTransaction("txn", 1, 0, "aborted")
	b.inTransaction("txn", 2, 0, "committed")
	c.produce("txn", 0, batchOf(t, batch.None, record{"k", "plain", nowMillis()}))
	if got := c.fetchCommitted(4, 0); len(got.RecordBatches) != 0 || got.LastStableOffset != 0 || got.HighWatermark != 3 || got.AbortedTransactions == nil {
		t.Fatalf("before any marker: %+v", got)
	}
	if code := c.mark("txn", 1, false); code != 0 {
		t.Fatalf("abort: error %d", code)
	}
	b.inTransaction("txn", 3, 0, "open")
	for version := int16(4); version <= 12; version++ {
		got := c.fetchCommitted(version, 0)
		if v := values(t, got.RecordBatches, 0); !slices.Equal(v, []string{"aborted"}) || got.LastStableOffset != 1 || got.HighWatermark != 5 {
			t.Errorf("v%d: records %q, last stable %d, high watermark %d", version, v, got.LastStableOffset, got.HighWatermark)
		}
		if a := got.AbortedTransactions; len(a) != 1 || a[0].ProducerID != 1 || a[0].FirstOffset != 0 {
			t.Errorf("v%d: aborted transactions %+v", version, a)
		}
	}
	if got := c.fetch("txn", 0, 0, 0); len(values(t, got.RecordBatches, 0)) != 5 || got.AbortedTransactions != nil || got.LastStableOffset != 1 {
		t.Errorf("read_uncommitted: %+v", got)
	}
	if code := c.mark("txn", 2, true); code != 0 {
		t.Fatalf("commit: error %d", code)
	}
	got := c.fetchCommitted(12, 1)
	if v := values(t, got.RecordBatches, 1); len(v) != 3 || got.LastStableOffset != 4 || len(got.AbortedTransactions) != 1 {
		t.Errorf("after the commit: records %q, last stable %d, aborted %+v", v, got.LastStableOffset, got.AbortedTransactions)
	}
	checkLatest(c, 4, 6)
}

// checkLatest compares ListOffsets with what consumers of both kinds can read.
func checkLatest(c *client, committed, uncommitted int64) {
	c.t.Helper()
	for level, want := range []int64{uncommitted, committed} {
		r := kmsg.NewPtrListOffsetsRequest()
		r.ReplicaID, r.IsolationLevel = -1, int8(level)
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp, p.CurrentLeaderEpoch = -1, -1
		r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "txn", Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		got := ask[*kmsg.ListOffsetsResponse](c, 5, r).Topics[0].Partitions[0]
		if got.Offset != want || got.ErrorCode != 0 {
			c.t.Errorf("latest offset at isolation level %d is %d, error %d, want %d", level, got.Offset, got.ErrorCode, want)
		}
	}
}

// TestFetchWaitsForMarkers: a parked read_committed fetch is woken when the last stable offset moves, not by records of open transactions.
func TestFetchWaitsForMarkers(t *testing.T) {
	b := startBroker(t, t.TempDir())
	producer, consumer := b.dial(), b.dial()
	producer.createTopic("txn")
	offset := int64(0)
	for i := range 10 {
		r := fetchRequest("txn", 0, offset, wait)
		r.IsolationLevel = 1
		r.SetVersion(12)
		consumer.send(r)
		at := b.inTransaction("txn", 1, int32(i), fmt.Sprint(i))
		if code := producer.mark("txn", 1, i%2 == 0); code != 0 {
			t.Fatalf("marker: error %d", code)
		}
		got := consumer.receive(r, consumer.next).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if v := values(t, got.RecordBatches, offset); len(v) == 0 || v[0] != fmt.Sprint(i) || len(got.AbortedTransactions) != i%2 {
			t.Fatalf("round %d from %d: records %q, aborted %+v", i, offset, v, got.AbortedTransactions)
		}
		offset = at + 2
	}
}

// TestFetchSessionOfMarkers: an incremental read_committed fetch names a partition whose last stable offset moved.
func TestFetchSessionOfMarkers(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("txn")
	b.inTransaction("txn", 1, 0, "first")
	r := fetchRequest("txn", 0, 0, 0)
	r.IsolationLevel, r.SessionEpoch = 1, 0
	full := ask[*kmsg.FetchResponse](c, 12, r)
	if full.SessionID == 0 || len(full.Topics[0].Partitions[0].RecordBatches) != 0 {
		t.Fatalf("full fetch: %+v", full)
	}
	if code := c.mark("txn", 1, false); code != 0 {
		t.Fatalf("abort: error %d", code)
	}
	next := kmsg.NewPtrFetchRequest()
	next.SessionID, next.SessionEpoch, next.IsolationLevel, next.MaxBytes = full.SessionID, 1, 1, 1<<20
	resp := ask[*kmsg.FetchResponse](c, 12, next)
	if len(resp.Topics) != 1 || resp.Topics[0].Partitions[0].LastStableOffset != 2 || len(resp.Topics[0].Partitions[0].AbortedTransactions) != 1 {
		t.Fatalf("after the abort: %+v", resp)
	}
}

func TestWriteTxnMarkers(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("txn")
	for _, step := range []struct {
		name        string
		topic       string
		id          int64
		epoch       int16
		coordinator int32
		version     int8
		want        int16
	}{
		{"no transaction is open", "txn", 1, 3, 5, 0, 0},
		{"the same again", "txn", 1, 3, 5, 0, 0},
		{"older epoch", "txn", 1, 2, 5, 0, kerr.InvalidProducerEpoch.Code},
		{"older coordinator", "txn", 1, 3, 4, 0, kerr.TransactionCoordinatorFenced.Code},
		{"version 2, newer epoch", "txn", 1, 4, 5, 2, 0},
		{"version 2, repeated", "txn", 1, 4, 5, 2, 0},
		{"no producer", "txn", -1, 0, 5, 0, kerr.InvalidProducerEpoch.Code},
		{"no topic", "absent", 1, 9, 9, 0, kerr.UnknownTopicOrPartition.Code},
	} {
		for version := int16(0); version <= 2; version++ {
			if version < 2 && step.version >= 2 {
				continue
			}
			r := markerRequest(step.topic, step.id, step.epoch, step.coordinator, true)
			r.Markers[0].TransactionVersion = step.version
			resp := ask[*kmsg.WriteTxnMarkersResponse](c, version, r)
			if got := resp.Markers[0].Topics[0].Partitions[0].ErrorCode; got != step.want || resp.Markers[0].ProducerID != step.id {
				t.Errorf("%s, v%d: error %d, want %d", step.name, version, got, step.want)
			}
		}
	}
	b.inTransaction("txn", 7, 0, "x")
	r := markerRequest("txn", 7, 0, 0, true)
	r.Markers[0].TransactionVersion = 2
	if got := ask[*kmsg.WriteTxnMarkersResponse](c, 2, r).Markers[0].Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidProducerEpoch.Code {
		t.Errorf("version 2 with the open transaction's epoch: error %d", got)
	}
	if l := b.topics.name("txn").partition(0).log; l.HighWatermark() != l.EndOffset() {
		t.Errorf("markers were answered at high watermark %d of %d", l.HighWatermark(), l.EndOffset())
	}
}

func TestDescribeProducers(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("txn")
	c.produce("txn", 0, producerBatch(t, batch.None, 5, 2, 0, record{"k", "v", 1234}, record{"k", "v", 1235}))
	b.inTransaction("txn", 6, 0, "hangs")
	ask := func(topic string, partition int32) kmsg.DescribeProducersResponseTopicPartition {
		t.Helper()
		r := kmsg.NewPtrDescribeProducersRequest()
		r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
		return ask[*kmsg.DescribeProducersResponse](c, 0, r).Topics[0].Partitions[0]
	}
	got := ask("txn", 0).ActiveProducers
	if len(got) != 2 || got[0].ProducerID != 5 || got[0].ProducerEpoch != 2 || got[0].LastSequence != 1 || got[0].LastTimestamp != 1235 ||
		got[0].CoordinatorEpoch != -1 || got[0].CurrentTxnStartOffset != -1 {
		t.Errorf("idempotent producer: %+v", got)
	}
	if got[1].ProducerID != 6 || got[1].CurrentTxnStartOffset != 2 {
		t.Errorf("transaction that hangs: %+v", got[1])
	}
	if resp := askMarker(c, 6, 3); resp != 0 {
		t.Fatalf("ending it: error %d", resp)
	}
	if got := ask("txn", 0).ActiveProducers[1]; got.CurrentTxnStartOffset != -1 || got.CoordinatorEpoch != 3 || got.LastSequence != 0 {
		t.Errorf("after it was ended: %+v", got)
	}
	for topic, want := range map[string]int16{"absent": kerr.UnknownTopicOrPartition.Code, "a b": kerr.InvalidTopicException.Code} {
		if got := ask(topic, 0); got.ErrorCode != want || got.ErrorMessage == nil {
			t.Errorf("topic %q: %+v, want error %d", topic, got, want)
		}
	}
	if got := ask("txn", 9); got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("unknown partition: %+v", got)
	}
}

// askMarker aborts a producer's transaction as a coordinator of an epoch.
func askMarker(c *client, id int64, coordinator int32) int16 {
	c.t.Helper()
	resp := ask[*kmsg.WriteTxnMarkersResponse](c, 1, markerRequest("txn", id, 0, coordinator, false))
	return resp.Markers[0].Topics[0].Partitions[0].ErrorCode
}

// TestTransactionFromZero: what the log does not know of a producer of transaction version 2 it cannot have missed, since every transaction begins
// an epoch; older ones may go on where they were.
func TestTransactionFromZero(t *testing.T) {
	_, c := txnBroker(t, t.TempDir())
	c.createTopic("zero")
	p := c.initTxn("zero-2", true)
	p.who.Sequence = 5
	if code := p.write(12, "zero", 0, "a"); code != kerr.OutOfOrderSequenceNumber.Code {
		t.Errorf("version 12 from sequence 5: error %d", code)
	}
	p.who.Sequence = 0
	if code := p.write(12, "zero", 0, "a"); code != 0 {
		t.Errorf("version 12 from sequence 0: error %d", code)
	}
	old := c.initTxn("zero-1", false)
	old.who.Sequence = 5
	if code := old.add("zero", 0); code != 0 {
		t.Fatalf("adding the partition: error %d", code)
	}
	if code := old.write(11, "zero", 0, "a"); code != 0 {
		t.Errorf("version 11 from sequence 5: error %d", code)
	}
}
