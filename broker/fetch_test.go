package broker

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// wait is longer than any test takes: a fetch that lasts so long was not woken.
const wait = 25 * time.Second

func TestFetchRange(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("range")
	for i := range 5 {
		c.produce("range", 0, batchOf(t, batch.None, record{"k", fmt.Sprint(i), nowMillis()}))
	}
	for _, tc := range []struct {
		offset int64
		want   int16
		n      int
	}{{-1, kerr.OffsetOutOfRange.Code, 0}, {0, 0, 5}, {3, 0, 2}, {5, 0, 0}, {6, kerr.OffsetOutOfRange.Code, 0}} {
		got := c.fetch("range", 0, tc.offset, 0)
		if n := len(values(t, got.RecordBatches, tc.offset)); got.ErrorCode != tc.want || n != tc.n {
			t.Errorf("offset %d: error %d and %d records, want %d and %d", tc.offset, got.ErrorCode, n, tc.want, tc.n)
		}
		if got.ErrorCode != 0 && (got.HighWatermark != -1 || got.LogStartOffset != -1) {
			t.Errorf("offset %d: watermarks of an error are %d and %d", tc.offset, got.HighWatermark, got.LogStartOffset)
		}
	}
}

// TestFetchLongPoll: a parked fetch over two partitions is woken by either, and by the topic's deletion.
func TestFetchLongPoll(t *testing.T) {
	b := startBroker(t, t.TempDir(), "num.partitions", "2")
	producer, consumer := b.dial(), b.dial()
	producer.createTopic("poll")
	offsets := [2]int64{}
	for i := range 20 {
		r := fetchRequest("poll", 0, offsets[0], wait)
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, fetchRequest("poll", 1, offsets[1], wait).Topics[0].Partitions...)
		r.SetVersion(12)
		consumer.send(r)
		partition := int32(i % 2)
		if got := producer.produce("poll", partition, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != 0 {
			t.Fatal(got.ErrorCode)
		}
		resp := consumer.receive(r, consumer.next).(*kmsg.FetchResponse)
		if n := len(resp.Topics[0].Partitions[partition].RecordBatches); n == 0 {
			t.Fatalf("round %d: partition %d has no records: %+v", i, partition, resp.Topics)
		}
		offsets[partition]++
	}
}

func TestFetchMinBytes(t *testing.T) {
	b := startBroker(t, t.TempDir())
	producer, consumer := b.dial(), b.dial()
	producer.createTopic("min")
	one := batchOf(t, batch.None, record{"k", "v", nowMillis()})
	r := fetchRequest("min", 0, 0, wait)
	r.MinBytes = int32(3 * len(one))
	r.SetVersion(12)
	consumer.send(r)
	for range 3 {
		producer.produce("min", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	}
	resp := consumer.receive(r, consumer.next).(*kmsg.FetchResponse)
	if n := len(resp.Topics[0].Partitions[0].RecordBatches); n != 3*len(one) {
		t.Errorf("answer has %d bytes, want %d", n, 3*len(one))
	}
	// A partition at its own limit cannot give more: the answer does not wait.
	r = fetchRequest("min", 0, 0, wait)
	r.MinBytes = 1 << 19
	r.Topics[0].Partitions[0].PartitionMaxBytes = int32(len(one))
	began := time.Now()
	ask[*kmsg.FetchResponse](consumer, 12, r)
	if took := time.Since(began); took > wait/2 {
		t.Errorf("a fetch at the partition's limit took %v", took)
	}
}

// TestFetchLimits: the first batch comes whole over any limit, once a request.
func TestFetchLimits(t *testing.T) {
	c := startBroker(t, t.TempDir(), "num.partitions", "2").dial()
	c.createTopic("limits")
	big := string(make([]byte, 100_000))
	for partition := range int32(2) {
		c.produce("limits", partition, batchOf(t, batch.None, record{"k", big, nowMillis()}))
	}
	r := fetchRequest("limits", 0, 0, 0)
	r.MaxBytes = 1
	r.Topics[0].Partitions = append(r.Topics[0].Partitions, fetchRequest("limits", 1, 0, 0).Topics[0].Partitions...)
	r.Topics[0].Partitions[0].PartitionMaxBytes = 1
	resp := ask[*kmsg.FetchResponse](c, 12, r)
	first, second := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
	if got := values(t, first.RecordBatches, 0); len(got) != 1 {
		t.Errorf("first partition: %d whole records", len(got))
	}
	if len(second.RecordBatches) != 0 {
		t.Errorf("second partition: %d bytes, want none", len(second.RecordBatches))
	}
}

func TestFetchUnknown(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	if got := c.fetch("absent", 0, 0, wait); got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("by name: error %d", got.ErrorCode)
	}
	r := fetchRequest("", 0, 0, wait)
	r.Topics[0].TopicID = [16]byte{9}
	if got := ask[*kmsg.FetchResponse](c, 13, r).Topics[0].Partitions[0]; got.ErrorCode != kerr.UnknownTopicID.Code {
		t.Errorf("by id: error %d", got.ErrorCode)
	}
}

