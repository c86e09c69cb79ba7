package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/producer"
)

func TestAppendReadReopen(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, n := range []int{0, 1, 2, 100} {
			t.Run(fmt.Sprintf("clean=%v/%d", clean, n), func(t *testing.T) {
				o := options(newFS(t))
				o.Config.SegmentBytes = 4000
				l := mustOpen(t, o)
				want := fill(t, l, n)
				if got := l.HighWatermark(); got != 0 {
					t.Fatalf("high watermark is %d before a sync", got)
				}
				must(t, l.Flush())
				end := int64(3 * n)
				if l.EndOffset() != end || l.HighWatermark() != end || l.RecoveryPoint() != end {
					t.Fatalf("end %d, high watermark %d, recovery point %d, want %d", l.EndOffset(), l.HighWatermark(), l.RecoveryPoint(), end)
				}
				sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, end)
				size := l.Size()
				if clean {
					must(t, l.Close())
				} else {
					l.Abandon()
				}
				l = mustOpen(t, reopened(o, l, clean))
				if l.EndOffset() != end || l.HighWatermark() != end || l.Size() != size {
					t.Fatalf("reopened: end %d, high watermark %d, size %d, want %d and %d", l.EndOffset(), l.HighWatermark(), l.Size(), end, size)
				}
				for from := range end {
					got := readAll(t, l, from, ToLogEnd)
					sameBatches(t, got, want, from/3*3, end)
				}
				must(t, l.Close())
			})
		}
	}
}

func TestReadLimits(t *testing.T) {
	o := options(newFS(t))
	o.Config.SegmentBytes = 2000
	l := mustOpen(t, o)
	defer l.Close()
	fill(t, l, 20)
	must(t, l.Flush())
	high := l.HighWatermark()
	fill(t, l, 5)
	for _, tc := range []struct {
		name   string
		offset int64
		limit  ReadLimit
		empty  bool
		err    error
	}{
		{"before the start", -1, ToLogEnd, true, ErrOffsetOutOfRange},
		{"start", 0, ToHighWatermark, false, nil},
		{"last visible", high - 1, ToHighWatermark, false, nil},
		{"high watermark", high, ToHighWatermark, true, nil},
		{"above the high watermark", high + 4, ToHighWatermark, true, nil},
		{"above it for a follower", high + 4, ToLogEnd, false, nil},
		{"end", l.EndOffset(), ToLogEnd, true, nil},
		{"above the end", l.EndOffset() + 1, ToLogEnd, true, ErrOffsetOutOfRange},
		{"stable", high - 1, ToLastStable, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := l.Read(tc.offset, 1<<20, tc.limit, true)
			defer s.Release()
			if !errors.Is(err, tc.err) || (s.Size == 0) != tc.empty {
				t.Fatalf("got %d bytes, %v", s.Size, err)
			}
			if s.Size == 0 {
				return
			}
			last := int64(-1)
			for b := content(t, &s); len(b) > 0; {
				e, err := batch.ReadEntry(b)
				must(t, err)
				last, b = e.LastOffset, b[e.Size:]
			}
			if bound := l.limitOffset(tc.limit); last >= bound {
				t.Fatalf("read offset %d, limit is %d", last, bound)
			}
		})
	}
}

func TestReadSizes(t *testing.T) {
	l := mustOpen(t, options(newFS(t)))
	defer l.Close()
	fill(t, l, 4)
	must(t, l.Flush())
	whole, err := l.Read(0, 1<<20, ToHighWatermark, true)
	must(t, err)
	defer whole.Release()
	for _, tc := range []struct {
		max    int
		minOne bool
		want   int
	}{
		{0, false, 0}, {10, false, 10}, {10, true, whole.FirstBatch}, {-5, true, whole.FirstBatch},
		{whole.FirstBatch + 1, true, whole.FirstBatch + 1}, {1 << 30, false, whole.Size},
	} {
		s, err := l.Read(1, tc.max, ToHighWatermark, tc.minOne)
		must(t, err)
		if s.Size != tc.want || s.Pos != 0 || s.Offset != 0 || s.FirstBatch != whole.FirstBatch {
			t.Errorf("max %d, minOne %v: %+v, want size %d", tc.max, tc.minOne, s, tc.want)
		}
		s.Release()
	}
}

