package broker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// TestClockJumpsBack: the wall clock goes back by a day under a running broker. Producing, waiting, searching by time and restarting go on.
func TestClockJumpsBack(t *testing.T) {
	var shift atomic.Int64
	dir := t.TempDir()
	start := func() *testBroker {
		b := newBroker(t, Config{Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }}, dir)
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.stopClean)
		return b
	}
	b := start()
	c, consumer := b.dial(), b.dial()
	c.createTopic("clock")
	before := nowMillis()
	id := int32(0)
	send := func() {
		t.Helper()
		ts := b.now().UnixMilli()
		if got := c.produce("clock", 0, producerBatch(t, batch.None, 5, 0, id, record{"k", "v", ts})); got.ErrorCode != 0 || got.BaseOffset != int64(id) {
			t.Fatalf("batch %d: error %d, offset %d", id, got.ErrorCode, got.BaseOffset)
		}
		id++
	}
	send()
	r := fetchRequest("clock", 0, 1, wait)
	r.SetVersion(12)
	consumer.send(r)
	shift.Store(-int64(24 * time.Hour))
	send()
	if n := len(consumer.receive(r, consumer.next).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches); n == 0 {
		t.Error("a parked fetch was not woken")
	}
	b.tick()
	lookup := kmsg.NewPtrListOffsetsRequest()
	lookup.ReplicaID = -1
	lookup.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "clock", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: before}}}}
	if got := ask[*kmsg.ListOffsetsResponse](c, 7, lookup).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.Offset != 0 {
		t.Errorf("search by time: %+v", got)
	}
	b.stopClean()
	b = start()
	c = b.dial()
	send()
	if got := c.fetch("clock", 0, 0, 0); len(values(t, got.RecordBatches, 0)) != 3 {
		t.Errorf("after a restart: %+v", got)
	}
}
