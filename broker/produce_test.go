package broker

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// nowMillis is a timestamp that every topic accepts.
func nowMillis() int64 { return time.Now().UnixMilli() }

func TestProduceFetchEveryVersion(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("all")
	id := b.topics.name("all").id
	offset := int64(0)
	for version := int16(3); version <= 13; version++ {
		for _, acks := range []int16{1, -1} { // the last waits for all syncs
			r := produceRequest("all", 0, acks, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
			r.Topics[0].TopicID = id
			resp := ask[*kmsg.ProduceResponse](c, version, r)
			p := resp.Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.BaseOffset != offset || p.LogAppendTime != -1 {
				t.Fatalf("produce v%d acks %d: %+v, want offset %d", version, acks, p, offset)
			}
			offset++
		}
	}
	for version := int16(4); version <= 18; version++ {
		r := fetchRequest("all", 0, 5, 5*time.Second)
		r.Topics[0].TopicID = id
		resp := ask[*kmsg.FetchResponse](c, version, r)
		p := resp.Topics[0].Partitions[0]
		if got := values(t, p.RecordBatches, 5); p.ErrorCode != 0 || len(got) != int(offset)-5 {
			t.Errorf("fetch v%d: error %d, %d records", version, p.ErrorCode, len(got))
		}
		if p.HighWatermark != offset || p.LastStableOffset != offset {
			t.Errorf("fetch v%d: high watermark %d, last stable %d, want %d", version, p.HighWatermark, p.LastStableOffset, offset)
		}
	}
}

// TestProduceFailures: each bad batch has its own error and the good one beside it is stored.
func TestProduceFailures(t *testing.T) {
	b := startBroker(t, t.TempDir(), "num.partitions", "2", "max.message.bytes", "1000", "message.max.bytes", "1000")
	c := b.dial()
	c.createTopic("bad")
	good := func() []byte { return batchOf(t, batch.None, record{"k", "v", nowMillis()}) }
	crc := good()
	crc[len(crc)-1] ^= 1
	cases := []struct {
		name      string
		topic     string
		partition int32
		records   []byte
		want      *kerr.Error
	}{
		{"crc", "bad", 0, crc, kerr.CorruptMessage},
		{"null", "bad", 0, nil, kerr.InvalidRecord},
		{"empty", "bad", 0, []byte{}, kerr.InvalidRecord},
		{"two batches", "bad", 0, append(good(), good()...), kerr.InvalidRecord},
		{"too large", "bad", 0, batchOf(t, batch.None, record{"k", string(make([]byte, 2000)), nowMillis()}), kerr.MessageTooLarge},
		{"far future", "bad", 0, batchOf(t, batch.None, record{"k", "v", nowMillis() + 7200_000}), kerr.InvalidTimestamp},
		{"no such partition", "bad", 9, good(), kerr.UnknownTopicOrPartition},
		{"no such topic", "absent", 0, good(), kerr.UnknownTopicOrPartition},
	}
	stored := int64(0)
	for _, tc := range cases {
		r := produceRequest(tc.topic, tc.partition, -1, tc.records)
		r.Topics = append(r.Topics, produceRequest("bad", 1, -1, good()).Topics...)
		resp := ask[*kmsg.ProduceResponse](c, 9, r)
		if got := resp.Topics[0].Partitions[0]; got.ErrorCode != tc.want.Code || got.BaseOffset != -1 {
			t.Errorf("%s: error %d offset %d, want %v", tc.name, got.ErrorCode, got.BaseOffset, tc.want)
		}
		if got := resp.Topics[1].Partitions[0]; got.ErrorCode != 0 || got.BaseOffset != stored {
			t.Errorf("%s: the good batch got error %d, offset %d, want %d", tc.name, got.ErrorCode, got.BaseOffset, stored)
		}
		stored++
	}
	if end := b.topics.name("bad").partition(0).log.EndOffset(); end != 0 {
		t.Errorf("bad batches were stored: log end offset is %d", end)
	}
}

func TestProduceBadAcks(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("acks")
	for _, acks := range []int16{-2, 2, 100} {
		resp := ask[*kmsg.ProduceResponse](c, 9, produceRequest("acks", 0, acks, batchOf(t, batch.None, record{"k", "v", nowMillis()})))
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidRequiredAcks.Code {
			t.Errorf("acks %d: error %d", acks, got)
		}
	}
}

// TestProduceAcks0: no answer to a good request, the next request's answer is the next thing to come; a bad one ends the connection.
func TestProduceAcks0(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("quiet")
	for range 3 {
		r := produceRequest("quiet", 0, 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
		r.SetVersion(9)
		c.send(r)
	}
	if got := values(t, c.fetch("quiet", 0, 0, 5*time.Second).RecordBatches, 0); len(got) == 0 {
		t.Error("nothing was stored")
	}
	r := produceRequest("absent", 0, 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	r.SetVersion(9)
	c.send(r)
	if _, err := c.conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after a failed acks=0 produce: %v, want the connection closed", err)
	}
}

// TestProducePipelined sends many requests without waiting; the answers come in order with dense offsets.
func TestProducePipelined(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("pipe")
	const n = 500
	first := c.next + 1
	var r *kmsg.ProduceRequest
	for range n {
		r = produceRequest("pipe", 0, -1, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
		r.SetVersion(9)
		c.send(r)
	}
	for i := range int32(n) {
		p := c.receive(r, first+i).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Fatalf("answer %d: error %d, offset %d", i, p.ErrorCode, p.BaseOffset)
		}
	}
}

func TestIdempotentProducer(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.createTopic("idem")
	one := func(sequence int32, n int) []byte {
		records := slices.Repeat([]record{{"k", "v", nowMillis()}}, n)
		return producerBatch(t, batch.None, 77, 0, sequence, records...)
	}
	steps := []struct {
		sequence int32
		n        int
		offset   int64
		want     int16
	}{
		{0, 3, 0, 0},
		{3, 2, 3, 0},
		{0, 3, 0, 0}, // again
		{3, 2, 3, 0},
		{7, 1, -1, kerr.OutOfOrderSequenceNumber.Code}, // gap
		{5, 1, 5, 0},
	}
	for i, s := range steps {
		if got := c.produce("idem", 0, one(s.sequence, s.n)); got.ErrorCode != s.want || got.BaseOffset != s.offset {
			t.Fatalf("step %d: error %d, offset %d; want %d, %d", i, got.ErrorCode, got.BaseOffset, s.want, s.offset)
		}
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	if got := c.produce("idem", 0, one(5, 1)); got.ErrorCode != 0 || got.BaseOffset != 5 {
		t.Errorf("the last batch again after a restart: error %d, offset %d, want the first offset 5", got.ErrorCode, got.BaseOffset)
	}
	if got := c.produce("idem", 0, one(9, 1)); got.ErrorCode != kerr.OutOfOrderSequenceNumber.Code {
		t.Errorf("a gap after a restart: error %d", got.ErrorCode)
	}
	if got := c.produce("idem", 0, one(6, 1)); got.ErrorCode != 0 || got.BaseOffset != 6 {
		t.Errorf("going on after a restart: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
}

// TestCompressionType: a topic with a codec of its own stores every batch with it; the records stay.
func TestCompressionType(t *testing.T) {
	c := startBroker(t, t.TempDir(), "compression.type", "zstd").dial()
	c.createTopic("packed")
	for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Zstd} {
		c.produce("packed", 0, batchOf(t, codec, record{"k", "same", nowMillis()}, record{"k", "again", nowMillis()}))
	}
	got := c.fetch("packed", 0, 0, 0).RecordBatches
	if v := values(t, got, 0); !slices.Equal(v, []string{"same", "again", "same", "again", "same", "again"}) {
		t.Errorf("values are %v", v)
	}
	for len(got) > 0 {
		h, err := batch.ReadHeader(got)
		if err != nil {
			t.Fatal(err)
		}
		if h.Codec() != batch.Zstd {
			t.Errorf("batch at %d has codec %d", h.BaseOffset, h.Codec())
		}
		got = got[h.Size():]
	}
}
