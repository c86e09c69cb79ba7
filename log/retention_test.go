package log

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// stamped makes a log with a segment for each timestamp, each of two batches of 300 bytes: the first with the timestamp, the second with one that is
// 10 older. All is synced.
func stamped(t *testing.T, o Options, timestamps ...int64) *Log {
	t.Helper()
	o.Config = Config{SegmentBytes: 650, IndexIntervalBytes: 1}
	l := mustOpen(t, o)
	for _, ts := range timestamps {
		for _, back := range []int64{0, 10} {
			b := batchOf(t, 1, 225, ts-back, batch.Options{})
			mustAppend(t, l, b)
		}
	}
	must(t, l.Flush())
	if n := len(*l.list.Load()); n != max(len(timestamps), 1) {
		t.Fatalf("%d segments for %v", n, timestamps)
	}
	return l
}

func retain(t *testing.T, l *Log, r Retention) (due bool) {
	t.Helper()
	due, err := l.Retain(t.Context(), r)
	must(t, err)
	return due
}

func TestRetain(t *testing.T) {
	const now = 1_700_000_000_000 // that of newClock
	for _, tc := range []struct {
		name  string
		times []int64 // of the segments
		keep  Retention
		start int64 // wanted; a segment has two offsets
	}{
		{"no limit", []int64{now - 1000, now}, Forever(), 0},
		{"empty", nil, Retention{0, 0}, 0},
		{"nothing is old", []int64{now - 100, now}, Retention{100, -1}, 0},
		{"one is old", []int64{now - 101, now}, Retention{100, -1}, 2},
		{"an old one behind a new one stays", []int64{now, now - 1000, now}, Retention{100, -1}, 0},
		{"all are old, the active one too", []int64{now - 300, now - 200, now - 101}, Retention{100, -1}, 6},
		{"retention.ms 0", []int64{now - 2, now - 1, now}, Retention{0, -1}, 4},
		{"future", []int64{now + 1_000_000, now - 1000, now}, Retention{100, -1}, 0},
		{"far future", []int64{now - 200, 1<<62 + 10, now}, Retention{100, -1}, 2},
		{"before 1970", []int64{10, now}, Retention{now - 11, -1}, 2},
		{"just large enough", []int64{now, now, now}, Retention{-1, 1200}, 2},
		{"not too large", []int64{now, now, now}, Retention{-1, 1201}, 0},
		{"far too large", []int64{now, now, now}, Retention{-1, 1}, 4},
		{"retention.bytes 0", []int64{now, now, now}, Retention{-1, 0}, 6},
		{"both", []int64{now - 500, now - 400, now - 300, now}, Retention{350, 1800}, 4},
		{"retention.bytes beyond", []int64{now}, Retention{-1, 1 << 62}, 0},
		{"retention.ms beyond", []int64{now}, Retention{1 << 62, -1}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(newFS(t))
			l := stamped(t, o, tc.times...)
			end := l.EndOffset()
			due := retain(t, l, tc.keep)
			if l.StartOffset() != tc.start || due != (tc.start > 0) {
				t.Fatalf("log start %d, due %v; want %d", l.StartOffset(), due, tc.start)
			}
			must(t, l.DeleteBelowStart())
			if base := (*l.list.Load())[0].base; base != tc.start || l.EndOffset() != end {
				t.Fatalf("offsets [%d,%d)", base, l.EndOffset())
			}
			if retain(t, l, tc.keep) {
				t.Fatal("not done at once")
			}
			mustAppend(t, l, batchOf(t, 1, 10, now, batch.Options{}))
			must(t, l.Close())
			l = mustOpen(t, reopened(o, l, true))
			defer l.Abandon()
			if l.StartOffset() != tc.start || l.EndOffset() != end+1 {
				t.Fatalf("reopened: offsets [%d,%d)", l.StartOffset(), l.EndOffset())
			}
		})
	}
}

// TestRetainBelowHighWatermark keeps what is not durable, however old.
func TestRetainBelowHighWatermark(t *testing.T) {
	o := options(newFS(t))
	l := stamped(t, o, 1000, 2000)
	mustAppend(t, l, batchOf(t, 1, 225, 3000, batch.Options{})) // rolls
	retain(t, l, Retention{1, 0})
	if l.StartOffset() != 4 || len(*l.list.Load()) != 3 {
		t.Fatalf("log start %d", l.StartOffset())
	}
	must(t, l.Flush())
	retain(t, l, Retention{1, 0})
	must(t, l.DeleteBelowStart())
	if l.StartOffset() != 5 || l.Size() != 0 {
		t.Fatalf("log start %d, %d bytes", l.StartOffset(), l.Size())
	}
	must(t, l.Close())
}

