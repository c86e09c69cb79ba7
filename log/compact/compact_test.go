package compact

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"gregor/log/batch"
)

// TestSipHash compares with the vectors of the authors' reference implementation.
func TestSipHash(t *testing.T) {
	key := sipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	for n, want := range []string{"a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45", "8177228da4a45dc7fca38bdef60affe4"} {
		in := []byte{0, 1, 2}[:n]
		d := key.sum(in)
		var got [16]byte
		for i := range 8 {
			got[i], got[8+i] = byte(d.lo>>(8*i)), byte(d.hi>>(8*i))
		}
		if hex.EncodeToString(got[:]) != want {
			t.Errorf("sum of %x is %x, want %s", in, got, want)
		}
	}
}

// TestOffsets fills tables of several sizes to the last key and compares with a map.
func TestOffsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, budget := range []int64{0, 48, 100, 1000, 50_000} {
		for _, load := range []float64{0, 0.5, 0.9, 1} {
			o := newOffsets(budget, load, 1<<40)
			if used := int64(len(o.slots)) * slotBytes; used > max(budget, 2*slotBytes) {
				t.Fatalf("budget of %d: %d bytes are used", budget, used)
			}
			want := map[string]int64{}
			full := false
			for i := range int64(4000) {
				key := fmt.Sprint(rng.IntN(3000))
				_, known := want[key]
				switch ok := o.put([]byte(key), i); {
				case ok:
					want[key] = i
				case known || o.n < o.max:
					t.Fatalf("key %s known %v is refused with %d of %d keys", key, known, o.n, o.max)
				default:
					full = true
				}
			}
			for i := range 3000 {
				key := fmt.Sprint(i)
				at, ok := want[key]
				if got := o.get([]byte(key)); ok && got != at || !ok && got != -1 {
					t.Fatalf("offset of %s is %d, want %d %v", key, got, at, ok)
				}
			}
			if !full && budget < 50_000 {
				t.Fatalf("budget of %d took %d keys", budget, o.n)
			}
		}
	}
	if o := newOffsets(1<<40, 0.9, 100); len(o.slots) > 200 {
		t.Errorf("%d slots for at most 100 keys", len(o.slots))
	}
}

