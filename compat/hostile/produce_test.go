package hostile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (c raw) closeWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// batch is a sound record batch of one record that change may spoil; the CRC is made after change, unless it is zero.
type batch struct {
	value   []byte
	change  func(*kmsg.RecordBatch)
	spoilat int // a byte to flip after the CRC was made; 0: none
}

func (b batch) bytes() []byte {
	rec := kmsg.Record{Value: b.value}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1)
	if n := len(b.value); n > 50 {
		rec.Length = int32(len(rec.AppendTo(nil)) - 2) // the length takes two bytes itself
	}
	rb := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_000,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: rec.AppendTo(nil)}
	if b.change != nil {
		b.change(&rb)
	}
	rb.Length = int32(len(rb.AppendTo(nil)) - 12)
	out := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	if b.spoilat > 0 {
		out[b.spoilat] ^= 0xff
	}
	return out
}

func produceRequest(acks int16, topic string, records map[int32][]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	for p, b := range records {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, b
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

// TestBadBatches: a bad batch names itself in its partition's error and stores nothing; the others in the request go on.
func TestBadBatches(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	anyError := errors.New("any error") // Apache Kafka has no code of its own for this
	sound := batch{value: []byte("sound")}
	cases := []struct {
		name string
		data []byte
		want error
	}{
		{"sound", sound.bytes(), nil},
		{"CRC", batch{value: []byte("x"), spoilat: 65}.bytes(), kerr.CorruptMessage},
		{"cut off", sound.bytes()[:40], kerr.InvalidRecord},
		{"count 2 with one record", batch{value: []byte("x"), change: func(rb *kmsg.RecordBatch) { rb.NumRecords = 2 }}.bytes(), kerr.InvalidRecord},
		{"count 0", batch{value: []byte("x"), change: func(rb *kmsg.RecordBatch) { rb.NumRecords, rb.Records = 0, nil }}.bytes(), kerr.InvalidRecord},
		{"last offset delta 5", batch{value: []byte("x"), change: func(rb *kmsg.RecordBatch) { rb.LastOffsetDelta = 5 }}.bytes(), kerr.InvalidRecord},
		{"control batch", batch{value: []byte("x"), change: func(rb *kmsg.RecordBatch) { rb.Attributes = 0x20 }}.bytes(), kerr.InvalidRecord},
		{"too large", batch{value: make([]byte, 1<<20)}.bytes(), kerr.MessageTooLarge},
		{"two batches", append(sound.bytes(), sound.bytes()...), kerr.InvalidRecord},
		{"codec 7", batch{value: []byte("x"), change: func(rb *kmsg.RecordBatch) { rb.Attributes = 7 }}.bytes(), anyError},
		{"sound too", sound.bytes(), nil},
	}
	topic := harness.Topic("bad")
	b.Create(t, len(cases), nil, topic)
	records := map[int32][]byte{}
	for i, c := range cases {
		records[int32(i)] = c.data
	}
	resp := dial(t, b.Addr()).ask(t, 5, produceRequest(-1, topic, records)).(*kmsg.ProduceResponse)
	for _, p := range resp.Topics[0].Partitions {
		c := cases[p.Partition]
		if got := kerr.ErrorForCode(p.ErrorCode); got != c.want && (c.want != anyError || got == nil) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	ends, err := kadm.NewClient(b.Client(t)).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		want := int64(0)
		if c.want == nil {
			want = 1
		}
		if o := ends[topic][int32(i)]; o.Offset != want || o.Err != nil {
			t.Errorf("%s: the log ends at %d (%v), want %d", c.name, o.Offset, o.Err, want)
		}
	}
}

// TestAcksValues: acks other than -1, 0 and 1 are refused and store nothing.
func TestAcksValues(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	topic := harness.Topic("acks")
	b.Create(t, 1, nil, topic)
	c := dial(t, b.Addr())
	for i, acks := range []int16{2, -2, 100} {
		resp := c.ask(t, int32(i), produceRequest(acks, topic, map[int32][]byte{0: batch{value: []byte("x")}.bytes()})).(*kmsg.ProduceResponse)
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidRequiredAcks.Code {
			t.Errorf("acks=%d: error %d, want INVALID_REQUIRED_ACKS", acks, got)
		}
	}
	if n := end(t, b, topic); n != 0 {
		t.Errorf("%d records stored by refused requests", n)
	}
}

// TestAcksZero: no byte ever answers acks=0, the next request's answer is its own, and a sender may hang up at once.
func TestAcksZero(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	topic := harness.Topic("acks0")
	b.Create(t, 1, nil, topic)
	one := frame(1, produceRequest(0, topic, map[int32][]byte{0: batch{value: []byte("fire and forget")}.bytes()}))
	var burst []byte
	for range 10 {
		burst = append(burst, one...)
	}
	c := dial(t, b.Addr())
	c.send(t, burst)
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 9
	c.ask(t, 4711, meta)
	waitEnd(t, b, topic, 10)

	total := int64(10)
	for range 50 {
		c := dial(t, b.Addr())
		c.send(t, burst)
		if err := c.closeWrite(); err != nil {
			t.Fatal(err)
		}
		if err := c.ends(endLimit); err != nil {
			t.Fatalf("acks=0 and a half-close: %v", err)
		}
		total += 10
	}
	waitEnd(t, b, topic, total)

	c = dial(t, b.Addr()) // an error that cannot be told closes the connection
	c.send(t, frame(1, produceRequest(0, topic, map[int32][]byte{99: batch{value: []byte("x")}.bytes()})))
	if err := c.ends(endLimit); err != nil {
		t.Errorf("acks=0 to a partition that does not exist: %v", err)
	}
}

func end(t *testing.T, b *harness.Broker, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(b.Client(t)).ListEndOffsets(t.Context(), topic)
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	return ends[topic][0].Offset
}

func waitEnd(t *testing.T, b *harness.Broker, topic string, want int64) {
	t.Helper()
	var got int64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got = end(t, b, topic); got == want {
			return
		}
	}
	t.Fatalf("%s ends at %d, want %d", topic, got, want)
}

// TestUnknownApiVersions: a version of ApiVersions that is not known is answered as version 0, and the connection goes on.
func TestUnknownApiVersions(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	c := dial(t, b.Addr())
	body := []byte{0, 18, 0, 99, 0, 0, 0, 9, 0, 1, 'x', 0, 0xde, 0xad}
	c.send(t, sized(int32(len(body)), body))
	v0 := kmsg.NewPtrApiVersionsRequest()
	resp := c.answer(t, 9, v0).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != kerr.UnsupportedVersion.Code || len(resp.ApiKeys) == 0 {
		t.Errorf("ApiVersions v99: error %d and %d keys, want UNSUPPORTED_VERSION and the keys", resp.ErrorCode, len(resp.ApiKeys))
	}
	if resp := c.ask(t, 10, v0).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 || len(resp.ApiKeys) == 0 {
		t.Errorf("ApiVersions v0 afterwards: error %d, %d keys", resp.ErrorCode, len(resp.ApiKeys))
	}
}