// TestRetainOnlyBelowStart is what a topic without cleanup.policy delete gets.
func TestRetainOnlyBelowStart(t *testing.T) {
	l := stamped(t, options(newFS(t)), 1, 2, 3)
	must(t, l.MoveStart(3))
	if !retain(t, l, Forever()) {
		t.Fatal("nothing to delete")
	}
	must(t, l.DeleteBelowStart())
	if base := (*l.list.Load())[0].base; base != 2 || l.StartOffset() != 3 {
		t.Fatalf("base %d, start %d", base, l.StartOffset())
	}
	must(t, l.Close())
}

// TestRetainByFileTime has no timestamps to go by.
func TestRetainByFileTime(t *testing.T) {
	mem := newFS(t)
	o := options(mem)
	c := newClock()
	o.Now = c.Now
	c.mu.Lock()
	c.now = time.Now() // crashfs stamps files with the real time
	c.mu.Unlock()
	l := stamped(t, o, -1, -1, -1)
	if retain(t, l, Retention{60_000, -1}) {
		t.Fatal("files of this minute are older than a minute")
	}
	must(t, mem.SyncAll("/"))
	c.advance(2 * time.Minute)
	// After an unclean stop the time of what was recovered is not believed.
	again := reopened(o, l, false)
	again.FS, again.RecoveryPoint = mem.CrashClone(rng(1), crashfs.LoseAll()), 3
	cut := mustOpen(t, again)
	retain(t, cut, Retention{60_000, -1})
	if cut.StartOffset() != 2 {
		t.Fatalf("after an unclean stop the log starts at %d", cut.StartOffset())
	}
	cut.Abandon()
	retain(t, l, Retention{60_000, -1})
	if l.StartOffset() != 6 {
		t.Fatalf("log start %d", l.StartOffset())
	}
	must(t, l.Close())
}

// TestRetainCheckedIndex damages the indexes of segments whose largest timestamp lies in their middle. Nothing may be deleted on their word.
func TestRetainCheckedIndex(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, exts := range [][]string{{timeExt}, {timeExt, indexExt}, {indexExt}} {
			for name, harm := range damage {
				t.Run(fmt.Sprintf("clean=%v/%v/%s", clean, exts, name), func(t *testing.T) {
					o := options(newFS(t))
					o.Config = Config{SegmentBytes: 6000, IndexIntervalBytes: 1}
					l := mustOpen(t, o)
					var peaks []int64 // by segment
					for i := range 90 {
						ts := int64(1000 + i)
						switch { // the batches after the peak are older than those before it
						case i%30 == 20:
							ts = 50_000 + int64(i)
						case i%30 > 20:
							ts = 500
						}
						mustAppend(t, l, batchOf(t, 1, 120, ts, batch.Options{}))
						if n := len(*l.list.Load()); n > len(peaks) {
							peaks = append(peaks, 0)
						}
						peaks[len(peaks)-1] = max(peaks[len(peaks)-1], ts)
					}
					must(t, l.Flush())
					if clean {
						must(t, l.Close())
					} else {
						l.Abandon()
					}
					for _, ext := range exts {
						harmFiles(t, o, ext, harm)
					}
					o = reopened(o, l, clean)
					o.Now = func() time.Time { return time.UnixMilli(60_000) }
					l = mustOpen(t, o)
					defer l.Abandon()
					for _, border := range []int64{2000, 50_020, 50_030, 50_051} {
						retain(t, l, Retention{60_000 - border, -1})
						want := slices.IndexFunc(peaks, func(peak int64) bool { return peak >= border })
						if at := (*l.list.Load()).find(l.StartOffset()); at != want {
							t.Fatalf("older than %d: the log starts in segment %d, want %d: %v", border, at, want, peaks)
						}
					}
				})
			}
		}
	}
}

