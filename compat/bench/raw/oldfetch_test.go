package raw

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// oldMessage is a message of magic 1 with a value of n bytes; the checksum is not looked at.
func oldMessage(offset int64, n int) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return append(b, make([]byte, n)...)
}

func oldAnswer(records []byte, code int16) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(2)
	t := kmsg.NewFetchResponseTopic()
	t.Topic = "old"
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.RecordBatches, p.ErrorCode = 99, records, code
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp.AppendTo([]byte{0, 0, 0, 1})
}

func TestOldReader(t *testing.T) {
	const end = 10
	var stop atomic.Bool
	var asked []int64
	addr := serve(t, func(request []byte) []byte {
		r := kmsg.NewPtrFetchRequest()
		r.SetVersion(2)
		if err := r.ReadFrom(request[2+2+4+2+len("gregor-bench"):]); err != nil {
			t.Error(err)
		}
		at := r.Topics[0].Partitions[0].FetchOffset
		asked = append(asked, at)
		if len(asked) == 7 {
			stop.Store(true)
		}
		var set []byte
		for offset := at; offset < min(at+4, end); offset++ {
			set = append(set, oldMessage(offset, 100)...)
		}
		return oldAnswer(append(set, oldMessage(at+4, 100)[:50]...), 0)
	})
	var n atomic.Int64
	r := OldReader{Conn: dial(t, addr), Topic: "old", End: end, MaxBytes: 1000, Bytes: &n}
	if err := r.Run(&stop); err != nil {
		t.Fatal(err)
	}
	want := []int64{0, 4, 8, 0, 4, 8, 0}
	for i, at := range asked {
		if i < len(want) && at != want[i] {
			t.Fatalf("asked for %v, want %v", asked, want)
		}
	}
	if n.Load() != 24*112 {
		t.Errorf("%d bytes, want %d", n.Load(), 24*112)
	}
}

func TestOldReaderErrors(t *testing.T) {
	for name, answer := range map[string][]byte{
		"error code": oldAnswer(oldMessage(0, 100), 3),
		"no message": oldAnswer(oldMessage(0, 100)[:50], 0),
		"empty":      oldAnswer([]byte{}, 0),
		"cut":        oldAnswer(oldMessage(0, 100), 0)[:40],
	} {
		r := OldReader{Conn: dial(t, serve(t, func([]byte) []byte { return answer })), Topic: "old", End: 1, MaxBytes: 1000, Bytes: new(atomic.Int64)}
		if err := r.Run(new(atomic.Bool)); err == nil {
			t.Errorf("%s passes", name)
		}
		r.Conn.Abort()
	}
}

func TestGzipped(t *testing.T) {
	plain := AppendBatch(nil, Batch{Records: 3, ValueSize: 2000, Letters: true})
	if crc := crc32.Checksum(plain[21:], crc32.MakeTable(crc32.Castagnoli)); binary.BigEndian.Uint32(plain[17:]) != crc {
		t.Error("checksum of letters is wrong")
	}
	b, err := Gzipped(plain)
	if err != nil {
		t.Fatal(err)
	}
	if int(binary.BigEndian.Uint32(b[8:])) != len(b)-12 || len(b) > len(plain)*3/4 {
		t.Errorf("%d bytes of %d", len(b), len(plain))
	}
	if crc := crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)); binary.BigEndian.Uint32(b[17:]) != crc || b[22] != 1 {
		t.Error("checksum or codec is wrong")
	}
	r, err := gzip.NewReader(bytes.NewReader(b[61:]))
	if err != nil {
		t.Fatal(err)
	}
	if inside, err := io.ReadAll(r); err != nil || !bytes.Equal(inside, plain[61:]) {
		t.Errorf("%d bytes inside, %v", len(inside), err)
	}
}
