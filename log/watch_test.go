package log

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"gregor/log/batch"
)

// wakes counts its wakes.
type wakes struct{ n atomic.Int32 }

func (f *wakes) Wake()      { f.n.Add(1) }
func (f *wakes) count() int { return int(f.n.Load()) }

func TestWatch(t *testing.T) {
	l := mustOpen(t, options(newFS(t)))
	fill(t, l, 1)
	must(t, l.Flush())
	w := make([]wakes, 6)
	for i, tc := range []struct {
		offset int64
		limit  ReadLimit
		now    bool
	}{{3, ToHighWatermark, true}, {4, ToHighWatermark, false}, {7, ToHighWatermark, false}, {4, ToLogEnd, false}, {4, ToLastStable, false}, {6, ToHighWatermark, false}} {
		if got := l.Watch(&w[i], tc.offset, tc.limit); got != tc.now {
			t.Fatalf("watching %d: %v", tc.offset, got)
		}
	}
	l.Unwatch(&w[5])
	l.Unwatch(&w[5])
	expect := func(step string, want ...int) {
		t.Helper()
		for i := range want {
			if w[i].count() != want[i] {
				t.Fatalf("%s: waiter %d was woken %d times, want %d", step, i, w[i].count(), want[i])
			}
		}
	}
	expect("before", 0, 0, 0, 0, 0, 0)
	fill(t, l, 1)
	expect("appended", 0, 0, 0, 1, 0, 0)
	must(t, l.Flush())
	expect("synced", 0, 1, 0, 1, 1, 0)
	must(t, l.Flush())
	must(t, l.Close())
	expect("closed", 0, 1, 1, 1, 1, 0)
	if !l.Watch(&w[5], 100, ToHighWatermark) {
		t.Fatal("a closed log is watched")
	}
	if len(l.waiters.by) > 0 {
		t.Fatalf("%d are left", len(l.waiters.by))
	}
}

// TestWatchRandom compares the heaps with a list.
func TestWatchRandom(t *testing.T) {
	var ws waiters
	ws.init()
	r := rng(3)
	pool := make([]wakes, 50)
	want := make(map[*wakes][2]int64) // queue, offset
	woken := make(map[*wakes]int)
	for range 20_000 {
		w := &pool[r.IntN(len(pool))]
		switch r.IntN(3) {
		case 0, 1:
			q, offset := r.IntN(queues), r.Int64N(1000)
			ws.add(w, offset, ReadLimit(q))
			want[w] = [2]int64{int64(q), offset}
			if r.IntN(8) == 0 {
				ws.remove(w)
				delete(want, w)
			}
		default:
			q, offset := r.IntN(queues), r.Int64N(1000)
			ws.wake(q, offset)
			for w, at := range want {
				if at[0] == int64(q) && at[1] <= offset {
					woken[w]++
					delete(want, w)
				}
			}
		}
		for i := range pool {
			if pool[i].count() != woken[&pool[i]] {
				t.Fatalf("waiter %d was woken %d times, want %d", i, pool[i].count(), woken[&pool[i]])
			}
		}
	}
}

// TestWatchLosesNoWake has waiters race with appends: each must be woken, or be told that there is nothing to wait for.
func TestWatchLosesNoWake(t *testing.T) {
	l := mustOpen(t, options(newFS(t)))
	defer l.Close()
	const end = 2000
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			w := &channel{make(chan struct{}, 1)}
			for offset := int64(1); offset < end; offset += 1 + rand.Int64N(3) {
				// A wake may be one of an earlier watch that crossed with it.
				for !l.Watch(w, offset, ToHighWatermark) {
					<-w.c
				}
				if l.HighWatermark() < offset {
					t.Errorf("woken at %d for %d", l.HighWatermark(), offset)
				}
			}
		})
	}
	for l.EndOffset() < end {
		mustAppend(t, l, batchOf(t, 1, 1, 1, batch.Options{}))
		must(t, l.Flush())
	}
	all.Wait()
}

type channel struct{ c chan struct{} }

func (c *channel) Wake() {
	select {
	case c.c <- struct{}{}:
	default:
	}
}
