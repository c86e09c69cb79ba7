package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// zeros is a source of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bombs are some KiB that inflate to 160 MiB of zeros, after the start of one large record.
func bombs(t *testing.T) map[Codec][]byte {
	t.Helper()
	const size = 160 << 20
	start := rec(0, append([]byte{1}, appendVarint(nil, size)...)...)
	start = append(appendVarint(nil, int64(len(start)-1+size+1)), start[1:]...)
	from := func() io.Reader { return io.MultiReader(bytes.NewReader(start), zeros(size+1)) }
	out := map[Codec][]byte{}
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(w, from()); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	out[Zstd] = z.Bytes()
	// A stream of one block after the other, all the same, for snappy; its start is in the first.
	first, err := io.ReadAll(io.LimitReader(from(), xerialBlock))
	if err != nil {
		t.Fatal(err)
	}
	stream := xerial(nil, first)
	block := snappy.Encode(nil, make([]byte, xerialBlock))
	block = append(binary.BigEndian.AppendUint32(nil, uint32(len(block))), block...)
	out[Snappy] = append(stream, bytes.Repeat(block, size/xerialBlock)...)
	return out
}

func TestCheckBomb(t *testing.T) {
	for codec, body := range bombs(t) {
		b := wrap(codec, 1, 0, body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refused(t, b, anyTime(), ErrTooLarge)
		var r Reader
		if err := r.Reset(b, 1<<20); err != nil {
			t.Fatal(err)
		}
		if r.Next(&Record{}) || !errors.Is(r.Err(), ErrTooLarge) {
			t.Errorf("codec %d: read ends with %v", codec, r.Err())
		}
		runtime.ReadMemStats(&after)
		// refused clones the batch; a decoder with its window is some MiB.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(len(b))+24<<20 {
			t.Errorf("codec %d: %d bytes in, %d allocated", codec, len(b), grown)
		}
	}
}

func TestCheckDecompressedLimit(t *testing.T) {
	for _, codec := range codecs[1:] {
		var w Builder
		w.Reset(Options{Codec: codec})
		for range 10 {
			w.Append(1, nil, make([]byte, 20_000))
		}
		b, err := w.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := anyTime()
		r.MaxDecompressed = int64(w.Size())
		var c Checker
		if _, err := c.Check(b, r); err != nil {
			t.Errorf("codec %d: at the limit: %v", codec, err)
		}
		r.MaxDecompressed--
		if _, err := c.Check(b, r); !errors.Is(err, ErrTooLarge) {
			t.Errorf("codec %d: over the limit: %v", codec, err)
		}
	}
}

