package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestDowngradeKafka: what Apache Kafka wrote in a new format becomes what it wrote in the old one, byte for byte; compressed sets, whose
// bytes depend on the compressor, when they are inflated again.
func TestDowngradeKafka(t *testing.T) {
	files := kafkaFiles(t)
	compared := 0
	for name, newer := range files {
		for _, magic := range []int8{0, 1} {
			if int8(newer[MagicPos]) <= magic {
				continue
			}
			older := "magic" + string('0'+rune(magic)) + strings.TrimPrefix(name, name[:len("magicN")])
			want, ok := files[older]
			if magic == 0 && !ok { // magic 0 has no timestamp type
				want, ok = files[strings.Replace(older, "-append-time", "", 1)]
			}
			if !ok {
				if !strings.Contains(name, "zstd") {
					t.Errorf("%s: there is no %s", name, older)
				}
				continue
			}
			compared++
			t.Run(name+" to "+older, func(t *testing.T) {
				var d Downgrader
				out, records := []byte("before"), 0
				for b := newer; len(b) > 0; {
					size, err := EntrySize(b)
					if err != nil {
						t.Fatal(err)
					}
					var n int
					if out, n, err = downgrade(&d, out, b, magic, 0); err != nil {
						t.Fatal(err)
					}
					b, records = b[size:], records+n
				}
				if records != 20 {
					t.Fatalf("%d records", records)
				}
				got := bytes.TrimPrefix(out, []byte("before"))
				if !bytes.Equal(inflateSet(t, got), inflateSet(t, want)) {
					t.Errorf("got  %x\nwant %x", got, want)
				}
			})
		}
	}
	if compared < 12 {
		t.Errorf("only %d pairs were compared", compared)
	}
}

// inflateSet is a set with the value of a wrapper inflated, and without the sizes and checksums that depend on the compressor.
func inflateSet(t *testing.T, b []byte) []byte {
	t.Helper()
	var out []byte
	for len(b) > 0 {
		if err := Verify(b); err != nil {
			t.Fatal(err)
		}
		size, err := EntrySize(b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := decodeMessage(b[OverheadSize:size])
		if err != nil {
			t.Fatal(err)
		}
		if m.attributes&7 == 0 {
			out = append(out, b[:size]...)
			b = b[size:]
			continue
		}
		var z inflater
		r, err := z.open(Codec(m.attributes&7), m.value, m.magic)
		if err != nil {
			t.Fatal(err)
		}
		var inside bytes.Buffer
		if _, err := inside.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		header := bytes.Clone(b[:size-len(m.value)])
		clear(header[LengthPos:MagicPos])
		clear(header[len(header)-4:])
		out = append(append(out, header...), inside.Bytes()...)
		b = b[size:]
	}
	return out
}

// TestDowngradeLZ4 is about the header checksum: as it should be in magic 1, over the magic number too in magic 0.
func TestDowngradeLZ4(t *testing.T) {
	b := build(t, Options{Codec: LZ4}, samples(10, 1000))
	var d Downgrader
	for magic := range int8(2) {
		out, _, err := downgrade(&d, nil, b, magic, 0)
		if err != nil {
			t.Fatal(err)
		}
		m, err := decodeMessage(out[OverheadSize:])
		if err != nil {
			t.Fatal(err)
		}
		right, broken := byte(xxSum(m.value[4:6])>>8), byte(xxSum(m.value[:6])>>8)
		if want := []byte{broken, right}[magic]; m.value[6] != want {
			t.Errorf("magic %d: header checksum %02x; right is %02x, broken %02x", magic, m.value[6], right, broken)
		}
	}
}

// TestDowngradeGaps: offsets that compaction left stay; records below the fetch offset are only kept inside wrappers.
func TestDowngradeGaps(t *testing.T) {
	offsets := []int64{1003, 1004, 1009}
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4} {
		var w Builder
		w.Reset(Options{BaseOffset: 1000, Codec: codec})
		for i, offset := range offsets {
			w.AppendRecord(&Record{Offset: offset, Timestamp: 5000 - int64(i), Value: []byte("v")})
		}
		b, err := w.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint32(b[LastDeltaPos:], 20) // records at the end were removed
		setCRC(b)
		for magic := range int8(2) {
			var d Downgrader
			out, n, err := downgrade(&d, nil, b, magic, 1004)
			if err != nil {
				t.Fatal(err)
			}
			want := offsets
			if codec == None {
				want = offsets[1:]
			}
			if n != len(want) {
				t.Errorf("%v to magic %d: %d records", codec, magic, n)
			}
			for len(out) > 0 {
				e, err := ReadEntry(out)
				if err != nil || codec != None && (e.LastOffset != 1009 || magic == 1 && e.MaxTimestamp != 5000) {
					t.Fatalf("%v to magic %d: %+v, %v", codec, magic, e, err)
				}
				var r Reader
				if err := r.Reset(out, 0); err != nil {
					t.Fatal(err)
				}
				var rec Record
				for r.Next(&rec) {
					if len(want) == 0 || rec.Offset != want[0] {
						t.Fatalf("%v to magic %d: offset %d, want %v", codec, magic, rec.Offset, want)
					}
					want = want[1:]
				}
				out = out[e.Size:]
			}
			if len(want) != 0 {
				t.Errorf("%v to magic %d: offsets %v are missing", codec, magic, want)
			}
			if out, n, err := downgrade(&d, nil, b, magic, 1010); codec == None && (len(out) > 0 || n > 0 || err != nil) {
				t.Errorf("all below the fetch offset: %d bytes, %d records, %v", len(out), n, err)
			}
		}
	}
}