func TestSliceOutlivesItsSegment(t *testing.T) {
	for name, kill := range map[string]func(l *Log) error{
		"delete":   (*Log).Delete,
		"close":    (*Log).Close,
		"truncate": func(l *Log) error { return l.TruncateFullyAndStartAt(1000) },
		"retain":   func(l *Log) error { return l.AdvanceStart(l.HighWatermark()) },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			o := options(fsys)
			o.Config.SegmentBytes = 1000
			l := mustOpen(t, o)
			want := fill(t, l, 10)
			must(t, l.Flush())
			var slices []Slice
			for offset := range l.EndOffset() {
				s, err := l.Read(offset, 1, ToHighWatermark, true)
				must(t, err)
				slices = append(slices, s)
			}
			must(t, kill(l))
			for i := range slices {
				sameBatches(t, [][]byte{content(t, &slices[i])}, want, int64(i/3*3), int64(i/3*3+3))
				slices[i].Release()
			}
			must(t, l.Close())
			l.handles.Close()
			if open := fsys.OpenFiles(); len(open) > 0 {
				t.Fatalf("left open: %v", open)
			}
		})
	}
}

func TestRoll(t *testing.T) {
	c := newClock()
	o := options(newFS(t))
	o.Now = c.Now
	o.Config = Config{SegmentMs: 60_000, SegmentIndexBytes: 36, IndexIntervalBytes: 1}
	l := mustOpen(t, o)
	defer func() { l.Close() }()
	segmentsNow := func() int { return len(*l.list.Load()) }
	add := func(ts int64) { mustAppend(t, l, batchOf(t, 1, 10, ts, batch.Options{})) }
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"first", func() { add(1000) }, 1},
		{"young by record time", func() { c.advance(time.Hour); add(60_999) }, 1},
		{"old by record time", func() { add(61_001) }, 2},
		{"older than the first", func() { add(5) }, 2},
		{"time index full", func() { add(61_002); add(61_003); add(61_004); add(61_005) }, 3},
		{"no timestamp", func() { l.mu.Lock(); l.roll(l.list.Load().active()); l.mu.Unlock(); add(-1) }, 4},
		{"young by the clock", func() { c.advance(time.Minute); add(-1) }, 4},
		{"old by the clock", func() { c.advance(time.Second); add(-1) }, 5},
		{"too far for the index", func() {
			l.end.store(mark{offset: l.list.Load().active().base + 1<<31, segment: l.end.load().segment, pos: l.end.load().pos})
			add(-1)
		}, 6},
	} {
		step.do()
		if got := segmentsNow(); got != step.want {
			t.Fatalf("%s: %d segments, want %d", step.name, got, step.want)
		}
	}
	b := batchOf(t, 1, 2000, 1, batch.Options{})
	l.SetConfig(Config{SegmentBytes: 1000})
	if _, err := appendTo(l, b, 0); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large a batch: %v", err)
	}
}