// TestFetchSession: an incremental fetch names only what has news.
func TestFetchSession(t *testing.T) {
	c := startBroker(t, t.TempDir(), "num.partitions", "2").dial()
	c.createTopic("session")
	full := fetchRequest("session", 0, 0, 0)
	full.SessionEpoch = 0
	full.Topics[0].Partitions = append(full.Topics[0].Partitions, fetchRequest("session", 1, 0, 0).Topics[0].Partitions...)
	resp := ask[*kmsg.FetchResponse](c, 12, full)
	if resp.SessionID == 0 || len(resp.Topics[0].Partitions) != 2 {
		t.Fatalf("full fetch: %+v", resp)
	}
	incremental := kmsg.NewPtrFetchRequest()
	incremental.SessionID, incremental.SessionEpoch = resp.SessionID, 1
	incremental.MaxBytes, incremental.MinBytes = 1<<20, 1
	if resp := ask[*kmsg.FetchResponse](c, 12, incremental); len(resp.Topics) != 0 || resp.SessionID != incremental.SessionID {
		t.Fatalf("without news: %+v", resp)
	}
	c.produce("session", 1, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	incremental.SessionEpoch, incremental.MaxWaitMillis = 2, int32(wait.Milliseconds())
	resp = ask[*kmsg.FetchResponse](c, 12, incremental)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].Partition != 1 {
		t.Fatalf("with news of partition 1: %+v", resp)
	}
	incremental.SessionEpoch = 9
	if resp := ask[*kmsg.FetchResponse](c, 12, incremental); resp.ErrorCode != kerr.InvalidFetchSessionEpoch.Code {
		t.Errorf("wrong epoch: error %d", resp.ErrorCode)
	}
}

func TestFetchEpochs(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("epochs")
	c.produce("epochs", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	for _, tc := range []struct {
		epoch int32
		want  int16
	}{{-1, 0}, {0, 0}, {5, kerr.UnknownLeaderEpoch.Code}} {
		r := fetchRequest("epochs", 0, 0, 0)
		r.Topics[0].Partitions[0].CurrentLeaderEpoch = tc.epoch
		if got := ask[*kmsg.FetchResponse](c, 12, r).Topics[0].Partitions[0].ErrorCode; got != tc.want {
			t.Errorf("epoch %d: error %d, want %d", tc.epoch, got, tc.want)
		}
	}
}

// TestFetchAnsweredAtStop: a parked fetch gets its answer when the broker stops.
func TestFetchAnsweredAtStop(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("stop")
	r := fetchRequest("stop", 0, 0, wait)
	r.SetVersion(12)
	c.send(r)
	parked := make(chan struct{})
	go func() {
		defer close(parked)
		b.stopClean()
	}()
	// Either the fetch was parked and is answered, or the stop came first and the connection ends: never a wait.
	c.conn.SetReadDeadline(time.Now().Add(wait / 2))
	if _, err := c.conn.Read(make([]byte, 1<<10)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a parked fetch outlives the broker's stop")
	}
	<-parked
}
