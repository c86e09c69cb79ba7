package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"gregor/log/batch"
	"gregor/log/compact"
)

// TestCleanConcurrent cleans a log while it is written, read and cut at its start: no reader sees anything but whole batches that follow each other, and
// a slice that was taken before stays readable.
func TestCleanConcurrent(t *testing.T) {
	o := options(newFS(t))
	o.Config = Config{SegmentBytes: 2000, IndexIntervalBytes: 100, Compacted: true, FileDeleteDelayMs: 0}
	l := mustOpen(t, o)
	var stop atomic.Bool
	var others sync.WaitGroup
	for seed := range uint64(2) {
		others.Go(func() { readWhileCleaned(t, l, seed, &stop) })
	}
	others.Go(func() {
		for rng := rng(9); !stop.Load(); {
			if rng.IntN(20) == 0 {
				from, high := l.StartOffset(), l.HighWatermark()
				if err := l.AdvanceStart(from + rng.Int64N(high-from+1)/4); err != nil {
					t.Error(err)
				}
			}
			if _, err := l.Cleanable(0, true); err != nil {
				t.Error(err)
			}
		}
	})
	cleaned, again := 0, 0
	for round := range 60 {
		for i := range 30 {
			var w batch.Builder
			w.Reset(batch.Options{})
			w.Append(1000, fmt.Appendf(nil, "key-%d", (round*7+i)%11), fmt.Appendf(nil, "value %d of %d", i, round))
			b, err := w.Finish(nil)
			must(t, err)
			mustAppend(t, l, b)
		}
		must(t, l.Flush())
		done, err := l.Clean(context.Background(), CleanOptions{Bound: l.RecoveryPoint(), Index: compact.Limits{Bytes: 2000, Load: 0.9}})
		switch {
		case errors.Is(err, ErrCleanAgain):
			again++
		case err != nil:
			t.Fatal(err)
		case done.SegmentsOld > done.SegmentsNew:
			cleaned++
		}
	}
	stop.Store(true)
	others.Wait()
	if cleaned == 0 {
		t.Errorf("nothing was cleaned, %d times the log had changed", again)
	}
	must(t, l.Close())
}

func readWhileCleaned(t *testing.T, l *Log, seed uint64, stop *atomic.Bool) {
	rng := rng(seed)
	for !stop.Load() {
		from, high := l.StartOffset(), l.HighWatermark()
		offset := from + rng.Int64N(high-from+1)
		s, err := l.Read(offset, 4000, ToHighWatermark, true)
		if errors.Is(err, ErrOffsetOutOfRange) && l.StartOffset() > offset {
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		if s.Size == 0 {
			if offset < high {
				t.Errorf("nothing is at offset %d, the high watermark is %d", offset, high)
			}
			continue
		}
		b := content(t, &s)
		s.Release()
		for next := offset; len(b) >= batch.HeaderSize; {
			e, err := batch.ReadEntry(b)
			if err != nil || e.LastOffset < next {
				t.Errorf("batch %+v after %d, %v", e, next, err)
				return
			}
			if e.Size > len(b) {
				break
			}
			if err := batch.Verify(b); err != nil {
				t.Error(err)
				return
			}
			b, next = b[e.Size:], e.LastOffset+1
		}
	}
}

// BenchmarkClean compacts a log of 64 MiB on the disk in which each of 100,000 keys was written six times.
func BenchmarkClean(b *testing.B) {
	for _, codec := range []batch.Codec{batch.None, batch.LZ4, batch.Zstd} {
		b.Run(fmt.Sprint("codec=", codec), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				o := osOptions(b)
				o.Config = Config{SegmentBytes: 8 << 20, Compacted: true, FlushMessages: 1 << 40}
				l := mustOpen(b, o)
				fillKeys(b, l, codec)
				must(b, l.Flush())
				size := l.Size()
				b.StartTimer()
				done, err := l.Clean(b.Context(), CleanOptions{Bound: l.RecoveryPoint(), Index: compact.Limits{Bytes: 128 << 20, Load: 0.9}, BufferBytes: 256 << 10})
				must(b, err)
				b.StopTimer()
				b.SetBytes(size)
				b.ReportMetric(float64(done.IndexBytes), "index-bytes")
				must(b, l.Delete())
				b.StartTimer()
			}
		})
	}
}

func fillKeys(b *testing.B, l *Log, codec batch.Codec) {
	var w batch.Builder
	value := make([]byte, 100)
	rng := rng(1)
	for n := 0; n < 600_000; {
		w.Reset(batch.Options{Codec: codec})
		for range 100 {
			for i := range value[:80] {
				value[i] = byte(rng.Uint32())
			}
			w.Append(1000, fmt.Appendf(nil, "key-%08d", n%100_000), value)
			n++
		}
		set, err := w.Finish(nil)
		must(b, err)
		mustAppend(b, l, set)
	}
}