// TestRetainFaults fails calls of the file system: nothing is lost that was to stay, and retention goes on when it can.
func TestRetainFaults(t *testing.T) {
	calls := 0
	for skip := 0; skip == 0 || calls > skip-1; skip++ {
		mem := newFS(t)
		seam := faultfs.New(mem)
		o := options(seam)
		l := stamped(t, o, 100, 200, 300, 1<<60)
		must(t, l.Close())
		o.Config = Config{SegmentBytes: 650, IndexIntervalBytes: 1}
		l = mustOpen(t, reopened(o, l, true))
		l.handles.Close() // files are opened again and again
		calls = 0
		remove := seam.Add(faultfs.Rule{Err: syscall.EIO, Match: func(faultfs.Op) bool { calls++; return calls == skip+1 }})
		_, err := l.Retain(t.Context(), Retention{1, -1})
		if err == nil {
			err = l.DeleteBelowStart()
		}
		remove()
		if err == nil && l.StartOffset() != 6 || err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("call %d: log start %d, %v", skip, l.StartOffset(), err)
		}
		if l.Err() == nil {
			retain(t, l, Retention{1, -1})
			must(t, l.DeleteBelowStart())
			if l.StartOffset() != 6 {
				t.Fatalf("call %d: then the log starts at %d", skip, l.StartOffset())
			}
		}
		l.Abandon()
		again := reopened(o, l, false)
		again.FS = mem.CrashClone(rng(1), crashfs.Random())
		l = mustOpen(t, again)
		if l.StartOffset() > 6 || l.EndOffset() != 8 {
			t.Fatalf("call %d: offsets [%d,%d) on the disk", skip, l.StartOffset(), l.EndOffset())
		}
		l.Abandon()
	}
	if calls < 15 {
		t.Fatalf("only %d calls", calls)
	}
}

func TestRetainStops(t *testing.T) {
	l := stamped(t, options(newFS(t)), 1, 2, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Retain(ctx, Retention{1, -1}); !errors.Is(err, context.Canceled) || l.StartOffset() != 0 {
		t.Fatalf("%v, log start %d", err, l.StartOffset())
	}
	must(t, l.Close())
	if _, err := l.Retain(t.Context(), Retention{1, -1}); !errors.Is(err, ErrClosed) {
		t.Fatalf("closed: %v", err)
	}
}

// retentionModel is what retention should do, from the batches alone.
func (m *crashModel) retentionModel(l *Log, r Retention) int64 {
	type span struct{ base, size, newest int64 }
	var spans []span
	for _, s := range *l.list.Load() {
		spans = append(spans, span{base: s.base, newest: -1})
	}
	for base, b := range m.written {
		if base < spans[0].base || base >= l.EndOffset() {
			continue
		}
		i := len(spans) - 1
		for spans[i].base > base {
			i--
		}
		h, err := batch.ReadHeader(b)
		must(m.t, err)
		spans[i].size += int64(len(b))
		spans[i].newest = max(spans[i].newest, h.MaxTimestamp)
	}
	total := int64(0)
	for i := range spans {
		if i+1 == len(spans) || spans[i+1].base > l.StartOffset() {
			total += spans[i].size
		}
	}
	start, now := l.StartOffset(), m.clock.Now().UnixMilli()
	bySize := r.Bytes >= 0
	for i, s := range spans {
		next := l.EndOffset()
		if i+1 < len(spans) {
			next = spans[i+1].base
		}
		if next <= l.StartOffset() && i+1 < len(spans) {
			continue
		}
		if bySize = bySize && total-s.size >= r.Bytes; bySize {
			total -= s.size
		}
		old := r.Ms >= 0 && now-s.newest > r.Ms
		if next > l.HighWatermark() || s.size == 0 || !bySize && !old {
			break
		}
		start = next
	}
	return start
}

// retain applies random limits and compares with the model.
func (m *crashModel) retain(l *Log) {
	r := Retention{Ms: m.clock.Now().UnixMilli() - m.rng.Int64N(m.ts+200), Bytes: m.rng.Int64N(2*l.Size() + 1)}
	switch m.rng.IntN(3) {
	case 0:
		r.Ms = -1
	case 1:
		r.Bytes = -1
	}
	want := m.retentionModel(l, r)
	before := l.StartOffset()
	due, err := l.Retain(m.t.Context(), r)
	must(m.t, err)
	if l.StartOffset() != want || want > before && !due {
		m.t.Fatalf("retention %+v moves the log start from %d to %d, want %d; due %v", r, before, l.StartOffset(), want, due)
	}
	if m.rng.IntN(2) == 0 {
		m.checkpoint()
	}
	must(m.t, l.DeleteBelowStart())
	if base := (*l.list.Load())[0].base; base > want {
		m.t.Fatalf("the first segment is that of %d, the log starts at %d", base, want)
	}
}

// TestDeletedFilesAreAll looks for files of deleted segments that stay.
func TestDeletedFilesAreAll(t *testing.T) {
	o := options(newFS(t))
	l := stamped(t, o, 1, 2, 3)
	retain(t, l, Retention{1, -1})
	must(t, l.DeleteBelowStart())
	must(t, l.Close())
	for _, name := range fileNames(t, o) {
		if strings.HasPrefix(name, fileName(6, "")) || filepath.Ext(name) == "" {
			continue
		}
		t.Errorf("%s is there", name)
	}
}
