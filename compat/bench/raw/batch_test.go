package raw

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// readBatch decodes one batch with kmsg and checks what every batch must have.
func readBatch(t *testing.T, data []byte, records int) []kmsg.Record {
	t.Helper()
	var b kmsg.RecordBatch
	if err := b.ReadFrom(data); err != nil {
		t.Fatalf("kmsg does not read the batch: %v", err)
	}
	if int(b.Length)+12 != len(data) {
		t.Errorf("length field %d, want %d", b.Length, len(data)-12)
	}
	if want := crc32.Checksum(data[21:], crc32.MakeTable(crc32.Castagnoli)); uint32(b.CRC) != want {
		t.Errorf("CRC %x, want %x", uint32(b.CRC), want)
	}
	if b.Magic != 2 || b.Attributes != 0 || b.ProducerID != -1 || b.ProducerEpoch != -1 || b.FirstSequence != -1 || b.PartitionLeaderEpoch != -1 {
		t.Errorf("header %+v", b)
	}
	if int(b.NumRecords) != records || int(b.LastOffsetDelta) != records-1 {
		t.Errorf("%d records, last delta %d, want %d", b.NumRecords, b.LastOffsetDelta, records)
	}
	rs := make([]kmsg.Record, records)
	rest := b.Records
	for i := range rs {
		n, width := binary.Varint(rest)
		if width <= 0 || n < 0 || int(n)+width > len(rest) {
			t.Fatalf("record %d: length %d of %d bytes left", i, n, len(rest))
		}
		if err := rs[i].ReadFrom(rest[:int(n)+width]); err != nil {
			t.Fatalf("kmsg does not read record %d: %v", i, err)
		}
		rest = rest[int(n)+width:]
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes after the last record", len(rest))
	}
	for i, r := range rs {
		if int(r.OffsetDelta) != i || r.Key != nil || len(r.Headers) != 0 || r.TimestampDelta64 != 0 {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	return rs
}

func TestAppendBatch(t *testing.T) {
	for _, spec := range []Batch{{1, 1024, 1700000000000, 1, false}, {1, 0, 0, 2, false}, {500, 100, 1700000000000, 3, true}, {3, 70000, 1, 4, true}} {
		data := AppendBatch([]byte("before"), spec)[len("before"):]
		for i, r := range readBatch(t, data, spec.Records) {
			if len(r.Value) != spec.ValueSize {
				t.Errorf("%+v: value %d has %d bytes", spec, i, len(r.Value))
			}
		}
	}
}

func TestAppendBatchOfSize(t *testing.T) {
	for _, tt := range []struct{ size, records int }{{65536, 64}, {65536, 1}, {65536, 4000}, {1024, 1}, {100, 1}, {200, 2}, {1 << 20, 777}} {
		data, err := AppendBatchOfSize(nil, tt.size, tt.records, 1, 9)
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		if len(data) != tt.size {
			t.Errorf("%+v: %d bytes", tt, len(data))
		}
		readBatch(t, data, tt.records)
	}
	for _, tt := range []struct{ size, records int }{{65536, 0}, {60, 1}, {100, 10}} {
		if _, err := AppendBatchOfSize(nil, tt.size, tt.records, 1, 9); err == nil {
			t.Errorf("%+v: no error", tt)
		}
	}
}