// clean runs entries through an index and a filter.
func clean(t testing.TB, entries [][]byte, r Rules, aborted ...Aborted) (out [][]byte, f *Filter) {
	t.Helper()
	x := NewIndex(Limits{Bytes: 1 << 20, Load: 0.9}, 0, 1000, aborted)
	for _, b := range entries {
		if ok, err := x.Add(b); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if r.RoundEnd == 0 {
		r.RoundEnd = 1 << 40
	}
	f = NewFilter(x, r, aborted)
	for _, b := range entries {
		left, err := f.Entry(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			if err := batch.Verify(left); err != nil {
				t.Fatal(err)
			}
			out = append(out, left)
		}
	}
	return out, f
}

// one makes a batch of records at an offset: a key and a value each, "-" for a tombstone.
func one(t testing.TB, o batch.Options, kv ...string) []byte {
	t.Helper()
	var w batch.Builder
	w.Reset(o)
	for i := 0; i < len(kv); i += 2 {
		value := []byte(kv[i+1])
		if kv[i+1] == "-" {
			value = nil
		}
		w.Append(int64(1000+i), []byte(kv[i]), value, batch.RecordHeader{Key: "h", Value: []byte(kv[i])})
	}
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func marker(offset, id int64, commit bool) []byte {
	b := batch.AppendMarker(nil, batch.Producer{ID: id}, 5000, 0, commit)
	batch.Stamp(b, offset, 0)
	return b
}

// show lists what batches hold: "offset:key=value@time", with the horizon and the last offset of each batch.
func show(t testing.TB, batches [][]byte) (s string) {
	t.Helper()
	var r batch.Reader
	for _, b := range batches {
		if err := r.Reset(b, 0); err != nil {
			t.Fatal(err)
		}
		h := r.Header()
		s += fmt.Sprintf("[%d-%d", h.BaseOffset, h.LastOffset())
		if at, ok := h.DeleteHorizon(); ok {
			s += fmt.Sprintf(" until %d", at)
		}
		for rec := (batch.Record{}); r.Next(&rec); {
			if h.Control() {
				s += " marker"
				continue
			}
			value := "=" + string(rec.Value)
			if rec.Value == nil {
				value = "-"
			}
			s += fmt.Sprintf(" %d:%s%s@%d", rec.Offset, rec.Key, value, rec.Timestamp)
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		s += "] "
	}
	return s
}

// TestTombstones follows a tombstone from its first clean to its end.
func TestTombstones(t *testing.T) {
	for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		in := [][]byte{
			one(t, batch.Options{Codec: codec}, "a", "1", "b", "1", "c", "1"),
			one(t, batch.Options{Codec: codec, BaseOffset: 3}, "a", "2", "b", "-"),
		}
		out, f := clean(t, in, Rules{Now: 100, DeleteRetentionMs: 50})
		if got, want := show(t, out), "[0-2 2:c=1@1004] [3-4 until 150 3:a=2@1000 4:b-@1002] "; got != want {
			t.Errorf("codec %d, first clean: %s, want %s", codec, got, want)
		}
		if s := f.Stats(); s.RecordsRead != 5 || s.RecordsKept != 3 || s.EntriesRebuilt != 2 {
			t.Errorf("stats %+v", s)
		}
		again, f := clean(t, out, Rules{Now: 149, DeleteRetentionMs: 50})
		if show(t, again) != show(t, out) || f.Stats().EntriesRebuilt != 0 || !bytes.Equal(again[1], out[1]) {
			t.Errorf("codec %d, before the horizon: %s", codec, show(t, again))
		}
		again, _ = clean(t, again, Rules{Now: 150, DeleteRetentionMs: 50})
		if got, want := show(t, again), "[0-2 2:c=1@1004] [3-4 until 150 3:a=2@1000] "; got != want {
			t.Errorf("codec %d, after the horizon: %s, want %s", codec, got, want)
		}
	}
}

// TestTransactions: records of aborted transactions go; a marker goes when nothing of its transaction is left and its horizon passed. Keys that
// look like those of markers do not matter.
func TestTransactions(t *testing.T) {
	txn := func(offset, id int64, kv ...string) []byte {
		return one(t, batch.Options{BaseOffset: offset, Transactional: true, Producer: &batch.Producer{ID: id}}, kv...)
	}
	key := string([]byte{0, 0, 0, 1})
	in := [][]byte{
		one(t, batch.Options{}, "a", "1", key, "1"),
		txn(2, 7, "a", "aborted"), txn(3, 8, "b", "committed"), txn(4, 7, "c", "aborted"),
		marker(5, 7, false), marker(6, 8, true),
		one(t, batch.Options{BaseOffset: 7}, "b", "2"),
	}
	gone := Aborted{ProducerID: 7, FirstOffset: 2, LastOffset: 5, LastStableOffset: 3}
	r := Rules{Now: 100, DeleteRetentionMs: 50, Producers: map[int64]LastBatch{8: {LastOffset: 3}}}
	out, f := clean(t, in, r, gone)
	want := fmt.Sprintf("[0-1 0:a=1@1000 1:%s=1@1002] [3-3] [5-5 marker] [6-6 marker] [7-7 7:b=2@1000] ", key)
	if got := show(t, out); got != want {
		t.Errorf("first clean: %q, want %q", got, want)
	}
	if still := f.TakeAborted(); len(still) != 1 || still[0] != gone {
		t.Errorf("transaction index has %+v", still)
	}
	out, f = clean(t, out, r, gone)
	want = fmt.Sprintf("[0-1 0:a=1@1000 1:%s=1@1002] [3-3] [5-5 until 150 marker] [6-6 marker] [7-7 7:b=2@1000] ", key)
	if got := show(t, out); got != want || f.TakeAborted() != nil {
		t.Errorf("second clean: %q, want %q", got, want)
	}
	r.Now, r.Producers = 150, nil
	out, _ = clean(t, out, r)
	want = fmt.Sprintf("[0-1 0:a=1@1000 1:%s=1@1002] [6-6 marker] [7-7 7:b=2@1000] ", key)
	if got := show(t, out); got != want {
		t.Errorf("third clean: %q, want %q", got, want)
	}
}

// TestRetained: the last batch of a producer and of the round stay, without records; records without a key go.
func TestRetained(t *testing.T) {
	in := [][]byte{
		one(t, batch.Options{Producer: &batch.Producer{ID: 1, Epoch: 3, Sequence: 9}}, "a", "1", "b", "1"),
		one(t, batch.Options{BaseOffset: 2, Producer: &batch.Producer{ID: 2}}, "a", "2", "b", "2"),
		one(t, batch.Options{BaseOffset: 4}, "a", "3", "b", "3"),
	}
	var w batch.Builder
	w.Reset(batch.Options{BaseOffset: 6})
	w.Append(7, nil, []byte("no key"))
	keyless, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, f := clean(t, append(in, keyless), Rules{RoundEnd: 7, Producers: map[int64]LastBatch{1: {LastOffset: 1, Epoch: 3}}})
	if got, want := show(t, out), "[0-1] [4-5 4:a=3@1000 5:b=3@1002] [6-6] "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	h, err := batch.ReadHeader(out[0])
	if err != nil || h.ProducerID != 1 || h.ProducerEpoch != 3 || h.LastSequence() != 10 || h.BaseTimestamp != -1 || h.MaxTimestamp != 1002 || h.Count != 0 {
		t.Errorf("empty batch %+v, %v", h, err)
	}
	if f.Stats().RecordsInvalid != 1 {
		t.Errorf("stats %+v", f.Stats())
	}
}

// FuzzFilter: no entry, however wrong, is more than an error; what comes out is whole, and nothing but what went in.
func FuzzFilter(f *testing.F) {
	f.Add(one(f, batch.Options{}, "a", "1", "a", "2", "b", "-"), int64(0))
	f.Add(one(f, batch.Options{Codec: batch.Zstd, BaseOffset: 5}, "a", "1", "a", "-"), int64(7))
	f.Add(marker(3, 9, false), int64(4))
	f.Fuzz(func(t *testing.T, b []byte, roundEnd int64) {
		size, err := batch.EntrySize(b)
		if err != nil || size != len(b) {
			return
		}
		x := NewIndex(Limits{Bytes: 480, Load: 0.9, MaxDecompressed: 1 << 20}, 0, 1<<20, nil)
		if ok, err := x.Add(b); err != nil || !ok && x.End() == 0 {
			return
		}
		filter := NewFilter(x, Rules{Now: 1, DeleteRetentionMs: 1, RoundEnd: roundEnd}, nil)
		out, err := filter.Entry(nil, bytes.Clone(b))
		if err != nil || len(out) == 0 {
			return
		}
		var before, after batch.Reader
		if err := after.Reset(out, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := before.Reset(b, 1<<20); err != nil {
			t.Fatal(err)
		}
		var old, kept batch.Record
		for after.Next(&kept) {
			for before.Next(&old) && old.Offset != kept.Offset {
			}
			if old.Offset != kept.Offset || old.Timestamp != kept.Timestamp || !bytes.Equal(old.Key, kept.Key) || !bytes.Equal(old.Value, kept.Value) {
				t.Fatalf("record %+v came out, %+v went in", kept, old)
			}
		}
		if after.Err() != nil {
			t.Fatal(after.Err())
		}
	})
}

func BenchmarkOffsets(b *testing.B) {
	o := newOffsets(1<<26, 0.9, 1<<40)
	key := make([]byte, 16)
	for i := 0; b.Loop(); i++ {
		for k := range 8 {
			key[k] = byte(i % 2_000_000 >> (8 * k))
		}
		o.put(key, int64(i))
	}
}
