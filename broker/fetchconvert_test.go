package broker

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// oldFetch is what a client of before Fetch v4 gets of one partition.
func (c *client) oldFetch(version int16, topic string, offset int64, maxBytes int32) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	r := fetchRequest(topic, 0, offset, 0)
	r.ReplicaID = -1
	r.Topics[0].Partitions[0].PartitionMaxBytes = maxBytes
	resp := ask[*kmsg.FetchResponse](c, version, r)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		c.t.Fatalf("answer is %+v", resp)
	}
	return resp.Topics[0].Partitions[0]
}

// oldRecord is a record as an old client reads it.
type oldRecord struct {
	offset, ts int64
	key, value string
}

// oldRecords reads a message set as a client of before Fetch v4 does: messages from an offset on, up to the first that is cut off. It fails
// for a magic that such a client does not know.
func oldRecords(t *testing.T, set []byte, magic byte, from int64) (list []oldRecord) {
	t.Helper()
	for len(set) >= batch.OverheadSize {
		size := int(int32(uint32(set[8])<<24|uint32(set[9])<<16|uint32(set[10])<<8|uint32(set[11]))) + batch.OverheadSize
		if size > len(set) {
			return list
		}
		if set[batch.MagicPos] > magic {
			t.Fatalf("a message of magic %d for a client of magic %d", set[batch.MagicPos], magic)
		}
		if err := batch.Verify(set); err != nil {
			t.Fatal(err)
		}
		var r batch.Reader
		if err := r.Reset(set[:size], 0); err != nil {
			t.Fatal(err)
		}
		var rec batch.Record
		for r.Next(&rec) {
			if rec.Offset >= from {
				list = append(list, oldRecord{rec.Offset, rec.Timestamp, string(rec.Key), string(rec.Value)})
			}
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		set = set[size:]
	}
	return list
}

// consumeOld reads a partition from an offset to the end as an old consumer does.
func (c *client) consumeOld(version int16, topic string, from int64, maxBytes int32) (list []oldRecord) {
	c.t.Helper()
	for range 10_000 {
		p := c.oldFetch(version, topic, from, maxBytes)
		if p.ErrorCode != 0 {
			c.t.Fatalf("v%d at %d: error %d", version, from, p.ErrorCode)
		}
		if p.RecordBatches == nil {
			c.t.Fatalf("v%d at %d: record set is null", version, from)
		}
		got := oldRecords(c.t, p.RecordBatches, byte(readableMagic(version)), from)
		if len(got) == 0 {
			if len(p.RecordBatches) > 0 {
				c.t.Fatalf("v%d at %d: %d bytes without a message", version, from, len(p.RecordBatches))
			}
			return list
		}
		list = append(list, got...)
		from = got[len(got)-1].offset + 1
	}
	c.t.Fatal("the end is never reached")
	return nil
}

// TestFetchOldVersions: batches of every codec are read by every old version, with the offsets and the timestamps that they have there.
func TestFetchOldVersions(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("t")
	var want []oldRecord
	for i := range 60 {
		var batchRecords []record
		for k := range i%7 + 1 {
			r := record{fmt.Sprint("key", i), strings.Repeat(fmt.Sprint(i, k, " "), 1+i*i), nowMillis()}
			batchRecords = append(batchRecords, r)
			want = append(want, oldRecord{int64(len(want)), r.ts, r.key, r.value})
		}
		if got := c.produce("t", 0, batchOf(t, batch.Codec(i%4), batchRecords...)); got.ErrorCode != 0 {
			t.Fatal(got.ErrorCode)
		}
	}
	for version := int16(0); version < 4; version++ {
		for _, maxBytes := range []int32{100_000, 1 << 20} {
			for _, from := range []int{0, 1, 17, len(want) - 1, len(want)} {
				got := c.consumeOld(version, "t", int64(from), maxBytes)
				if len(got) != len(want)-from {
					t.Fatalf("v%d from %d: %d records, want %d", version, from, len(got), len(want)-from)
				}
				for i := range got {
					w := want[from+i]
					if version < 2 {
						w.ts = -1
					}
					if got[i] != w {
						t.Fatalf("v%d: record %+v, want %+v", version, got[i], w)
					}
				}
			}
		}
	}
}

// TestFetchOldLimits: versions 0 to 2 get a message that does not fit cut off, and what fits of a batch that does not; version 3 gets the
// first batch whole.
func TestFetchOldLimits(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("plain")
	c.createTopic("packed")
	value := strings.Repeat("v", 1000)
	for topic, codec := range map[string]batch.Codec{"plain": batch.None, "packed": batch.Snappy} {
		var records []record
		for i := range 10 {
			v := []byte(value)
			for k := range v {
				v[k] = byte(i*k*k>>3 + k) // does not compress well
			}
			records = append(records, record{"", string(v), nowMillis()})
		}
		c.produce(topic, 0, batchOf(t, codec, records...))
	}
	for version := int16(0); version < 3; version++ {
		if p := c.oldFetch(version, "plain", 0, 500); len(p.RecordBatches) != 500 || p.ErrorCode != 0 {
			t.Errorf("v%d: a message that does not fit: %d bytes, error %d", version, len(p.RecordBatches), p.ErrorCode)
		}
		p := c.oldFetch(version, "plain", 3, 2500)
		if got := oldRecords(t, p.RecordBatches, 1, 3); len(p.RecordBatches) != 2500 || len(got) != 2 || got[0].offset != 3 {
			t.Errorf("v%d: %d bytes with %d records, want 2500 with 2", version, len(p.RecordBatches), len(got))
		}
		if p := c.oldFetch(version, "packed", 3, 500); len(p.RecordBatches) != 500 || p.ErrorCode != 0 {
			t.Errorf("v%d: a set that does not fit: %d bytes, error %d", version, len(p.RecordBatches), p.ErrorCode)
		}
		if p := c.oldFetch(version, "plain", 0, 0); len(p.RecordBatches) != 0 || p.ErrorCode != 0 {
			t.Errorf("v%d: limit 0: %d bytes, error %d", version, len(p.RecordBatches), p.ErrorCode)
		}
	}
	for _, topic := range []string{"plain", "packed"} {
		p := c.oldFetch(3, topic, 0, 500)
		if got := oldRecords(t, p.RecordBatches, 1, 0); len(got) != 10 {
			t.Errorf("v3 %s: %d records, want all of the first batch", topic, len(got))
		}
	}
}

func TestFetchOldZstd(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("t")
	c.produce("t", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	c.produce("t", 0, batchOf(t, batch.Zstd, record{"k", "v", nowMillis()}))
	for version := int16(0); version < 4; version++ {
		p := c.oldFetch(version, "t", 0, 1<<20)
		if got := oldRecords(t, p.RecordBatches, 1, 0); len(got) != 1 || p.ErrorCode != 0 {
			t.Errorf("v%d: %d records before zstd, error %d", version, len(got), p.ErrorCode)
		}
		p = c.oldFetch(version, "t", 1, 1<<20)
		if p.ErrorCode != kerr.UnsupportedCompressionType.Code || p.RecordBatches == nil || len(p.RecordBatches) > 0 {
			t.Errorf("v%d: error %d and records %v for zstd", version, p.ErrorCode, p.RecordBatches)
		}
	}
}

// TestFetchOldMarkers: a client that is not shown transaction markers gets what follows them, and waits when nothing does.
func TestFetchOldMarkers(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("t")
	l := b.topics.name("t").partition(0).log
	id := int64(5)
	mark := func() {
		t.Helper()
		id++
		m := batch.AppendMarker(nil, batch.Producer{ID: id}, nowMillis(), 0, true)
		h, err := batch.ReadHeader(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(m, h, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		mark()
	}
	for version := int16(0); version < 4; version++ {
		producer, r := b.dial(), fetchRequest("t", 0, 0, wait)
		r.SetVersion(version)
		c.send(r)
		producer.produce("t", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
		resp := c.receive(r, c.next).(*kmsg.FetchResponse)
		if got := oldRecords(t, resp.Topics[0].Partitions[0].RecordBatches, 1, 0); len(got) == 0 || got[0].offset != 5 {
			t.Fatalf("v%d: records %+v, want them from 5 on", version, got)
		}
		mark()
		end := l.EndOffset()
		if p := c.oldFetch(version, "t", end-1, 1<<20); len(p.RecordBatches) != 0 || p.ErrorCode != 0 {
			t.Errorf("v%d: %d bytes at a marker, error %d", version, len(p.RecordBatches), p.ErrorCode)
		}
		if p := c.oldFetch(version, "t", end+1, 1<<20); p.ErrorCode != kerr.OffsetOutOfRange.Code {
			t.Errorf("v%d: error %d beyond the end", version, p.ErrorCode)
		}
	}
}

// TestFetchOldWaits: a fetch of an old version is woken as others are.
func TestFetchOldWaits(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c, producer := b.dial(), b.dial()
	producer.createTopic("t")
	for version := int16(0); version < 4; version++ {
		end := b.topics.name("t").partition(0).log.EndOffset()
		r := fetchRequest("t", 0, end, wait)
		r.SetVersion(version)
		c.send(r)
		producer.produce("t", 0, batchOf(t, batch.Gzip, record{"k", "v", nowMillis()}))
		resp := c.receive(r, c.next).(*kmsg.FetchResponse)
		if got := oldRecords(t, resp.Topics[0].Partitions[0].RecordBatches, 1, end); len(got) != 1 || got[0].offset != end {
			t.Errorf("v%d: %+v", version, got)
		}
		begin := time.Now()
		r = fetchRequest("t", 0, end+1, 50*time.Millisecond)
		if p := ask[*kmsg.FetchResponse](c, version, r).Topics[0].Partitions[0]; len(p.RecordBatches) > 0 || time.Since(begin) < 50*time.Millisecond {
			t.Errorf("v%d: %d bytes after %v", version, len(p.RecordBatches), time.Since(begin))
		}
	}
}

// TestFetchOldReaderLeaves: who leaves in the middle of an answer leaves no file open: segments that are deleted then are gone.
func TestFetchOldReaderLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("open files are seen in /proc")
	}
	dir := t.TempDir()
	b := startBroker(t, dir, "log.segment.bytes", "1048576")
	c := b.dial()
	c.createTopic("t")
	for range 30 {
		c.produce("t", 0, batchOf(t, batch.None, record{"k", string(make([]byte, 900_000)), nowMillis()}))
	}
	for i := range 12 {
		left := b.dial()
		r := fetchRequest("t", 0, int64(2*i), 0)
		r.Topics[0].Partitions[0].PartitionMaxBytes = 50 << 20
		r.SetVersion(int16(i % 4))
		left.send(r)
		if i%3 > 0 {
			if _, err := io.ReadFull(left.conn, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		left.conn.Close()
	}
	if err := b.topics.name("t").partition(0).log.AdvanceStart(29); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return !deletedOpen(t, dir) })
}

// deletedOpen reports if this process has a file of dir open that was deleted.
func deletedOpen(t *testing.T, dir string) bool {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, dir) && strings.HasSuffix(name, "(deleted)") {
			return true
		}
	}
	return false
}

// TestFetchOldMixed: in one answer what must be converted is, and the rest goes out from the file.
func TestFetchOldMixed(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.formatTopic("old", "message.format.version", "0.9.0")
	c.formatTopic("new")
	for range 3 {
		for _, topic := range []string{"old", "new"} {
			if got := c.produce(topic, 0, batchOf(t, batch.None, record{"k", strings.Repeat("v", 100_000), nowMillis()})); got.ErrorCode != 0 {
				t.Fatal(got.ErrorCode)
			}
		}
	}
	r := fetchRequest("old", 0, 0, 0)
	r.Topics = append(r.Topics, fetchRequest("new", 0, 1, 0).Topics...)
	r.Topics = append(r.Topics, fetchRequest("old", 0, 2, 0).Topics...)
	before := b.server.Stats().SendfileBytes
	resp := ask[*kmsg.FetchResponse](c, 1, r)
	for i, want := range []int{3, 2, 1} {
		p := resp.Topics[i].Partitions[0]
		if got := oldRecords(t, p.RecordBatches, 0, int64(i)); len(got) != want || got[0].offset != int64(i) {
			t.Errorf("partition %d: %d records, want %d", i, len(got), want)
		}
	}
	files := int64(len(resp.Topics[0].Partitions[0].RecordBatches) + len(resp.Topics[2].Partitions[0].RecordBatches))
	if runtime.GOOS == "linux" { // counted when the call returns, which may be after the bytes are here
		waitFor(t, func() bool { return b.server.Stats().SendfileBytes-before >= files })
		if sent := b.server.Stats().SendfileBytes - before; sent != files {
			t.Errorf("%d bytes went by sendfile, want %d", sent, files)
		}
	}
}
