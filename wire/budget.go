package wire

import (
	"sync"
	"sync/atomic"
)

// budget bounds the bytes of buffers that hold requests, over all connections. What is charged is what a frame holds, never what it
// announces, so a frame asks again each time its buffer grows.
//
// Frames that each hold a part of the limit and each wait for more would wait for ever. So one of them at a time, the favored one, gets all that
// it asks for, whatever is used, until it was handled or its connection ended. Frames ask only when there are bytes to read.
//
// Bound: used <= limit + what the favored frame holds. All others got their bytes while used was at most limit, and the favored frame
// gives everything back before another one is favored.
//
// Progress: whenever the queue is not empty a frame is favored. That frame never waits for the budget, and a peer that does not send it is
// closed (conn.expired), as is one that does not take its answers (conn.patience). Its end lets the next in, first come, first served.
type budget struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32 // length of queue, plus acquirers about to join it

	mu      sync.Mutex // guards what follows and the waiters in it; conn.wake is called under it, which takes no lock of this package
	queue   []*waiter  // first come, first served
	favored *waiter    // may overdraw; nil only while the queue is empty
}

// waiter is a frame's place in the queue of a budget.
type waiter struct {
	size    int64
	granted bool // size was taken for it and it does not know yet
	favored bool // changes only while it asks or waits, so that its owner may read it without the lock when it does not wait
	wake    func()
}

// take reserves n if they are left.
func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// try reserves n bytes if that can be done without waiting. It gives way to frames that wait.
func (b *budget) try(w *waiter, n int64) bool {
	if w.favored {
		b.used.Add(n)
		return true
	}
	return b.waiting.Load() == 0 && b.take(n)
}

// acquire reserves n bytes, or queues w and returns false; w.wake is called when the bytes were granted.
//
// No grant is lost between acquire and release: acquire raises waiting before it looks at used for the last time, release lowers
// used before it looks at waiting. Whichever comes second sees the other.
func (b *budget) acquire(w *waiter, n int64) bool {
	if b.try(w, n) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Add(1)
	if len(b.queue) == 0 && b.admit(w, n) {
		b.waiting.Add(-1)
		return true
	}
	w.size, w.granted = n, false
	b.queue = append(b.queue, w)
	return false
}

// admit reserves n bytes for w, which is the first in line. If they are not left and no frame is favored, w is from now on. mu is held.
func (b *budget) admit(w *waiter, n int64) bool {
	if b.take(n) {
		return true
	}
	if b.favored != nil {
		return false
	}
	b.favored, w.favored = w, true
	b.used.Add(n)
	return true
}

// release gives n bytes back and grants what has become possible.
func (b *budget) release(n int64) {
	b.used.Add(-n)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grant()
}

// grant serves the queue as far as possible. mu is held.
func (b *budget) grant() {
	for len(b.queue) > 0 && b.admit(b.queue[0], b.queue[0].size) {
		w := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		w.granted = true
		b.waiting.Add(-1)
		w.wake()
	}
}

// granted reports whether the bytes that w waits for are its own now. It says so once.
func (b *budget) granted(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	granted := w.granted
	w.granted = false
	return granted
}

// leave ends what w has to do with the budget: it waits no more, gives back what it was granted and does not know of, and is not favored any
// more. What it did know of must have been released before.
func (b *budget) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == w {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.waiting.Add(-1)
			break
		}
	}
	if w.granted {
		b.used.Add(-w.size)
	}
	if b.favored == w {
		b.favored = nil
	}
	w.granted, w.favored = false, false
	b.grant()
}
