package broker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

func listRequest(topic string, timestamp int64, partitions ...int32) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	r.ReplicaID = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for _, p := range partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p, timestamp
		rt.Partitions = append(rt.Partitions, rp)
	}
	r.Topics = append(r.Topics, rt)
	return r
}

// listOffset shows error, timestamp, offset and epoch of the first partition.
func (c *client) listOffset(version int16, r *kmsg.ListOffsetsRequest) string {
	c.t.Helper()
	got := ask[*kmsg.ListOffsetsResponse](c, version, r).Topics[0].Partitions[0]
	return fmt.Sprint(got.ErrorCode, got.Timestamp, got.Offset, got.LeaderEpoch)
}

// listed asks for a timestamp in topic "a", partition 0.
func (b *testBroker) listed(c *client, timestamp int64) string {
	b.t.Helper()
	return c.listOffset(11, listRequest("a", timestamp, 0))
}

// trimmed moves the log start of "a", partition 0.
func trimmed(t *testing.T, b *testBroker, start int64) *testBroker {
	t.Helper()
	if err := b.topics.name("a").partition(0).log.AdvanceStart(start); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestListOffsetsAtEveryVersion(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	for _, ts := range []int64{2, 4, 9, 8} {
		c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", ts}))
	}
	const unsupported, none = "35 -1 -1 -1", "0 -1 -1 -1"
	tests := []struct {
		timestamp int64
		since     int16 // before it is not known
		want      string
	}{
		{timeLatest, 1, "0 -1 4 0"},
		{timeEarliest, 1, "0 -1 0 0"},
		{timeMax, 7, "0 9 2 0"},
		{timeEarliestLocal, 8, "0 -1 0 0"},
		{timeLatestTiered, 9, none},
		{timePendingUpload, 11, none},
		{-7, 12, unsupported},
		{-1 << 63, 12, unsupported},
		{0, 1, "0 2 0 0"},
		{2, 1, "0 2 0 0"},
		{3, 1, "0 4 1 0"},
		{5, 1, "0 9 2 0"},
		{9, 1, "0 9 2 0"},
		{10, 1, none},
		{1<<63 - 1, 1, none},
	}
	for v := int16(1); v <= 11; v++ {
		for _, tt := range tests {
			want := tt.want
			if v < tt.since {
				want = unsupported
			}
			if v < 4 {
				want = want[:strings.LastIndexByte(want, ' ')] + " -1" // there is no epoch in the answer
			}
			if got := c.listOffset(v, listRequest("a", tt.timestamp, 0)); got != want {
				t.Errorf("v%d timestamp %d: got %s, want %s", v, tt.timestamp, got, want)
			}
		}
	}
}

func TestListOffsetsErrors(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 2)
	codes := func(version int16, r *kmsg.ListOffsetsRequest) (out []int16) {
		for _, p := range ask[*kmsg.ListOffsetsResponse](c, version, r).Topics[0].Partitions {
			if p.Offset != -1 && p.ErrorCode != 0 {
				t.Errorf("error %d with offset %d", p.ErrorCode, p.Offset)
			}
			out = append(out, p.ErrorCode)
		}
		return out
	}
	epoch := listRequest("a", timeLatest, 0, 1)
	epoch.Topics[0].Partitions[0].CurrentLeaderEpoch = 3
	for name, tt := range map[string]struct {
		r    *kmsg.ListOffsetsRequest
		want []int16
	}{
		"twice":                          {listRequest("a", timeLatest, 0, 1, 0), []int16{42, 0, 42}},
		"twice, and a bad timestamp":     {listRequest("a", -9, 0, 1, 0), []int16{42, 35, 42}},
		"unknown topic":                  {listRequest("b", timeLatest, 0), []int16{3}},
		"unknown topic, bad timestamp":   {listRequest("b", -9, 0), []int16{35}},
		"unknown partitions":             {listRequest("a", timeLatest, 2, -1, 1), []int16{3, 3, 0}},
		"an epoch that is not there yet": {epoch, []int16{kerr.UnknownLeaderEpoch.Code, 0}},
	} {
		for v := int16(4); v <= 11; v++ {
			if got := codes(v, tt.r); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("v%d %s: errors %v, want %v", v, name, got, tt.want)
			}
		}
	}
}

// What consumers are told is what they can read; brokers are told where the log ends.
func TestListOffsetsLimits(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", 5}))
	for replica, isolation := range map[int32]int8{-1: 1, -2: 0, 3: 0} {
		r := listRequest("a", timeLatest, 0)
		r.ReplicaID, r.IsolationLevel = replica, isolation
		if got := c.listOffset(5, r); got != "0 -1 1 0" {
			t.Errorf("replica %d isolation %d: %s", replica, isolation, got)
		}
	}
	if got := trimmed(t, b, 1).listed(c, timeMax); got != "0 -1 -1 -1" {
		t.Errorf("largest timestamp of a trimmed log: %s", got)
	}
	if got := b.listed(c, 0); got != "0 -1 -1 -1" {
		t.Errorf("first record of a trimmed log: %s", got)
	}
}

// Timestamps in any order, batches of any size and codec: the answer is the first record in offset order that is not older (KIP-79).
func TestListOffsetsByTimeAgainstAllRecords(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1, "segment.bytes", "1048576", "index.interval.bytes", "100")
	random := rand.New(rand.NewPCG(3, 4))
	var all []int64
	for range 60 {
		var records []record
		for range 1 + random.IntN(8) {
			ts := 1000 + random.Int64N(400)
			all = append(all, ts)
			records = append(records, record{"k", "v", ts})
		}
		if got := c.produce("a", 0, batchOf(t, batch.Codec(random.IntN(5)), records...)); got.ErrorCode != 0 {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
	}
	for ts := int64(990); ts < 1410; ts++ {
		want := "0 -1 -1 -1"
		for offset, have := range all {
			if have >= ts {
				want = fmt.Sprint(0, have, offset, 0)
				break
			}
		}
		if got := b.listed(c, ts); got != want {
			t.Fatalf("timestamp %d: got %s, want %s", ts, got, want)
		}
	}
	newest := 0
	for i, ts := range all {
		if ts > all[newest] {
			newest = i
		}
	}
	if got, want := b.listed(c, timeMax), fmt.Sprint(0, all[newest], newest, 0); got != want {
		t.Errorf("largest timestamp: got %s, want %s", got, want)
	}
}
