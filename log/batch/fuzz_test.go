package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// fuzzLimit is what a fuzzed batch may inflate to.
const fuzzLimit = 1 << 20

// known reports if err is one that callers can map.
func known(err error) bool {
	for _, e := range []error{ErrShort, ErrMagic, ErrCorrupt, ErrInvalid, ErrTimestamp, ErrTooLarge, ErrCodec} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func FuzzReadHeader(f *testing.F) {
	for _, b := range kafkaFiles(f) {
		f.Add(b[:min(len(b), 100)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(b)
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if err == nil {
			again := bytes.Clone(b[:HeaderSize])
			encodeHeader(again, &h)
			if !bytes.Equal(again, b[:HeaderSize]) {
				t.Fatalf("%x\n%x", again, b[:HeaderSize])
			}
		}
		e, err := ReadEntry(b)
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if err == nil && (e.Size < MinEntrySize || e.LastOffset < e.BaseOffset || e.BaseOffset < 0) {
			t.Fatalf("%+v", e)
		}
		if err := Verify(b); err != nil && !known(err) {
			t.Fatal(err)
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, b := range kafkaFiles(f) {
		if b[MagicPos] == 2 {
			h, err := ReadHeader(b)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint16(h.Attributes), h.Count, b[HeaderSize:])
		}
	}
	for _, codec := range codecs {
		b := build(f, Options{Codec: codec}, samples(5, 20))
		f.Add(uint16(codec), int32(5), b[HeaderSize:])
		f.Add(uint16(codec), int32(2), raw(f, codec, 2, 1, join(plain(0), plain(1)))[HeaderSize:])
	}
	var c Checker
	f.Fuzz(func(t *testing.T, attributes uint16, count int32, body []byte) {
		b := wrap(Codec(attributes&7), count, count-1, body)
		binary.BigEndian.PutUint16(b[AttributesPos:], attributes)
		setCRC(b)
		rules := anyTime()
		rules.MaxDecompressed = fuzzLimit
		h, err := c.Check(b, rules)
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		if err := Verify(b); err != nil {
			t.Fatal(err)
		}
		var r Reader
		if err := r.Reset(b, fuzzLimit); err != nil {
			t.Fatal(err)
		}
		var rec Record
		n, latest := int64(0), int64(-1)
		for ; r.Next(&rec); n++ {
			if rec.Offset != n {
				t.Fatalf("record %d has offset %d", n, rec.Offset)
			}
			latest = max(latest, rec.Timestamp)
			for range rec.Headers.All() {
			}
		}
		if r.Err() != nil || n != int64(count) || latest != h.MaxTimestamp {
			t.Fatalf("%d records of %d, max timestamp %d, header %+v: %v", n, count, latest, h, r.Err())
		}
	})
}

func FuzzReader(f *testing.F) {
	for _, b := range kafkaFiles(f) {
		if len(b) < 10_000 {
			f.Add(b)
		}
	}
	var r Reader
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := r.Reset(b, fuzzLimit); err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		total := 0
		var rec Record
		for r.Next(&rec) {
			total += 1 + len(rec.Key) + len(rec.Value)
			for h := range rec.Headers.All() {
				total += len(h.Key) + len(h.Value)
			}
		}
		if err := r.Err(); err != nil && !known(err) {
			t.Fatal(err)
		}
		if total > fuzzLimit+len(b) {
			t.Fatalf("%d bytes came out", total)
		}
	})
}

func FuzzInflate(f *testing.F) {
	body := bytes.Repeat([]byte("inflate me, "), 50)
	for _, codec := range codecs[1:] {
		var d deflater
		z, err := d.append(nil, codec, body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(codec), z)
	}
	var in inflater
	f.Fuzz(func(t *testing.T, codec byte, z []byte) {
		for range 2 { // what was left from the first time must not matter
			r, err := in.open(Codec(codec%5), z, 2)
			if err != nil {
				if !known(err) {
					t.Fatal(err)
				}
				continue
			}
			var w window
			w.reset(r, fuzzLimit)
			var out []byte
			for {
				end, err := w.atEnd()
				if err != nil && !known(err) {
					t.Fatal(err)
				}
				if end || err != nil {
					break
				}
				out = append(out, w.buf[w.pos:w.end]...)
				w.pos = w.end
			}
			if w.err == io.EOF && Codec(codec%5) == LZ4 {
				checkLZ4(t, z, out)
			}
		}
	})
}

// checkLZ4 compares with the library's frame reader.
func checkLZ4(t *testing.T, z, out []byte) {
	t.Helper()
	want := make([]byte, len(out))
	if _, err := io.ReadFull(lz4.NewReader(bytes.NewReader(z)), want); err != nil && len(out) > 0 {
		t.Fatalf("the library refuses it: %v", err)
	}
	if !bytes.Equal(want, out) {
		t.Fatal("the library inflates to something else")
	}
}