func TestSnappyFlavours(t *testing.T) {
	body := join(plain(0), plain(1), rec(2, append([]byte{1}, append(appendVarint(nil, 100_000), make([]byte, 100_001)...)...)...))
	stream := func(block int) []byte {
		out := []byte(xerialMagic + "\x00\x00\x00\x01\x00\x00\x00\x01")
		for rest := body; len(rest) > 0; {
			n := min(block, len(rest))
			z := snappy.Encode(nil, rest[:n])
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(z))), z...)
			rest = rest[n:]
		}
		return out
	}
	change := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	half := len(body) / 2
	for _, c := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"raw", snappy.Encode(nil, body), true},
		{"blocks of 10", stream(10), true},
		{"blocks of 1 MiB", stream(1 << 20), true},
		{"two streams", append(xerial(nil, body[:half]), xerial(nil, body[half:])...), true},
		{"header only", stream(10)[:16], false},
		{"half a header", stream(10)[:12], false},
		{"version 0", change(stream(10), 11, 0), false},
		{"little-endian version", change(change(stream(10), 11, 0), 8, 1), true}, // snappy-java asks for at least 1
		{"block past the end", change(stream(1<<20), 16, 1), false},
		{"block of 0", change(change(stream(10), 19, 0), 18, 0), false},
		{"bytes after the last block", append(stream(10), 1, 2, 3), false},
		{"raw that says 4 GiB", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}, false},
		{"raw that says 1 GiB", []byte{0x80, 0x80, 0x80, 0x80, 0x04, 0, 0}, false},
		{"raw, empty", nil, false},
		{"raw, cut", snappy.Encode(nil, body)[:50], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wrap(Snappy, 3, 2, c.body)
			if !c.ok {
				refused(t, b, anyTime(), ErrInvalid)
				return
			}
			var k Checker
			if _, err := k.Check(b, anyTime()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLZ4Frames(t *testing.T) {
	body := join(plain(0), rec(1, append([]byte{1}, append(appendVarint(nil, 200_000), make([]byte, 200_001)...)...)...))
	frame := func(o ...lz4.Option) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(append(o, lz4.ConcurrencyOption(1))...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	// header changes a byte of the frame's header and makes its checksum right.
	header := func(at int, v byte) []byte {
		b := frame(lz4.ChecksumOption(false))
		b[at] = v
		b[6] = byte(xxSum(b[4:6]) >> 8)
		return b
	}
	flip := func(b []byte, at int) []byte {
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	all := []lz4.Option{lz4.ChecksumOption(true), lz4.BlockChecksumOption(true), lz4.SizeOption(uint64(len(body))), lz4.BlockSizeOption(lz4.Block64Kb)}
	for _, c := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"64 KiB blocks", frame(lz4.BlockSizeOption(lz4.Block64Kb)), true},
		{"4 MiB blocks", frame(lz4.BlockSizeOption(lz4.Block4Mb)), true},
		{"all checksums and the size", frame(all...), true},
		{"content checksum flipped", flip(frame(lz4.ChecksumOption(true)), -1), false},
		{"block checksum flipped", flip(frame(lz4.ChecksumOption(false), lz4.BlockChecksumOption(true)), -5), false},
		{"block data flipped", flip(frame(all...), 25), false},
		{"header checksum flipped", flip(frame(lz4.ChecksumOption(false)), 6), false},
		{"dependent blocks", header(4, 0x40), false},
		{"version 2", header(4, 0xa0), false},
		{"reserved flag", header(4, 0x62), false},
		{"dictionary", header(4, 0x61), false},
		{"reserved block bits", header(5, 0x41), false},
		{"block size id 3", header(5, 0x30), false},
		{"another magic", flip(frame(), 0), false},
		{"legacy magic", append([]byte{0x02, 0x21, 0x4c, 0x18}, frame()[4:]...), false},
		{"no end mark", frame(lz4.ChecksumOption(false))[:len(frame(lz4.ChecksumOption(false)))-4], false},
		{"cut in the header", frame()[:6], false},
		{"empty", nil, false},
		{"no blocks", append(frame(lz4.ChecksumOption(false))[:7], 0, 0, 0, 0), false},
		{"block over the size", append(frame(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false))[:7], 1, 0, 1, 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wrap(LZ4, 2, 1, c.body)
			if !c.ok {
				refused(t, b, anyTime(), ErrInvalid)
				return
			}
			var k Checker
			if _, err := k.Check(b, anyTime()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGzipAndZstdDamage(t *testing.T) {
	body := join(plain(0), plain(1))
	for _, codec := range []Codec{Gzip, Zstd} {
		var d deflater
		z, err := d.append(nil, codec, body)
		if err != nil {
			t.Fatal(err)
		}
		half, err := d.append(nil, codec, body[:5])
		if err != nil {
			t.Fatal(err)
		}
		rest, err := d.append(nil, codec, body[5:])
		if err != nil {
			t.Fatal(err)
		}
		var c Checker
		if _, err := c.Check(wrap(codec, 2, 1, append(half, rest...)), anyTime()); err != nil {
			t.Errorf("codec %d: two members: %v", codec, err)
		}
		for i := range z {
			refused(t, wrap(codec, 2, 1, z[:i]), anyTime(), ErrInvalid)
		}
		// The checksum at the end must be looked at although all records are there.
		for i := 1; i <= 4; i++ {
			bad := bytes.Clone(z)
			bad[len(bad)-i] ^= 1
			refused(t, wrap(codec, 2, 1, bad), anyTime(), ErrInvalid)
		}
	}
}

func TestZstdWindows(t *testing.T) {
	body := rec(0, append([]byte{1}, append(appendVarint(nil, 100_000), make([]byte, 100_001)...)...)...)
	for _, c := range []struct {
		window int
		ok     bool
	}{{1 << 10, true}, {8 << 20, true}, {128 << 20, true}, {256 << 20, false}} {
		t.Run(fmt.Sprint(c.window), func(t *testing.T) {
			var out bytes.Buffer
			w, err := zstd.NewWriter(&out, zstd.WithWindowSize(c.window), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
			if err != nil {
				t.Fatal(err)
			}
			// Flushing hides the size of the content, or the encoder would say a smaller window.
			if _, err := w.Write(body[:10]); err != nil || w.Flush() != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(body[10:]); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			b := wrap(Zstd, 1, 0, out.Bytes())
			if !c.ok {
				refused(t, b, anyTime(), ErrInvalid)
				return
			}
			var k Checker
			if _, err := k.Check(b, anyTime()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestXXH32(t *testing.T) {
	// From the reference implementation's sanity table: seed 0.
	for in, want := range map[string]uint32{"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff, "Nobody inspects the spammish repetition": 0xe2293b2f} {
		if got := xxSum([]byte(in)); got != want {
			t.Errorf("%q: %08x, want %08x", in, got, want)
		}
		var x xxh32
		x.reset()
		for i := range in {
			x.write([]byte{in[i]})
		}
		if x.sum() != want {
			t.Errorf("%q byte by byte: %08x", in, x.sum())
		}
	}
}

// xerial is body as snappy-java writes it.
func xerial(dst, body []byte) []byte {
	var d deflater
	dst, err := d.append(dst, Snappy, body)
	if err != nil {
		panic(err)
	}
	return dst
}
