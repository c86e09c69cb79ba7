package broker

import (
	"sync/atomic"

	"gregor/log"
)

// fetchWatch is woken by a partition's log and wakes the connection of the fetch.
type fetchWatch struct {
	fetch *fetch
	// fired is set by the log's side, from any goroutine, before the connection is woken.
	fired atomic.Bool
	// on says that the log knows this watch, as far as the connection's goroutine knows.
	on bool
}

// Wake implements log.Waiter.
func (w *fetchWatch) Wake() {
	w.fired.Store(true)
	w.fetch.wake()
}

// news puts the watch of p in place if it is not, and reports if p may have news: the watch fired, or what it would wait for is there.
func (p *fetchPart) news(limit log.ReadLimit) bool {
	if p.partition == nil || p.partition.log == nil {
		return false
	}
	w := &p.watch
	if w.on && !w.fired.Load() {
		return false
	}
	if w.on {
		w.on = false // it fired and is spent; the next look puts it in place again, after a read
		return true
	}
	w.fired.Store(false)
	w.on = !p.partition.log.Watch(w, p.readable+1, limit)
	return !w.on
}