func TestDowngradeLeavesOut(t *testing.T) {
	var d Downgrader
	marker := AppendMarker(nil, Producer{ID: 1}, 5, 0, true)
	empty := build(t, Options{Codec: Gzip}, samples(1, 1))[:HeaderSize]
	binary.BigEndian.PutUint32(empty[LengthPos:], HeaderSize-OverheadSize)
	binary.BigEndian.PutUint32(empty[CountPos:], 0)
	for name, b := range map[string][]byte{"marker": marker, "emptied batch": empty} {
		if out, n, err := downgrade(&d, []byte("x"), b, 1, 0); err != nil || n != 0 || string(out) != "x" {
			t.Errorf("%s: %d bytes, %d records, %v", name, len(out), n, err)
		}
	}
	old := sealed(message01(0, 0, 7, []byte("v")))
	if out, n, err := downgrade(&d, nil, old, 1, 100); err != nil || n != 0 || !bytes.Equal(out, old) {
		t.Errorf("old enough: %x, %d records, %v", out, n, err)
	}
}

func TestDowngradeRefuses(t *testing.T) {
	damaged := build(t, Options{Codec: Gzip}, samples(5, 100))
	damaged[len(damaged)-20] ^= 0xff
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"zstd":    {build(t, Options{Codec: Zstd}, samples(1, 1)), ErrCodec},
		"cut off": {build(t, Options{}, samples(1, 1))[:70], ErrShort},
		"damaged": {damaged, ErrInvalid},
		"magic 3": {append(make([]byte, 11), 60, 0, 0, 0, 0, 3), ErrMagic},
	} {
		var d Downgrader
		if out, n, err := downgrade(&d, []byte("x"), c.b, 0, 0); !errors.Is(err, c.want) || n != 0 || string(out) != "x" {
			t.Errorf("%s: %d bytes, %d records, %v", name, len(out), n, err)
		}
	}
}

// FuzzDowngrade: whatever is stored, what comes out are whole messages that read as the same records.
func FuzzDowngrade(f *testing.F) {
	for _, b := range kafkaFiles(f) {
		f.Add(b, byte(0))
		f.Add(b, byte(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, m byte) {
		magic := int8(m & 1)
		size, err := EntrySize(b)
		if err != nil || size > len(b) || int8(b[MagicPos]) <= magic {
			return
		}
		var d Downgrader
		out, n, err := downgrade(&d, nil, b, magic, 0)
		if err != nil {
			if !known(err) || len(out) > 0 {
				t.Fatalf("%d bytes, %v", len(out), err)
			}
			return
		}
		var from, to Reader
		if err := from.Reset(b[:size], 0); err != nil {
			t.Fatal(err)
		}
		for len(out) > 0 {
			if err := Verify(out); err != nil {
				t.Fatal(err)
			}
			size, _ := EntrySize(out)
			if err := to.Reset(out[:size], 0); err != nil {
				if b[0]&0x80 != 0 || int64(binary.BigEndian.Uint64(b)) > 1<<60 { // offsets that overflow
					return
				}
				t.Fatal(err)
			}
			var a, c Record
			for to.Next(&c) {
				for from.Next(&a) && a.Offset < 0 { // message below offset 0 are left out
				}
				if !bytes.Equal(a.Key, c.Key) || !bytes.Equal(a.Value, c.Value) {
					t.Fatalf("record %+v, want %+v", c, a)
				}
				n--
			}
			out = out[size:]
		}
		if n != 0 {
			t.Errorf("%d records too few", n)
		}
	})
}

// downgrade converts the whole entry b.
func downgrade(d *Downgrader, dst, b []byte, magic int8, from int64) ([]byte, int, error) {
	if err := d.Start(b, magic, from); err != nil {
		return dst, 0, err
	}
	defer d.Release()
	out, done, err := d.Next(dst, math.MaxInt)
	if err == nil && !done {
		err = errors.New("not done")
	}
	if err != nil {
		return out, 0, err
	}
	return out, d.Records(), nil
}

// TestDowngradePieces: however it is cut, it is the same.
func TestDowngradePieces(t *testing.T) {
	var d Downgrader
	for _, codec := range []Codec{None, Gzip} {
		b := build(t, Options{Codec: codec}, samples(200, 300))
		want, _, err := downgrade(&d, nil, b, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{0, 1000, 10_000, len(want), len(want) + 1} {
			if err := d.Start(b, 1, 0); err != nil {
				t.Fatal(err)
			}
			var all []byte
			for done := false; !done; {
				var piece []byte
				if piece, done, err = d.Next(nil, limit); err != nil {
					t.Fatal(err)
				}
				if codec == None && len(piece) > limit+2000 {
					t.Errorf("limit %d: a piece of %d bytes", limit, len(piece))
				}
				all = append(all, piece...)
			}
			if !bytes.Equal(all, want) || d.Records() != 200 {
				t.Errorf("%v, limit %d: %d bytes and %d records, want %d and 200", codec, limit, len(all), d.Records(), len(want))
			}
		}
	}
}
