package log

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"gregor/log/batch"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// TestConcurrent has writers, consumers, time searches, retention and the real committer work on one log of small segments.
func TestConcurrent(t *testing.T) {
	fsys := vfs.OS()
	dir := t.TempDir()
	c := commit.New(fsys, dir, nil)
	defer c.Close()
	o := Options{FS: fsys, Dir: filepath.Join(dir, "topic-0"), LogStart: -1, Committer: c, Handles: NewHandleCache(fsys, 3)}
	o.Config = Config{SegmentBytes: 8 << 10, IndexIntervalBytes: 200}
	l := mustOpen(t, o)
	const writers, batches = 4, 300
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := range batches {
				if _, err := appendTo(l, batchOf(t, 1+i%3, 100, int64(i), batch.Options{}), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		reading.Go(func() { consume(t, l, &done) })
	}
	reading.Go(func() {
		for !done.Load() {
			if _, _, err := l.SearchTimestamp(rand.Int64N(batches), ToHighWatermark); err != nil {
				t.Error(err)
			}
			if _, _, err := l.MaxTimestamp(ToLogEnd); err != nil {
				t.Error(err)
			}
			l.Size()
			l.Producers()
			l.EpochEnd(0)
		}
	})
	writing.Wait()
	// The last batch wakes who waits at the end, after done can be seen.
	done.Store(true)
	mustAppend(t, l, batchOf(t, 1, 1, batches, batch.Options{}))
	must(t, l.Flush())
	reading.Wait()
	must(t, l.AdvanceStart(l.HighWatermark()/2))
	must(t, l.Close())
	o.Handles.Close()
	o.Clean, o.RecoveryPoint, o.LogStart = true, l.RecoveryPoint(), l.StartOffset()
	o.Handles = NewHandleCache(fsys, 3)
	l = mustOpen(t, o)
	m := &crashModel{t: t, rng: rng(1), ts: batches, written: make(map[int64][]byte)}
	got := readAll(t, l, l.StartOffset(), ToHighWatermark)
	m.checkTimes(l, got)
	must(t, l.Close())
	o.Handles.Close()
}

// consume follows the log to its end, waiting for each step, and sees dense offsets.
func consume(t *testing.T, l *Log, done *atomic.Bool) {
	w := &channel{make(chan struct{}, 1)}
	offset := int64(0)
	for {
		s, err := l.Read(offset, 4<<10, ToHighWatermark, true)
		if err != nil {
			t.Error(err)
			return
		}
		if s.Size == 0 {
			if done.Load() && offset == l.EndOffset() {
				return
			}
			if !l.Watch(w, offset+1, ToHighWatermark) {
				if done.Load() && offset == l.EndOffset() {
					l.Unwatch(w)
					return
				}
				<-w.c
			}
			continue
		}
		b := content(t, &s)
		s.Release()
		for len(b) >= batch.HeaderSize {
			h, err := batch.ReadHeader(b)
			if err != nil || h.BaseOffset > offset || h.LastOffset() < offset {
				t.Errorf("at offset %d: %+v, %v", offset, h, err)
				return
			}
			if h.Size() > len(b) {
				break
			}
			if err := batch.Verify(b[:h.Size()]); err != nil {
				t.Error(err)
			}
			b, offset = b[h.Size():], h.LastOffset()+1
		}
	}
}

// TestReadersDuringTruncation has readers of what is stable meet truncations of what is not.
func TestReadersDuringTruncation(t *testing.T) {
	o := options(newFS(t))
	o.Config = Config{SegmentBytes: 1500, IndexIntervalBytes: 100}
	l := mustOpen(t, o)
	want := fill(t, l, 40)
	must(t, l.Flush())
	stable := l.EndOffset()
	var done atomic.Bool
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !done.Load() {
				offset := rand.Int64N(stable)
				s, err := l.Read(offset, 1, ToHighWatermark, true)
				if err != nil {
					t.Error(err)
					return
				}
				b := content(t, &s)
				s.Release()
				if string(b) != string(want[offset/3*3]) {
					t.Errorf("offset %d is something else", offset)
					return
				}
				s, err = l.Read(stable+rand.Int64N(30), 100, ToLogEnd, true)
				if err != nil && !errors.Is(err, ErrOffsetOutOfRange) {
					t.Errorf("follower: %v", err)
					return
				}
				s.Release()
			}
		})
	}
	for range 150 {
		fill(t, l, 12)
		must(t, l.TruncateTo(stable))
	}
	done.Store(true)
	all.Wait()
	if l.EndOffset() != stable || l.HighWatermark() != stable {
		t.Fatalf("end %d, high watermark %d, want %d", l.EndOffset(), l.HighWatermark(), stable)
	}
	must(t, l.Close())
}
