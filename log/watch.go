package log

import (
	"math"
	"sync"
	"sync/atomic"
)

// Waiter is told once when what it watches for happened. Wake must not block. It may still come after Unwatch returned, or Watch
// returned true, when the two cross: whoever is woken looks again. Implementations are pointers.
type Waiter interface{ Wake() }

// Watch registers w for one Wake when the offset that limit stands for reaches offset, or the log goes offline, is closed or
// deleted, or its end moves back, or WakeAll is called. True means that this is so already, and w is not registered. A waiter is registered once per
// log: watching again replaces.
func (l *Log) Watch(w Waiter, offset int64, limit ReadLimit) bool {
	if !l.reached(offset, limit) {
		l.waiters.add(w, offset, limit)
		// What happened before add did not see w, what happens after does: so this look decides.
		if !l.reached(offset, limit) {
			return false
		}
	}
	l.waiters.remove(w)
	return true
}

// Unwatch forgets w.
func (l *Log) Unwatch(w Waiter) { l.waiters.remove(w) }

// WakeAll wakes all who watch: something else than the log's offsets changed for them.
func (l *Log) WakeAll() { l.waiters.wakeAll() }

func (l *Log) reached(offset int64, limit ReadLimit) bool {
	return l.limitOffset(limit) >= offset || l.writable() != nil
}

func (l *Log) limitOffset(limit ReadLimit) int64 {
	switch limit {
	case ToLogEnd:
		return l.EndOffset()
	case ToLastStable:
		return l.LastStable()
	default:
		return l.HighWatermark()
	}
}

// Queues of waiters, one for each ReadLimit.
const (
	atHigh   = int(ToHighWatermark)
	atStable = int(ToLastStable)
	atEnd    = int(ToLogEnd)
	queues   = 3
)

// waiters are those of a log, in a heap by offset for each limit, so that a step forward costs what it wakes. Its lock is a leaf, and no
// Wake is called under it.
type waiters struct {
	// least is the smallest offset that somebody waits for, MaxInt64 if nobody does: most steps look at nothing else.
	least [queues]atomic.Int64

	mu    sync.Mutex
	heaps [queues][]*waiting
	by    map[Waiter]*waiting
	spare *waiting // memory of removed ones, by next
	woken []Waiter // memory of wake; nil while in use
}

// waiting is a registered waiter.
type waiting struct {
	waiter Waiter
	offset int64
	queue  int
	at     int // in its heap
	next   *waiting
}

func (ws *waiters) init() {
	for q := range ws.least {
		ws.least[q].Store(math.MaxInt64)
	}
}

func (ws *waiters) add(w Waiter, offset int64, limit ReadLimit) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if n, ok := ws.by[w]; ok {
		ws.take(n)
	}
	n := ws.spare
	if n == nil {
		n = new(waiting)
	} else {
		ws.spare = n.next
	}
	*n = waiting{waiter: w, offset: offset, queue: int(limit), at: len(ws.heaps[limit])}
	if ws.by == nil {
		ws.by = make(map[Waiter]*waiting)
	}
	ws.by[w] = n
	ws.heaps[n.queue] = append(ws.heaps[n.queue], n)
	ws.up(n)
	ws.publish(n.queue)
}

func (ws *waiters) remove(w Waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if n, ok := ws.by[w]; ok {
		ws.take(n)
	}
}

// wake wakes all of a queue that wait for offset or less.
func (ws *waiters) wake(queue int, offset int64) {
	if ws.least[queue].Load() > offset {
		return
	}
	ws.mu.Lock()
	woken := ws.woken[:0]
	ws.woken = nil
	for h := ws.heaps[queue]; len(h) > 0 && h[0].offset <= offset; h = ws.heaps[queue] {
		woken = append(woken, h[0].waiter)
		ws.take(h[0])
	}
	ws.mu.Unlock()
	ws.call(woken)
}

// wakeAll wakes everybody: there may be nothing more to wait for.
func (ws *waiters) wakeAll() {
	for q := range queues {
		ws.wake(q, math.MaxInt64)
	}
}

// call wakes without the lock, then gives the memory of the list back.
func (ws *waiters) call(woken []Waiter) {
	for _, w := range woken {
		w.Wake()
	}
	clear(woken)
	ws.mu.Lock()
	ws.woken = woken
	ws.mu.Unlock()
}

// take removes n. mu must be held.
func (ws *waiters) take(n *waiting) {
	h := ws.heaps[n.queue]
	last := h[len(h)-1]
	h[len(h)-1] = nil
	ws.heaps[n.queue] = h[:len(h)-1]
	if last != n {
		h[n.at], last.at = last, n.at
		ws.down(last)
		ws.up(last)
	}
	delete(ws.by, n.waiter)
	ws.publish(n.queue)
	*n = waiting{next: ws.spare}
	ws.spare = n
}

func (ws *waiters) publish(queue int) {
	least := int64(math.MaxInt64)
	if h := ws.heaps[queue]; len(h) > 0 {
		least = h[0].offset
	}
	ws.least[queue].Store(least)
}

// up and down restore the order of a heap after n changed.
func (ws *waiters) up(n *waiting) {
	h := ws.heaps[n.queue]
	for n.at > 0 {
		parent := h[(n.at-1)/2]
		if parent.offset <= n.offset {
			return
		}
		swap(h, parent, n)
	}
}

func (ws *waiters) down(n *waiting) {
	h := ws.heaps[n.queue]
	for {
		child := 2*n.at + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].offset < h[child].offset {
			child++
		}
		if h[child].offset >= n.offset {
			return
		}
		swap(h, n, h[child])
	}
}

func swap(h []*waiting, a, b *waiting) {
	h[a.at], h[b.at] = b, a
	a.at, b.at = b.at, a.at
}
