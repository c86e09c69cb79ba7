package log

import (
	"fmt"
	"path/filepath"
	"testing"

	"gregor/log/batch"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// silent is a committer that is told and does nothing.
type silent struct{}

func (silent) Dirty(commit.Source) {}

func osOptions(b testing.TB) Options {
	return Options{FS: vfs.OS(), Dir: filepath.Join(b.TempDir(), "topic-0"), LogStart: -1}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		for _, producer := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/idempotent=%v", size, producer), func(b *testing.B) {
				o := osOptions(b)
				o.Committer = silent{}
				l := mustOpen(b, o)
				defer l.Abandon()
				opts := batch.Options{}
				if producer {
					opts.Producer = &batch.Producer{ID: 5}
				}
				data := batchOf(b, 1, size, 1000, opts)
				h, err := batch.ReadHeader(data)
				must(b, err)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					h.MaxTimestamp++
					if _, err := l.Append(data, h, 1); err != nil {
						b.Fatal(err)
					}
					h.BaseSequence += boolInt(producer)
					if l.EndOffset()%(1<<10) == 0 && l.Size() > 1<<30 {
						b.StopTimer()
						must(b, l.TruncateFullyAndStartAt(l.EndOffset()))
						b.StartTimer()
					}
				}
			})
		}
	}
}

func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func BenchmarkRead(b *testing.B) {
	for _, sealed := range []bool{false, true} {
		for _, size := range []int{1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("sealed=%v/%d", sealed, size), func(b *testing.B) {
				o := osOptions(b)
				l := mustOpen(b, o)
				defer l.Abandon()
				data := batchOf(b, 1, size, 1000, batch.Options{})
				for l.Size() < 128<<20 {
					mustAppend(b, l, data)
				}
				if sealed {
					l.SetConfig(Config{SegmentBytes: int64(len(data))})
					mustAppend(b, l, data)
				}
				must(b, l.Flush())
				end := l.HighWatermark() - 1
				b.ReportAllocs()
				offset := int64(0)
				for b.Loop() {
					s, err := l.Read(offset, 1<<20, ToHighWatermark, true)
					if err != nil || s.Size == 0 {
						b.Fatal(s.Size, err)
					}
					s.Release()
					offset = (offset + 7919) % end
				}
			})
		}
	}
}

// BenchmarkReadTail is a consumer that has caught up.
func BenchmarkReadTail(b *testing.B) {
	l := mustOpen(b, osOptions(b))
	defer l.Abandon()
	data := batchOf(b, 1, 1024, 1000, batch.Options{})
	for range 100 {
		mustAppend(b, l, data)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := l.Read(l.EndOffset()-1, 1<<20, ToLogEnd, true)
		if err != nil || s.Size == 0 {
			b.Fatal(s.Size, err)
		}
		s.Release()
	}
}

// nobody has a size, so that two have different addresses.
type nobody struct{ _ byte }

func (*nobody) Wake() {}

func BenchmarkWatch(b *testing.B) {
	l := mustOpen(b, osOptions(b))
	defer l.Abandon()
	all := make([]nobody, 100)
	for i := range all {
		l.Watch(&all[i], 1<<60, ToHighWatermark)
	}
	b.ReportAllocs()
	var w nobody
	for b.Loop() {
		l.Watch(&w, 10, ToHighWatermark)
		l.waiters.wake(atHigh, 10)
	}
}

// BenchmarkOpen opens 1,000 small logs.
func BenchmarkOpen(b *testing.B) {
	for _, clean := range []bool{true, false} {
		b.Run(fmt.Sprintf("1000/clean=%v", clean), func(b *testing.B) {
			const n = 1000
			o := osOptions(b)
			o.Handles = NewHandleCache(o.FS, 100)
			root := filepath.Dir(o.Dir)
			opts := make([]Options, n)
			for i := range opts {
				o.Dir = filepath.Join(root, fmt.Sprintf("topic-%d", i))
				l := mustOpen(b, o)
				for range 5 {
					mustAppend(b, l, batchOf(b, 10, 100, 1000, batch.Options{Producer: &batch.Producer{ID: 1, Sequence: int32(l.EndOffset())}}))
				}
				must(b, l.Flush())
				opts[i] = reopened(o, l, clean)
				if clean {
					must(b, l.Close())
				} else {
					opts[i].RecoveryPoint = 0
					l.Abandon()
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				logs := make([]*Log, n)
				for i := range opts {
					logs[i] = mustOpen(b, opts[i])
				}
				b.StopTimer()
				for _, l := range logs {
					l.Abandon()
				}
				b.StartTimer()
			}
		})
	}
}
