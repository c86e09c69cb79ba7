package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

func epochRequest(topic string, partition, current, epoch int32) *kmsg.OffsetForLeaderEpochRequest {
	r := kmsg.NewPtrOffsetForLeaderEpochRequest()
	rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = partition, current, epoch
	rt.Partitions = append(rt.Partitions, rp)
	r.Topics = append(r.Topics, rt)
	return r
}

// epochEnd asks at a version and shows error, epoch and end.
func (c *client) epochEnd(version int16, r *kmsg.OffsetForLeaderEpochRequest) string {
	c.t.Helper()
	got := ask[*kmsg.OffsetForLeaderEpochResponse](c, version, r).Topics[0].Partitions[0]
	return fmt.Sprint(got.ErrorCode, got.LeaderEpoch, got.EndOffset)
}

// afterCrash stops a broker and starts it again as after an unclean stop.
func afterCrash(t *testing.T, b *testBroker, dir string) *testBroker {
	t.Helper()
	b.stopClean()
	if err := os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Fatal(err)
	}
	return startBroker(t, dir)
}

// epochsAtWork makes topic "a" with ten records in each of the epochs 0, 2 and 5.
func epochsAtWork(t *testing.T) *testBroker {
	t.Helper()
	dir := t.TempDir()
	b := startBroker(t, dir)
	b.dial().create("a", 1)
	for epoch := range 6 {
		if epoch > 0 {
			b = afterCrash(t, b, dir)
		}
		if epoch != 0 && epoch != 2 && epoch != 5 {
			continue
		}
		c := b.dial()
		for i := range 10 {
			if got := c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", int64(i)})); got.ErrorCode != 0 {
				t.Fatalf("produce: error %d", got.ErrorCode)
			}
		}
	}
	return b
}

func TestEpochEnds(t *testing.T) {
	b := epochsAtWork(t)
	c := b.dial()
	want := map[int32]string{-1: "0 -1 -1", 0: "0 0 10", 1: "0 0 10", 2: "0 2 20", 3: "0 2 20", 4: "0 2 20", 5: "0 5 30", 6: "0 -1 -1", 1 << 30: "0 -1 -1"}
	for epoch, want := range want {
		for v := int16(1); v <= 4; v++ {
			if got := c.epochEnd(v, epochRequest("a", 0, -1, epoch)); got != want {
				t.Errorf("v%d epoch %d: got %s, want %s", v, epoch, got, want)
			}
		}
	}
	if got := c.epochEnd(0, epochRequest("a", 0, -1, 3)); got != "0 -1 20" { // v0 has no epoch in the answer
		t.Errorf("v0: %s", got)
	}
	fenced := map[int32]string{4: fmt.Sprint(kerr.FencedLeaderEpoch.Code, -1, -1), 5: "0 2 20", 6: fmt.Sprint(kerr.UnknownLeaderEpoch.Code, -1, -1)}
	for current, want := range fenced {
		if got := c.epochEnd(2, epochRequest("a", 0, current, 3)); got != want {
			t.Errorf("current epoch %d: got %s, want %s", current, got, want)
		}
	}
	unknown := fmt.Sprint(kerr.UnknownTopicOrPartition.Code, -1, -1)
	for v := int16(0); v <= 4; v++ {
		if got := c.epochEnd(v, epochRequest("a", 9, -1, 0)); got != unknown {
			t.Errorf("v%d unknown partition: %s", v, got)
		}
		if got := c.epochEnd(v, epochRequest("b", 0, -1, 0)); got != unknown {
			t.Errorf("v%d unknown topic: %s", v, got)
		}
	}

	// The earliest offset has the epoch that it was written under, also when what was before is gone.
	for _, tt := range []struct {
		start int64
		want  string
	}{{0, "0 -1 0 0"}, {12, "0 -1 12 2"}, {25, "0 -1 25 5"}, {30, "0 -1 30 5"}} {
		if got := trimmed(t, b, tt.start).listed(c, timeEarliest); got != tt.want {
			t.Errorf("earliest after trimming to %d is %s, want %s", tt.start, got, tt.want)
		}
	}
}

func TestEpochEndsAfterTrimming(t *testing.T) {
	b := epochsAtWork(t)
	trimmed(t, b, 12)
	c := b.dial()
	for epoch, want := range map[int32]string{0: "0 0 12", 1: "0 1 12", 2: "0 2 20", 5: "0 5 30"} {
		if got := c.epochEnd(4, epochRequest("a", 0, -1, epoch)); got != want {
			t.Errorf("epoch %d: got %s, want %s", epoch, got, want)
		}
	}
}

func TestEpochOfAnEmptyLog(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	b.dial().create("a", 1)
	b = afterCrash(t, b, dir)
	c := b.dial()
	if got := c.epochEnd(4, epochRequest("a", 0, 1, 1)); got != "0 1 0" {
		t.Errorf("epoch 1 of an empty log: %s", got)
	}
	if got := b.listed(c, timeEarliest); got != "0 -1 0 1" {
		t.Errorf("earliest of an empty log: %s", got)
	}
}