func TestProducers(t *testing.T) {
	o := options(newFS(t))
	o.Config.SegmentBytes = 1000
	l := mustOpen(t, o)
	send := func(id int64, epoch int16, seq int32) (Appended, error) {
		return appendTo(l, batchOf(t, 2, 50, 7000, batch.Options{Producer: &batch.Producer{ID: id, Epoch: epoch, Sequence: seq}}), 3)
	}
	check := func(step string) {
		t.Helper()
		end := l.EndOffset()
		if a, err := send(1, 0, 18); err != nil || !a.Duplicate || a.BaseOffset != end-4 || a.LastOffset != end-3 || a.Timestamp != 7001 {
			t.Fatalf("%s: last batch again: %+v, %v", step, a, err)
		}
		if _, err := send(1, 0, 30); !errors.Is(err, producer.ErrOutOfOrder) {
			t.Fatalf("%s: gap: %v", step, err)
		}
		if _, err := send(2, 4, 0); !errors.Is(err, producer.ErrFenced) {
			t.Fatalf("%s: old epoch: %v", step, err)
		}
		if got := l.Producers(); len(got) != 2 || got[0].LastSequence != 19 || got[1].Epoch != 5 {
			t.Fatalf("%s: producers are %+v", step, got)
		}
	}
	for i := range int32(10) {
		if _, err := send(1, 0, 2*i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := send(2, 5, 0); err != nil {
		t.Fatal(err)
	}
	check("live")
	must(t, l.Close())
	l = mustOpen(t, reopened(o, l, true))
	check("clean stop")
	must(t, l.Flush())
	l.Abandon()
	l = mustOpen(t, reopened(o, l, false))
	check("crash")
	l.Abandon()
	removeFiles(t, o, snapshotExt)
	l = mustOpen(t, reopened(o, l, false))
	check("no snapshots")
	must(t, l.Close())
}

// removeFiles deletes the files of a log whose names end in ext and says how many there were.
func removeFiles(t testing.TB, o Options, ext string) int {
	t.Helper()
	n := 0
	for _, name := range fileNames(t, o) {
		if filepath.Ext(name) == ext {
			must(t, o.FS.Remove(filepath.Join(o.Dir, name)))
			n++
		}
	}
	return n
}

func fileNames(t testing.TB, o Options) []string {
	t.Helper()
	entries, err := o.FS.List(o.Dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDeleteAndRename(t *testing.T) {
	o := options(newFS(t))
	o.Config.SegmentBytes = 1000
	l := mustOpen(t, o)
	want := fill(t, l, 10)
	must(t, l.Flush())
	must(t, l.Rename("/data/gone"))
	sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, l.EndOffset())
	for base, b := range fill(t, l, 10) {
		want[base] = b
	}
	must(t, l.Flush())
	sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, l.EndOffset())
	must(t, l.Delete())
	if _, err := o.FS.Stat("/data/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("after Delete: %v", err)
	}
	if _, err := l.Read(0, 1, ToHighWatermark, true); !errors.Is(err, ErrClosed) {
		t.Fatalf("read after Delete: %v", err)
	}
	if _, err := appendTo(l, batchOf(t, 1, 1, 1, batch.Options{}), 0); !errors.Is(err, ErrClosed) {
		t.Fatalf("append after Delete: %v", err)
	}
	if err := l.Flush(); !errors.Is(err, ErrClosed) {
		t.Fatalf("flush after Delete: %v", err)
	}
}

func TestFlushMessages(t *testing.T) {
	c := newClock()
	o := options(newFS(t))
	o.Now = c.Now
	o.Config = Config{FlushMessages: 7, FlushMs: 1000}
	told := make(committer, 10)
	o.Committer = told
	l := mustOpen(t, o)
	must(t, l.Flush())
	<-told
	fill(t, l, 2)
	if l.HighWatermark() != 6 || l.RecoveryPoint() != 0 || len(told) != 0 {
		t.Fatalf("6 records: high watermark %d, recovery point %d, %d asked", l.HighWatermark(), l.RecoveryPoint(), len(told))
	}
	fill(t, l, 1)
	if l.HighWatermark() != 9 || len(told) != 0 {
		// Dirty was told at Open and not asked for since.
		t.Fatalf("9 records: high watermark %d, %d asked", l.HighWatermark(), len(told))
	}
	runSync(t, l)
	if l.RecoveryPoint() != 9 {
		t.Fatalf("recovery point %d", l.RecoveryPoint())
	}
	fill(t, l, 1)
	must(t, l.Tick())
	c.advance(time.Second)
	if len(told) != 0 {
		t.Fatal("asked too early")
	}
	must(t, l.Tick())
	if len(told) != 1 {
		t.Fatal("flush.ms passed and no sync was asked for")
	}
	must(t, l.Close())
}
