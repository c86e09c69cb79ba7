package broker

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"gregor/broker/group"
)

// timers are those of all groups: for each the next one.
type timers struct {
	mu   sync.Mutex // leaf
	heap timerHeap
}

// slotTimer is when a group wants a Tick. at is 0 when it is not in the heap.
type slotTimer struct {
	due time.Duration
	at  int // index in the heap plus one
}

// schedule sees to a Tick at due, or earlier if that was asked before: a group whose next timer moved away, as every heartbeat does,
// costs nothing here.
func (c *coordinator) schedule(s *groupSlot, due time.Duration) {
	if due == neverDue {
		return
	}
	c.timers.mu.Lock()
	first := false
	switch t := &s.timer; {
	case t.at == 0:
		t.due = due
		heap.Push(&c.timers.heap, s)
		first = t.at == 1
	case due < t.due:
		t.due = due
		heap.Fix(&c.timers.heap, t.at-1)
		first = t.at == 1
	}
	c.timers.mu.Unlock()
	if first {
		c.wake()
	}
}

func (c *coordinator) unschedule(s *groupSlot) {
	c.timers.mu.Lock()
	defer c.timers.mu.Unlock()
	if s.timer.at > 0 {
		heap.Remove(&c.timers.heap, s.timer.at-1)
	}
}

// run is the coordinator's goroutine: completed writes and timers.
func (c *coordinator) run() {
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.wakeups:
		case <-timer.C:
		}
		c.completeReady()
		timer.Reset(c.fire())
	}
}

// fire gives the groups whose time has come their Tick, and returns how long it is to the next.
func (c *coordinator) fire() time.Duration {
	for {
		s, wait := c.nextDue()
		if s == nil {
			return wait
		}
		s.event(func(g *group.Group, at group.Instant) group.Effects { return g.Tick(at) })
	}
}

// nextDue takes a slot out of the heap that is due, or says when one will be.
func (c *coordinator) nextDue() (*groupSlot, time.Duration) {
	now := time.Since(c.start)
	c.timers.mu.Lock()
	defer c.timers.mu.Unlock()
	if len(c.timers.heap) == 0 {
		return nil, neverDue
	}
	s := c.timers.heap[0]
	if s.timer.due > now {
		return nil, s.timer.due - now
	}
	heap.Pop(&c.timers.heap)
	return s, 0
}

// timerHeap is a container/heap of slots by due.
type timerHeap []*groupSlot

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].timer.due < h[j].timer.due }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer.at, h[j].timer.at = i+1, j+1
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	s := x.(*groupSlot)
	*h = append(*h, s)
	s.timer.at = len(*h)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.timer.at = 0
	return s
}
