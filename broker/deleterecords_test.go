package broker

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/vfs/faultfs"
)

func deleteRecordsRequest(topic string, partition int32, offsets ...int64) *kmsg.DeleteRecordsRequest {
	r := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	for _, offset := range offsets {
		rt.Partitions = append(rt.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: partition, Offset: offset})
	}
	r.Topics = append(r.Topics, rt)
	return r
}

// deleted shows errors and low watermarks.
func (c *client) deleted(version int16, r *kmsg.DeleteRecordsRequest) string {
	c.t.Helper()
	out := ""
	for _, rt := range ask[*kmsg.DeleteRecordsResponse](c, version, r).Topics {
		for _, p := range rt.Partitions {
			out += fmt.Sprint(p.ErrorCode, p.LowWatermark, " ")
		}
	}
	return out
}

func TestDeleteRecords(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	aged(t, b, c, "a", "retention.ms", "-1")
	aged(t, b, c, "compacted", "cleanup.policy", "compact")
	aged(t, b, c, "both", "cleanup.policy", "compact,delete", "retention.ms", "-1")
	aged(t, b, c, "kept", "cleanup.policy", "")
	c.findCoordinator("g")
	code := func(k *kerr.Error) string { return fmt.Sprint(k.Code, -1, " ") }
	for i, tc := range []struct {
		topic     string
		partition int32
		offsets   []int64
		want      string
	}{
		{"a", 0, []int64{0}, "0 0 "},
		{"a", 0, []int64{2, 1, 3}, "0 3 "}, // of a partition that is there twice the last one counts
		{"a", 0, []int64{6}, code(kerr.OffsetOutOfRange)},
		{"a", 0, []int64{-2}, code(kerr.OffsetOutOfRange)},
		{"a", 0, []int64{-1 << 63}, code(kerr.OffsetOutOfRange)},
		{"a", 0, []int64{4}, "0 4 "},
		{"a", 1, []int64{1}, code(kerr.UnknownTopicOrPartition)},
		{"a", -1, []int64{1}, code(kerr.UnknownTopicOrPartition)},
		{"nope", 0, []int64{1}, code(kerr.UnknownTopicOrPartition)},
		{"compacted", 0, []int64{1}, code(kerr.PolicyViolation)},
		{"compacted", 0, []int64{99}, code(kerr.PolicyViolation)},
		{"kept", 0, []int64{1}, code(kerr.PolicyViolation)},
		{"both", 0, []int64{-1}, "0 5 "},
		{offsetsTopic, 0, []int64{0}, code(kerr.InvalidTopicException)},
	} {
		if got := c.deleted(int16(i%3), deleteRecordsRequest(tc.topic, tc.partition, tc.offsets...)); got != tc.want {
			t.Errorf("%s-%d %v: %s, want %s", tc.topic, tc.partition, tc.offsets, got, tc.want)
		}
	}
	if got := b.listed(c, timeEarliest); got != "0 -1 4 0" {
		t.Errorf("log start is %s", got)
	}
	if got := c.fetch("a", 0, 3, 0); got.ErrorCode != kerr.OffsetOutOfRange.Code {
		t.Errorf("fetching what was deleted: error %d", got.ErrorCode)
	}
	b.abandon() // as killed right after the answer
	b = startBroker(t, dir)
	c = b.dial()
	if got := b.listed(c, timeEarliest); got != "0 -1 4 1" && got != "0 -1 4 0" {
		t.Errorf("after a kill the log start is %s", got)
	}
	if got := c.produce("both", 0, batchOf(t, batch.None, record{"k", "v", time.Now().UnixMilli()})); got.BaseOffset != 5 {
		t.Errorf("after a kill the next offset is %d", got.BaseOffset)
	}
	b.retain(t.Context())
	if n := files(t, b, "a-0", ".log"); n != 1 {
		t.Errorf("%d segments are left", n)
	}
}

// TestDeleteRecordsInOneSegment: the start may lie inside of a segment, and a consumer begins there.
func TestDeleteRecordsInOneSegment(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.create("a", 1)
	for i := range 4 {
		c.produce("a", 0, batchOf(t, batch.None, record{"k", fmt.Sprint("v", i), nowMillis()}))
	}
	if got := c.deleted(2, deleteRecordsRequest("a", 0, 2)); got != "0 2 " {
		t.Fatal(got)
	}
	b.abandon()
	b = startBroker(t, dir)
	c = b.dial()
	if got := c.fetch("a", 0, 2, 0); fmt.Sprint(values(t, got.RecordBatches, 2)) != "[v2 v3]" || got.LogStartOffset != 2 {
		t.Errorf("%v, log start %d", values(t, got.RecordBatches, 2), got.LogStartOffset)
	}
}

// TestDeleteRecordsNotDurable: no success is answered when the start cannot be written.
func TestDeleteRecordsNotDurable(t *testing.T) {
	b, faults := faultyBroker(t)
	c := b.dial()
	aged(t, b, c, "a", "retention.ms", "-1")
	for _, kind := range []faultfs.Kind{faultfs.Create, faultfs.Write, faultfs.Sync, faultfs.Rename, faultfs.SyncDir} {
		remove := faults.Add(faultfs.Rule{Kind: kind, Err: syscall.EIO})
		start := b.topics.name("a").partition(0).log.StartOffset()
		got := c.deleted(2, deleteRecordsRequest("a", 0, start+1))
		remove()
		if want := fmt.Sprint(kerr.KafkaStorageError.Code, -1, " "); got != want {
			t.Errorf("%s fails: %s, want %s", kind, got, want)
		}
	}
}
