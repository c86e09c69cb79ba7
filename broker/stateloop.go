package broker

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// stateLoop is what the group and the transaction coordinator have in common: a goroutine that tells the owners of writes to an internal topic
// when these are durable, and runs timers. See stateLog for the writes.
type stateLoop struct {
	start time.Time // origin of the timers' clock

	timers timers
	// ready are logs with writes that may be durable.
	readyMu sync.Mutex
	ready   []*stateLog
	errands []func()      // to be run on goroutines of their own
	wakeups chan struct{} // capacity 1: there is something in ready or errands, or an earlier timer

	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	stop    <-chan struct{} // of ctx
	closing atomic.Bool
	running sync.WaitGroup
}

func (l *stateLoop) init() {
	l.start = time.Now()
	l.wakeups = make(chan struct{}, 1)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.stop = l.ctx.Done()
}

// close ends the coordinator's goroutines. Nothing is answered after it.
func (l *stateLoop) close() {
	l.closing.Store(true)
	l.cancel()
	l.running.Wait()
}

// timers are those of all slots: for each the next one.
type timers struct {
	mu   sync.Mutex // leaf
	heap timerHeap
}

// timed is a slot with a timer.
type timed interface {
	clock() *slotTimer
	// tick is called on the loop's goroutine when the timer is due.
	tick()
}

// slotTimer is when a slot wants a tick. at is 0 when it is not in the heap. It is guarded by timers.mu.
type slotTimer struct {
	due time.Duration
	at  int // index in the heap plus one
}

// neverDue is the time of a timer that does not run.
const neverDue = time.Duration(math.MaxInt64)

// schedule sees to a tick at due, or earlier if that was asked before: a slot whose next timer moved away, as every heartbeat does,
// costs nothing here.
func (l *stateLoop) schedule(s timed, due time.Duration) {
	if due == neverDue {
		return
	}
	l.timers.mu.Lock()
	first := false
	switch t := s.clock(); {
	case t.at == 0:
		t.due = due
		heap.Push(&l.timers.heap, s)
		first = t.at == 1
	case due < t.due:
		t.due = due
		heap.Fix(&l.timers.heap, t.at-1)
		first = t.at == 1
	}
	l.timers.mu.Unlock()
	if first {
		l.wake()
	}
}

func (l *stateLoop) unschedule(s timed) {
	l.timers.mu.Lock()
	defer l.timers.mu.Unlock()
	if at := s.clock().at; at > 0 {
		heap.Remove(&l.timers.heap, at-1)
	}
}

// run is the loop's goroutine: completed writes and timers.
func (l *stateLoop) run() {
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.wakeups:
		case <-timer.C:
		}
		l.completeReady()
		l.runErrands()
		timer.Reset(l.fire())
	}
}

// wake makes the loop's goroutine look around.
func (l *stateLoop) wake() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}

// async runs f on a goroutine that close waits for. It ends with ctx. After close it is not run.
func (l *stateLoop) async(f func()) {
	l.readyMu.Lock()
	l.errands = append(l.errands, f)
	l.readyMu.Unlock()
	l.wake()
}

func (l *stateLoop) runErrands() {
	l.readyMu.Lock()
	errands := l.errands
	l.errands = nil
	l.readyMu.Unlock()
	for _, f := range errands {
		l.running.Go(f)
	}
}

// completeReady tells the owners of writes that are durable.
func (l *stateLoop) completeReady() {
	l.readyMu.Lock()
	ready := l.ready
	l.ready = nil
	l.readyMu.Unlock()
	for _, p := range ready {
		p.complete()
	}
}

// fire gives the slots whose time has come their tick, and returns how long it is to the next.
func (l *stateLoop) fire() time.Duration {
	for {
		s, wait := l.nextDue()
		if s == nil {
			return wait
		}
		s.tick()
	}
}

// nextDue takes a slot out of the heap that is due, or says when one will be.
func (l *stateLoop) nextDue() (timed, time.Duration) {
	now := time.Since(l.start)
	l.timers.mu.Lock()
	defer l.timers.mu.Unlock()
	if len(l.timers.heap) == 0 {
		return nil, neverDue
	}
	s := l.timers.heap[0]
	if due := s.clock().due; due > now {
		return nil, due - now
	}
	heap.Pop(&l.timers.heap)
	return s, 0
}

// timerHeap is a container/heap of slots by due.
type timerHeap []timed

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].clock().due < h[j].clock().due }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].clock().at, h[j].clock().at = i+1, j+1
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	s := x.(timed)
	*h = append(*h, s)
	s.clock().at = len(*h)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.clock().at = 0
	return s
}
