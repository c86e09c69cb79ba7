package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
)

// sealed makes the checksums of a message of magic 0 or 1 right.
func sealed(b []byte) []byte {
	binary.BigEndian.PutUint32(b[legacyCRCPos:], crc32.ChecksumIEEE(b[MagicPos:]))
	return b
}

// wrapper is a compressed set of messages.
func wrapper(t *testing.T, codec Codec, magic byte, offset int64, messages ...[]byte) []byte {
	t.Helper()
	var d deflater
	z, err := d.append(nil, codec, join(messages...))
	if err != nil {
		t.Fatal(err)
	}
	return sealed(message01(magic, byte(codec), offset, z))
}

func TestLegacyKafka(t *testing.T) {
	for name, set := range kafkaFiles(t) {
		if strings.HasPrefix(name, "magic2") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			e, err := ReadEntry(set)
			if err != nil {
				t.Fatal(err)
			}
			var c Converter
			for _, codec := range append(codecs, -1) {
				out, h, err := c.Legacy([]byte("before"), set, anyTime(), codec)
				if err != nil {
					t.Fatal(err)
				}
				b := bytes.TrimPrefix(out, []byte("before"))
				if codec < 0 {
					codec = e.Codec
				}
				if h.Codec() != codec || h.Count != 20 || h.Size() != len(b) || Verify(b) != nil {
					t.Fatalf("header %+v", h)
				}
				compare(t, b, 0, kafkaSamples(name))
				var k Checker
				if again, err := k.Check(b, anyTime()); err != nil || again != h {
					t.Fatalf("Check of it: %+v, %v", again, err)
				}
			}
			r := anyTime()
			r.LogAppendTime = true
			_, h, err := c.Legacy(nil, set, r, None)
			if strings.Contains(name, "append-time") {
				if !errors.Is(err, ErrTimestamp) {
					t.Errorf("the producer set the append time: %v", err)
				}
			} else if err != nil || h.MaxTimestamp != r.Now || h.Attributes != AttrLogAppendTime {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

func TestLegacyTails(t *testing.T) {
	one := sealed(message01(1, 0, 0, []byte("value")))
	var c Converter
	for i := range one {
		for _, n := range []int32{0, 1} {
			set := one[:i]
			if n == 1 {
				set = join(one, one[:i])
			}
			out, h, err := c.Legacy(nil, set, anyTime(), None)
			if err != nil || h.Count != n || (n == 0) != (len(out) == 0) {
				t.Fatalf("%d messages and %d bytes: %d bytes, %+v, %v", n, i, len(out), h, err)
			}
		}
	}
}

// TestLegacyCutInside is about a compressed set whose last message is cut off: it counts as not there.
func TestLegacyCutInside(t *testing.T) {
	one := sealed(message01(1, 0, 0, []byte("value")))
	two := sealed(message01(1, 0, 1, []byte("value")))
	for i := range two {
		var c Converter
		if _, h, err := c.Legacy(nil, wrapper(t, Snappy, 1, 0, one, two[:i]), anyTime(), None); err != nil || h.Count != 1 {
			t.Errorf("%d bytes: %+v, %v", i, h, err)
		}
		if _, _, err := c.Legacy(nil, wrapper(t, Snappy, 1, 0, two[:i]), anyTime(), None); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d bytes only: %v", i, err)
		}
	}
}

func TestLegacyRefuses(t *testing.T) {
	one := func() []byte { return sealed(message01(1, 0, 0, []byte("value"))) }
	rules := func(f func(*Rules)) Rules {
		r := anyTime()
		f(&r)
		return r
	}
	long := wrapper(t, Gzip, 1, 0, sealed(message01(1, 0, 0, make([]byte, 10_000))), sealed(message01(1, 0, 1, make([]byte, 10_000))))
	for name, c := range map[string]struct {
		set  []byte
		r    Rules
		want error
	}{
		"crc":                   {message01(1, 0, 0, nil), anyTime(), ErrCorrupt},
		"crc inside":            {wrapper(t, Gzip, 1, 0, message01(1, 0, 0, nil)), anyTime(), ErrCorrupt},
		"magic 2":               {join(one(), build(t, Options{}, samples(1, 1))), anyTime(), ErrInvalid},
		"mixed":                 {join(one(), sealed(message01(0, 0, 0, nil))), anyTime(), ErrInvalid},
		"zeros follow":          {join(one(), make([]byte, 12)), anyTime(), ErrCorrupt},
		"magic 5":               {func() []byte { b := one(); b[MagicPos] = 5; return b }(), anyTime(), ErrMagic},
		"size":                  {func() []byte { b := one(); b[LengthPos+3] = 3; return b }(), anyTime(), ErrCorrupt},
		"too large":             {one(), rules(func(r *Rules) { r.MaxBytes = 30 }), ErrTooLarge},
		"too large once one":    {join(one(), one(), one(), one(), one(), one(), one(), one()), rules(func(r *Rules) { r.MaxBytes = 64 }), ErrTooLarge},
		"inflates to too much":  {long, rules(func(r *Rules) { r.MaxDecompressed = 15_000 }), ErrTooLarge},
		"sum of all too much":   {join(long, long), rules(func(r *Rules) { r.MaxDecompressed = 25_000 }), ErrTooLarge},
		"no key":                {one(), rules(func(r *Rules) { r.RequireKey = true }), ErrInvalid},
		"time":                  {one(), rules(func(r *Rules) { r.BeforeMax = 100 }), ErrTimestamp},
		"twice compressed":      {wrapper(t, Gzip, 1, 0, wrapper(t, Gzip, 1, 0, one())), anyTime(), ErrInvalid},
		"zstd":                  {wrapper(t, Zstd, 1, 0, one()), anyTime(), ErrCodec},
		"nothing inside":        {wrapper(t, Gzip, 1, 0), anyTime(), ErrInvalid},
		"nothing inside, old":   {wrapper(t, Gzip, 0, 0), anyTime(), ErrInvalid},
		"offset below the last": {wrapper(t, Gzip, 1, 1, one(), sealed(message01(1, 0, 2, nil))), anyTime(), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var k Converter
			if out, _, err := k.Legacy([]byte("x"), c.set, c.r, None); !errors.Is(err, c.want) || string(out) != "x" {
				t.Errorf("%d bytes, %v, want %v", len(out), err, c.want)
			}
			k.Release()
			if _, h, err := k.Legacy(nil, one(), anyTime(), None); err != nil || h.Count != 1 {
				t.Errorf("after it: %+v, %v", h, err)
			}
		})
	}
}

func TestRecompress(t *testing.T) {
	p := Producer{ID: 9, Epoch: 2, Sequence: 44}
	list := samples(30, 4000)
	var c Converter
	for _, from := range codecs {
		for _, to := range codecs {
			b := build(t, Options{Codec: from, Producer: &p, Transactional: true, LeaderEpoch: -1}, list)
			out, err := c.Recompress([]byte("x"), b, to, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := build(t, Options{Codec: to, Producer: &p, Transactional: true, LeaderEpoch: -1}, list)
			if !bytes.Equal(out[1:], want) {
				t.Errorf("codec %d to %d: not what a builder makes", from, to)
			}
			if out, err := c.Recompress([]byte("x"), b, to, len(want)-1, 0); !errors.Is(err, ErrTooLarge) || string(out) != "x" {
				t.Errorf("codec %d to %d over the limit: %v", from, to, err)
			}
		}
		c.Release()
	}
	b := build(t, Options{Codec: Gzip}, list)
	if _, err := c.Recompress(nil, b, None, 0, 1000); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := c.Recompress(nil, b, 7, 0, 0); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
	if _, err := c.Recompress(nil, b[:len(b)-1], None, 0, 0); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
}

func FuzzLegacy(f *testing.F) {
	for _, b := range kafkaFiles(f) {
		if b[MagicPos] < 2 && len(b) < 10_000 {
			f.Add(byte(0), b)
		}
	}
	f.Add(byte(1), sealed(message01(1, 0, 0, []byte("value"))))
	var c Converter
	f.Fuzz(func(t *testing.T, bits byte, set []byte) {
		if size, err := EntrySize(set); err == nil && size <= len(set) && set[MagicPos] < 2 {
			set = bytes.Clone(set)
			sealed(set[:size]) // or nothing gets past the checksum
		}
		r := anyTime()
		r.MaxDecompressed = fuzzLimit
		r.LogAppendTime = bits&1 != 0
		out, h, err := c.Legacy(nil, set, r, -1)
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if err != nil || h.Count == 0 {
			if len(out) != 0 {
				t.Fatal("something was appended")
			}
			return
		}
		r.LogAppendTime = false
		var k Checker
		if again, err := k.Check(out, r); err != nil || again.Count != h.Count {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}

// TestSplit: a set that is too large for one batch becomes several, in order and each within the limit.
func TestSplit(t *testing.T) {
	r := anyTime()
	r.MaxBytes = 3000
	var set []byte
	list := samples(40, 700)
	for i := range list {
		list[i].ts, list[i].headers = 1000+int64(i), nil
		var d Downgrader
		one, err := d.Set(nil, build(t, Options{}, list[i:i+1]), SetOptions{Magic: 1})
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, one...)
	}
	for _, codec := range append(codecs, -1) {
		for _, appendTime := range []bool{false, true} {
			r.LogAppendTime = appendTime
			var c Converter
			if _, _, err := c.Legacy(nil, set, r, None); !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			out, err := c.Split([]byte("before"), set, r, codec)
			if err != nil {
				t.Fatal(err)
			}
			out = bytes.TrimPrefix(out, []byte("before"))
			next, batches := int64(0), 0
			for ; len(out) > 0; batches++ {
				h, err := ReadHeader(out)
				if err != nil || Verify(out) != nil || h.Size() > r.MaxBytes || h.BaseOffset != next || h.Codec() != max(codec, 0) {
					t.Fatalf("batch %d: %+v, %v", batches, h, err)
				}
				want := list[next : next+int64(h.Count)]
				if newest := want[len(want)-1].ts; !appendTime && h.MaxTimestamp != newest || appendTime && h.MaxTimestamp != r.Now {
					t.Errorf("batch %d: largest timestamp %d", batches, h.MaxTimestamp)
				}
				if !appendTime {
					compare(t, out[:h.Size()], next, want)
				}
				next = h.LastOffset() + 1
				out = out[h.Size():]
			}
			if next != 40 || batches < 2 {
				t.Errorf("codec %d: %d records in %d batches", codec, next, batches)
			}
		}
	}
	r.MaxBytes = 500
	var c Converter
	if out, err := c.Split([]byte("x"), set, r, None); !errors.Is(err, ErrTooLarge) || string(out) != "x" {
		t.Errorf("a message alone is too large: %v", err)
	}
}

// TestLegacyBomb: what inflates a thousand times is converted, or refused, in little memory.
func TestLegacyBomb(t *testing.T) {
	const value, n = 60 << 10, 400
	inner := bytes.Repeat(sealed(message01(1, 0, 0, make([]byte, value))), n)
	for _, source := range []Codec{Gzip, Snappy} {
		set := wrapper(t, source, 1, 0, inner)
		batch2 := build(t, Options{Codec: source}, []sample{{value: make([]byte, n*value)}})
		for _, codec := range []Codec{None, -1} {
			for name, run := range map[string]func(*Converter) error{
				"Legacy":     func(c *Converter) error { _, _, err := c.Legacy(nil, set, limited(2<<20), codec); return err },
				"Split":      func(c *Converter) error { _, err := c.Split(nil, set, limited(2<<20), codec); return err },
				"Recompress": func(c *Converter) error { _, err := c.Recompress(nil, batch2, (codec+5)%5, 2<<20, 0); return err },
				"Collect":    func(c *Converter) error { _, _, err := c.Collect(nil, set, limited(2<<20)); return err },
			} {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				err := run(new(Converter))
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 18<<20 && !raceEnabled {
					t.Errorf("%s of codec %d to %d: %d MiB allocated", name, source, codec, used>>20)
				}
				if refused := codec == None || name == "Split"; name != "Collect" && errors.Is(err, ErrTooLarge) != refused || err != nil && !errors.Is(err, ErrTooLarge) {
					t.Errorf("%s of codec %d to %d: %v", name, source, codec, err)
				}
			}
		}
	}
}

func limited(maxBytes int) Rules {
	r := anyTime()
	r.MaxBytes = maxBytes
	return r
}
