package compact

import (
	"fmt"
	"testing"

	"gregor/log/batch"
)

// sets makes messages of magic 0 or 1 from offset on, in one wrapper if there is a codec.
func sets(t *testing.T, magic int8, codec batch.Codec, offset int64, kv ...string) (entries [][]byte) {
	t.Helper()
	var w batch.Builder
	w.Reset(batch.Options{BaseOffset: offset})
	for i := 0; i < len(kv); i += 2 {
		value := []byte(kv[i+1])
		if kv[i+1] == "-" {
			value = nil
		}
		w.Append(int64(1000+i), []byte(kv[i]), value)
	}
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	var d batch.Downgrader
	set, err := d.Set(nil, b, batch.SetOptions{Magic: magic, Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	for len(set) > 0 {
		size, err := batch.EntrySize(set)
		if err != nil {
			t.Fatal(err)
		}
		entries, set = append(entries, set[:size]), set[size:]
	}
	return entries
}

// TestLegacy: messages of magic 0 and 1 are compacted in their magic; what is cut out of a wrapper leaves the offsets of the others.
func TestLegacy(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4} {
			t.Run(fmt.Sprintf("magic %d codec %d", magic, codec), func(t *testing.T) {
				var in [][]byte
				in = append(in, sets(t, magic, codec, 0, "a", "1", "b", "1", "c", "1", "d", "1", "e", "-")...)
				in = append(in, sets(t, magic, codec, 5, "a", "2", "d", "2", "a", "3")...)
				in = append(in, one(t, batch.Options{BaseOffset: 8}, "c", "2", "x", "1", "x", "2"))
				left(t, in, magic, true, 100, "1:b=1 4:e- 6:d=2 7:a=3 8:c=2 10:x=2 ")
				left(t, in, magic, false, 100, "1:b=1 6:d=2 7:a=3 8:c=2 10:x=2 ")
				// The last message of a round stays whatever it is.
				in = append(in[:len(in)-1], one(t, batch.Options{BaseOffset: 8}, "a", "4", "d", "3"))
				left(t, in, magic, false, 8, "1:b=1 2:c=1 7:a=3 8:a=4 9:d=3 ")
			})
		}
	}
}

func left(t *testing.T, in [][]byte, magic int8, keepDeletes bool, roundEnd int64, want string) {
	t.Helper()
	x := NewIndex(Limits{Bytes: 1 << 20, Load: 0.9}, 0, 1000, nil)
	for _, b := range in {
		if ok, err := x.Add(b); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	f := NewFilter(x, Rules{RoundEnd: roundEnd}, nil)
	f.KeepLegacyDeletes = keepDeletes
	got, r := "", batch.Reader{}
	for _, b := range in {
		out, err := f.Entry(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			continue
		}
		e, err := batch.ReadEntry(out)
		if err != nil || e.Size != len(out) || e.Magic != int8(b[batch.MagicPos]) {
			t.Fatalf("%+v, %v", e, err)
		}
		if err := batch.Verify(out); err != nil {
			t.Fatal(err)
		}
		if err := r.Reset(out, 0); err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for rec := (batch.Record{}); r.Next(&rec); last = rec.Offset {
			value := "=" + string(rec.Value)
			if rec.Value == nil {
				value = "-"
			}
			got += fmt.Sprintf("%d:%s%s ", rec.Offset, rec.Key, value)
			if magic == 0 && e.Magic == 0 && rec.Timestamp != -1 || e.Magic == 1 && rec.Timestamp < 1000 {
				t.Fatalf("timestamp %d", rec.Timestamp)
			}
		}
		if r.Err() != nil || e.LastOffset < last {
			t.Fatal(r.Err(), e.LastOffset, last)
		}
	}
	if got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}
