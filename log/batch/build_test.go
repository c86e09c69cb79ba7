package batch

import (
	"bytes"
	"fmt"
	"math"
	"testing"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// sample is a record as tests write and expect it.
type sample struct {
	ts         int64
	key, value []byte
	headers    []RecordHeader
}

// samples are n records with varied shapes.
func samples(n, size int) []sample {
	list := make([]sample, n)
	for i := range list {
		s := sample{ts: 1_700_000_000_000 + int64(i*7%5), key: fmt.Appendf(nil, "key-%d", i), value: bytes.Repeat([]byte{byte('a' + i%26)}, size)}
		switch i % 4 {
		case 1:
			s.key = nil
		case 2:
			s.headers = []RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "", Value: nil}, {Key: "empty", Value: []byte{}}}
		case 3:
			s.value = nil
		}
		list[i] = s
	}
	return list
}

func build(t testing.TB, o Options, list []sample) []byte {
	t.Helper()
	var w Builder
	w.Reset(o)
	for _, s := range list {
		w.Append(s.ts, s.key, s.value, s.headers...)
	}
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// anyTime are rules without limits.
func anyTime() Rules {
	return Rules{Now: 1_700_000_000_100, BeforeMax: math.MaxInt64, AfterMax: math.MaxInt64}
}

func compare(t *testing.T, b []byte, base int64, want []sample) {
	t.Helper()
	var r Reader
	if err := r.Reset(b, 0); err != nil {
		t.Fatal(err)
	}
	var rec Record
	i := 0
	for ; r.Next(&rec); i++ {
		if i >= len(want) {
			t.Fatalf("more than %d records", len(want))
		}
		s := want[i]
		if rec.Offset != base+int64(i) || rec.Timestamp != s.ts || !same(rec.Key, s.key) || !same(rec.Value, s.value) {
			t.Fatalf("record %d: got offset %d, time %d, key %q, %d bytes", i, rec.Offset, rec.Timestamp, rec.Key, len(rec.Value))
		}
		if rec.Headers.Len() != len(s.headers) {
			t.Fatalf("record %d: %d headers, want %d", i, rec.Headers.Len(), len(s.headers))
		}
		k := 0
		for h := range rec.Headers.All() {
			if h.Key != s.headers[k].Key || !same(h.Value, s.headers[k].Value) {
				t.Fatalf("record %d: header %d is %q=%q", i, k, h.Key, h.Value)
			}
			k++
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if i != len(want) {
		t.Fatalf("%d records, want %d", i, len(want))
	}
}

// same tells null from empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestBuildCheckRead(t *testing.T) {
	for _, codec := range codecs {
		for _, shape := range []struct{ n, size int }{{1, 0}, {1, 10}, {9, 100}, {500, 1000}, {3, windowSize}, {2, 300_000}} {
			t.Run(fmt.Sprintf("codec%d/%dx%d", codec, shape.n, shape.size), func(t *testing.T) {
				list := samples(shape.n, shape.size)
				b := build(t, Options{Codec: codec, LeaderEpoch: -1}, list)
				var c Checker
				for range 2 { // the second time with used scratch
					h, err := c.Check(b, anyTime())
					if err != nil {
						t.Fatal(err)
					}
					if int(h.Count) != shape.n || h.Size() != len(b) || h.Codec() != codec {
						t.Fatalf("header %+v", h)
					}
				}
				Stamp(b, 1000, 7)
				if err := Verify(b); err != nil {
					t.Fatal(err)
				}
				h, err := ReadHeader(b)
				if err != nil || h.BaseOffset != 1000 || h.LeaderEpoch != 7 {
					t.Fatalf("after stamp: %+v, %v", h, err)
				}
				compare(t, b, 1000, list)
			})
		}
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	for _, codec := range codecs {
		a := build(t, Options{Codec: codec}, samples(50, 500))
		b := build(t, Options{Codec: codec}, samples(50, 500))
		if !bytes.Equal(a, b) {
			t.Errorf("codec %d: two builds differ", codec)
		}
	}
}

func TestBuilderRefuses(t *testing.T) {
	var w Builder
	w.Reset(Options{})
	if _, err := w.Finish(nil); err == nil {
		t.Error("empty batch was built")
	}
	w.Reset(Options{Codec: 5})
	w.Append(1, nil, nil)
	if _, err := w.Finish(nil); err == nil {
		t.Error("codec 5 was built")
	}
	w.Reset(Options{BaseOffset: 10})
	w.AppendRecord(&Record{Offset: 12})
	w.AppendRecord(&Record{Offset: 12})
	if _, err := w.Finish(nil); err == nil {
		t.Error("the same offset twice was built")
	}
}

func TestAppendRecordKeepsGaps(t *testing.T) {
	var w Builder
	w.Reset(Options{BaseOffset: 10, Codec: LZ4})
	for _, o := range []int64{10, 13, 20} {
		w.AppendRecord(&Record{Offset: o, Timestamp: o, Key: []byte("k")})
	}
	b, err := w.Finish([]byte("prefix"))
	if err != nil {
		t.Fatal(err)
	}
	b = b[len("prefix"):]
	var r Reader
	if err := r.Reset(b, 0); err != nil {
		t.Fatal(err)
	}
	var got []int64
	var rec Record
	for r.Next(&rec) {
		got = append(got, rec.Offset)
	}
	h := r.Header()
	if fmt.Sprint(got) != "[10 13 20]" || h.LastOffset() != 20 || h.Count != 3 {
		t.Fatalf("offsets %v, last %d, count %d", got, h.LastOffset(), h.Count)
	}
}

func TestMarker(t *testing.T) {
	for _, commit := range []bool{false, true} {
		b := AppendMarker(nil, Producer{ID: 4, Epoch: 3, Sequence: 99}, 1234, 17, commit)
		var r Reader
		if err := r.Reset(b, 0); err != nil {
			t.Fatal(err)
		}
		h := r.Header()
		if !h.Control() || !h.Transactional() || h.ProducerID != 4 || h.ProducerEpoch != 3 || h.BaseSequence != -1 || h.Count != 1 {
			t.Errorf("header %+v", h)
		}
		var rec Record
		if !r.Next(&rec) || r.Next(&Record{}) {
			t.Fatal("want one record")
		}
		kind := byte(0)
		if commit {
			kind = 1
		}
		if !bytes.Equal(rec.Key, []byte{0, 0, 0, kind}) || !bytes.Equal(rec.Value, []byte{0, 0, 0, 0, 0, 17}) {
			t.Errorf("key %x, value %x", rec.Key, rec.Value)
		}
	}
}
