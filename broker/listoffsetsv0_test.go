package broker

import (
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// TestListOffsetsV0: the starts of segments, newest first, after the log end offset, cut to the number that was asked for.
func TestListOffsetsV0(t *testing.T) {
	b := startBroker(t, t.TempDir(), "log.segment.bytes", "1048576")
	c := b.dial()
	c.create("a", 1)
	c.create("empty", 1)
	for range 12 { // two batches of 400 kB fit a segment
		c.produce("a", 0, batchOf(t, batch.None, record{"k", string(make([]byte, 400_000)), nowMillis()}))
	}
	listed := func(topic string, timestamp int64, most int32) string {
		t.Helper()
		r := listRequest(topic, timestamp, 0)
		r.Topics[0].Partitions[0].MaxNumOffsets = most
		got := ask[*kmsg.ListOffsetsResponse](c, 0, r).Topics[0].Partitions[0]
		if got.ErrorCode != 0 {
			return kerr.ErrorForCode(got.ErrorCode).Error()[:20]
		}
		return fmt.Sprint(got.OldStyleOffsets)
	}
	for _, tc := range []struct {
		topic     string
		timestamp int64
		most      int32
		want      string
	}{
		{"a", timeLatest, 1, "[12]"},
		{"a", timeLatest, 3, "[12 10 8]"},
		{"a", timeLatest, 100, "[12 10 8 6 4 2 0]"},
		{"a", timeLatest, math.MaxInt32, "[12 10 8 6 4 2 0]"},
		{"a", timeLatest, 0, "[]"},
		{"a", timeLatest, -1, "[]"},
		{"a", timeEarliest, 1, "[0]"},
		{"a", timeEarliest, 5, "[0]"},
		{"a", timeEarliest, 0, "[]"},
		{"a", 0, 5, "[]"},
		{"a", math.MaxInt64, 2, "[12 10]"},
		{"a", nowMillis() + 3600_000, 2, "[12 10]"},
		{"a", nowMillis() - 3600_000, 2, "[]"},
		{"empty", timeLatest, 10, "[0]"},
		{"empty", timeEarliest, 10, "[0]"},
		{"absent", timeLatest, 10, kerr.UnknownTopicOrPartition.Error()[:20]},
	} {
		if got := listed(tc.topic, tc.timestamp, tc.most); got != tc.want {
			t.Errorf("%s, timestamp %d, at most %d: %s, want %s", tc.topic, tc.timestamp, tc.most, got, tc.want)
		}
	}
	trimmed(t, b, 5)
	if got := listed("a", timeLatest, 100); got != "[12 10 8 6 5]" {
		t.Errorf("after the start was moved: %s", got)
	}
	if got := listed("a", timeEarliest, 100); got != "[5]" {
		t.Errorf("earliest after the start was moved: %s", got)
	}
}
