package broker

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// message is a message of magic 0 or 1 as old clients make it. A nil key or value is null; ts is not there in magic 0.
func message(magic, attributes byte, offset, ts int64, key, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes)
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, uint64(ts))
	}
	for _, v := range [][]byte{key, value} {
		if v == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

// TestProduceSets: sets of each old version are stored as one batch of magic 2, and nothing of a message that is cut off.
func TestProduceSets(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("old")
	next := int64(0)
	for version := int16(0); version <= 2; version++ {
		magic := byte(max(version, 1) - 1)
		set := message(magic, 0, 0, nowMillis(), []byte("k"), []byte("one"))
		set = append(set, message(magic, 0, 1, nowMillis(), nil, []byte("two"))...)
		set = append(set, message(magic, 0, 2, nowMillis(), []byte("k"), nil)...)
		torn := append(set[:len(set):len(set)], set[:20]...)
		for _, acks := range []int16{1, -1} {
			resp := ask[*kmsg.ProduceResponse](c, version, produceRequest("old", 0, acks, torn))
			if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != next {
				t.Fatalf("v%d: error %d at %d, want offset %d", version, p.ErrorCode, p.BaseOffset, next)
			}
			next += 3
		}
		// acks 0 has no answer; the next request's answer is the next to come.
		r := produceRequest("old", 0, 0, set)
		r.SetVersion(version)
		c.send(r)
		next += 3
		resp := ask[*kmsg.ProduceResponse](c, version, produceRequest("old", 0, -1, batchOf(t, batch.None, record{"k", "new", nowMillis()})))
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != next {
			t.Fatalf("v%d with magic 2: error %d at %d, want offset %d", version, p.ErrorCode, p.BaseOffset, next)
		}
		next++
	}
	got := values(t, c.fetch("old", 0, 0, 0).RecordBatches, 0)
	want := []string{"one", "two", "", "one", "two", "", "one", "two", "", "new"}
	if len(got) != int(next) || fmt.Sprint(got[:10]) != fmt.Sprint(want) {
		t.Errorf("%d records %q, want %d that begin with %q", len(got), got, next, want)
	}
}

func TestProduceSetFailures(t *testing.T) {
	b := startBroker(t, t.TempDir(), "message.max.bytes", "1000")
	c := b.dial()
	c.createTopic("old")
	good := message(0, 0, 0, 0, []byte("k"), []byte("v"))
	crc := message(0, 0, 0, 0, []byte("k"), []byte("v"))
	crc[len(crc)-1] ^= 1
	for _, tc := range []struct {
		name    string
		records []byte
		want    int16
	}{
		{"null", nil, 0},
		{"empty", []byte{}, 0},
		{"torn only", good[:len(good)-1], 0},
		{"crc", crc, kerr.CorruptMessage.Code},
		{"mixed magic", append(good[:len(good):len(good)], message(1, 0, 0, nowMillis(), nil, nil)...), kerr.InvalidRecord.Code},
		{"too large", message(0, 0, 0, 0, nil, make([]byte, 2000)), kerr.MessageTooLarge.Code},
		{"far future", message(1, 0, 0, nowMillis()+7200_000, nil, nil), kerr.InvalidTimestamp.Code},
		{"zstd", message(1, 4, 0, nowMillis(), nil, []byte("(\xb5/\xfd")), kerr.UnsupportedCompressionType.Code},
	} {
		resp := ask[*kmsg.ProduceResponse](c, 1, produceRequest("old", 0, -1, tc.records))
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode != tc.want || p.BaseOffset != -1 {
			t.Errorf("%s: error %d, base offset %d, want %d and -1", tc.name, p.ErrorCode, p.BaseOffset, tc.want)
		}
	}
	if end := b.topics.name("old").partition(0).log.EndOffset(); end != 0 {
		t.Errorf("log end offset is %d", end)
	}
}

// TestProduceLargeSet: the limit of old producers is about each message; a set of any size becomes several batches, all or none.
func TestProduceLargeSet(t *testing.T) {
	b := startBroker(t, t.TempDir(), "message.max.bytes", "3000")
	c := b.dial()
	c.createTopic("old")
	var set []byte
	for range 50 {
		set = append(set, message(0, 0, 0, 0, []byte("k"), make([]byte, 900))...)
	}
	for _, tc := range []struct {
		set  []byte
		want int16
		base int64
	}{
		{set, 0, 0},
		{append(set[:len(set):len(set)], message(0, 0, 0, 0, nil, make([]byte, 4000))...), kerr.MessageTooLarge.Code, -1},
		{set, 0, 50},
	} {
		resp := ask[*kmsg.ProduceResponse](c, 0, produceRequest("old", 0, -1, tc.set))
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode != tc.want || p.BaseOffset != tc.base {
			t.Errorf("error %d, base offset %d, want %d and %d", p.ErrorCode, p.BaseOffset, tc.want, tc.base)
		}
	}
	got := c.consumeOld(0, "old", 0, 1<<20)
	if len(got) != 100 || got[99].offset != 99 {
		t.Errorf("%d records", len(got))
	}
	for _, e := range c.stored("old") {
		if e.Size > 3000 || e.Magic != 2 {
			t.Errorf("stored %+v", e)
		}
	}
}
