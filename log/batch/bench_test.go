package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchBatch is a batch of about 64 KiB before compression, with text that compresses like text does.
func benchBatch(b *testing.B, codec Codec, size int) ([]byte, int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := make([][]byte, 500)
	for i := range words {
		words[i] = fmt.Appendf(nil, "%x ", rnd.Uint64()>>(rnd.UintN(50)))
	}
	var w Builder
	w.Reset(Options{Codec: codec})
	for w.Size() < 64<<10-size {
		value := make([]byte, 0, size+32)
		for len(value) < size {
			value = append(value, words[rnd.IntN(len(words))]...)
		}
		w.Append(1_700_000_000_000+int64(w.Len()/10), nil, value[:size])
	}
	out, err := w.Finish(nil)
	if err != nil {
		b.Fatal(err)
	}
	return out, w.Size() + HeaderSize
}

func BenchmarkCheck(b *testing.B) {
	for _, codec := range codecs {
		for _, size := range []int{1024, 100} {
			b.Run(fmt.Sprintf("codec%d/%dB", codec, size), func(b *testing.B) {
				in, inflated := benchBatch(b, codec, size)
				var c Checker
				r := anyTime()
				if _, err := c.Check(in, r); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(inflated))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Check(in, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, codec := range codecs {
		b.Run(fmt.Sprintf("codec%d/100B", codec), func(b *testing.B) {
			in, inflated := benchBatch(b, codec, 100)
			var r Reader
			var rec Record
			b.SetBytes(int64(inflated))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Reset(in, 0); err != nil {
					b.Fatal(err)
				}
				for r.Next(&rec) {
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
			}
		})
	}
}

// BenchmarkDowngrade: MB of stored records a second that become messages of magic 1.
func BenchmarkDowngrade(b *testing.B) {
	for _, size := range []int{100, 1000} {
		for _, codec := range []Codec{None, Gzip, Snappy, LZ4} {
			b.Run(fmt.Sprintf("%d bytes/codec %d", size, codec), func(b *testing.B) {
				data, n := benchBatch(b, codec, size)
				var d Downgrader
				var out []byte
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if err := d.Start(data, 1, 0); err != nil {
						b.Fatal(err)
					}
					var err error
					if out, _, err = d.Next(out[:0], 1<<30); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
