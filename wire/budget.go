package wire

import (
	"sync"
	"sync/atomic"
)

// budget bounds the bytes of requests in memory over all connections. A frame reserves its size before its body is read.
// As long as any byte is left a frame gets all it asks for, so the budget is overdrawn by at most one frame and a frame larger than
// the whole budget passes when it is alone.
type budget struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32 // length of queue, plus acquirers about to join it

	mu    sync.Mutex // guards queue and the waiters in it; Request.Wake is called under it, which takes no lock of this package
	queue []*waiter  // first come, first served
}

// waiter is a connection's place in the queue of a budget.
type waiter struct {
	size    int64
	granted bool
	wake    func()
}

// take reserves n if any byte is left.
func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used >= b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// acquire reserves n bytes, or queues w and returns false; w.wake is called when the bytes were granted.
//
// No grant is lost between acquire and release: acquire raises waiting before it looks at used for the last time, release lowers
// used before it looks at waiting. Whichever comes second sees the other.
func (b *budget) acquire(w *waiter, n int64) bool {
	if b.waiting.Load() == 0 && b.take(n) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Add(1)
	if len(b.queue) == 0 && b.take(n) {
		b.waiting.Add(-1)
		return true
	}
	w.size, w.granted = n, false
	b.queue = append(b.queue, w)
	return false
}

// release gives n bytes back and grants what has become possible.
func (b *budget) release(n int64) {
	b.used.Add(-n)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 && b.take(b.queue[0].size) {
		w := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		w.granted = true
		b.waiting.Add(-1)
		w.wake()
	}
}

// granted reports whether the bytes that w waits for are its own now.
func (b *budget) granted(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.granted
}

// forget takes w out of the queue, or gives back what it was granted.
func (b *budget) forget(w *waiter) {
	b.mu.Lock()
	granted := w.granted
	for i, q := range b.queue {
		if q == w {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.waiting.Add(-1)
			break
		}
	}
	w.granted = false
	b.mu.Unlock()
	if granted {
		b.release(w.size)
	}
}
