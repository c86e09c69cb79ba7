package wire

import (
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// announce is the start of a produce frame of size bytes: n of them.
func announce(size, n int) []byte {
	f := frame(produceRequest(9, -1, max(n, 1)), 1)
	binary.BigEndian.PutUint32(f, uint32(size))
	return f[:n]
}

// meter keeps the most of QueuedBytes that it saw.
type meter struct {
	most          atomic.Int64
	stop, stopped chan struct{}
}

func watch(s *Server) *meter {
	m := &meter{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(m.stopped)
		tick := time.NewTicker(50 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
				m.most.Store(max(m.most.Load(), s.Stats().QueuedBytes))
			}
		}
	}()
	return m
}

// end returns the most.
func (m *meter) end() int64 {
	close(m.stop)
	<-m.stopped
	return m.most.Load()
}

// charged is what a produce frame with n bytes of records takes when it is whole.
func charged(n int) int64 {
	_, size := classOf(len(frame(produceRequest(9, -1, n), 1)) + 4 + minFrame)
	return int64(size)
}

// TestLiarsHinderNobody has a hundred connections announce far more than the budget and send a little, some of them after they have earned
// a large buffer. They hold next to nothing, so that frames large and small go through at once.
func TestLiarsHinderNobody(t *testing.T) {
	s, addr := stalling(t, Config{Handler: handlerFunc(echo), QueuedBytes: 4 << 20}, time.Hour)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const liars = 100
	sent := s.Stats().BytesIn
	for i := range liars {
		c := dial(t, addr)
		if i%10 == 0 && !s.plain { // without a raw side what was earned is held until the sender is found to stall
			whole := frame(produceRequest(9, -1, 2<<20), 2)
			c.send(whole)
			c.recvIDs(2)
			sent += int64(len(whole))
		}
		c.send(announce(90<<20, 1<<10))
		sent += 1 << 10
	}
	until(t, func() bool { return s.Stats().BytesIn == sent })
	until(t, func() bool { return s.Stats().QueuedBytes == 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / liars; each > 128<<10 { // clients and pools included
		t.Errorf("a frame that only announces takes %d bytes", each)
	}
	honest := dial(t, addr) // who waits here waits for liars, and an hour for them to be closed
	for i, size := range []int{100, 10 << 10, 100 << 10, 1 << 20, 3 << 20, 100} {
		honest.send(frame(produceRequest(9, -1, size), int32(i)))
		honest.recvIDs(int32(i))
	}
	if n := s.Stats().Connections; n != liars+1 {
		t.Errorf("%d connections, want %d: nobody waited, so nobody is to be closed", n, liars+1)
	}
}

// TestSmallRequestsNeverWait has the budget used up by frames that are partly sent.
func TestSmallRequestsNeverWait(t *testing.T) {
	s, addr := stalling(t, Config{Handler: handlerFunc(echo), QueuedBytes: 256 << 10}, time.Hour)
	for range 20 {
		dial(t, addr).send(announce(90<<20, 200<<10))
	}
	until(t, func() bool { return s.budget.waiting.Load() >= 15 }) // a few have all they want, one is favored
	c := dial(t, addr)                                             // a request that waits is not answered as long as the frames hold what they have
	for i := range int32(100) {
		c.send(frame(produceRequest(9, -1, 15<<10), i))
		c.recvIDs(i)
	}
}

func TestQueuedBytesBoundsAndProgresses(t *testing.T) {
	const limit = 100 << 10
	s, addr := running(t, Config{Handler: handlerFunc(echo), QueuedBytes: limit})
	most := watch(s)
	first, whole := dial(t, addr), frame(produceRequest(9, -1, 300<<10), 1)
	first.send(whole[:200<<10])
	until(t, func() bool { return most.most.Load() > 0 })
	first.send(whole[200<<10:])
	first.recvIDs(1)
	sizes := []int{300 << 10, 20 << 10, 1 << 20, 70 << 10} // some larger than the budget
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			c := dial(t, addr)
			for i := range 20 {
				f := frame(produceRequest(9, -1, sizes[(i+n)%len(sizes)]), int32(i))
				if n%2 == 0 { // the start of the second frame lies in the buffer of the first
					c.send(f, f)
					c.recvIDs(int32(i))
				} else {
					c.send(f)
				}
				c.recvIDs(int32(i))
			}
		})
	}
	wg.Wait()
	if got, bound := most.end(), limit+charged(1<<20); got > bound {
		t.Errorf("QueuedBytes reached %d, the limit and one frame are %d", got, bound)
	}
	if b := &s.budget; b.waiting.Load() != 0 {
		t.Errorf("%d wait at the end", b.waiting.Load())
	}
}

// TestPartialFramesGoOn is the case in which every frame holds a part of the budget and needs more.
func TestPartialFramesGoOn(t *testing.T) {
	const limit, count, size = 640 << 10, 10, 600 << 10
	s, addr := running(t, Config{Handler: handlerFunc(echo), QueuedBytes: limit})
	most := watch(s)
	f := frame(produceRequest(9, -1, size), 1)
	var conns []client
	for range count {
		c := dial(t, addr)
		c.send(f[:40<<10]) // 64 KiB each
		conns = append(conns, c)
	}
	until(t, func() bool { return s.Stats().QueuedBytes == limit })
	for _, c := range conns {
		go c.Write(f[40<<10:])
	}
	for _, c := range conns {
		c.recvIDs(1)
	}
	if got, bound := most.end(), limit+charged(size); got > bound {
		t.Errorf("QueuedBytes reached %d, the limit and one frame are %d", got, bound)
	}
	if closed := s.Stats().Closed; len(closed) > 0 {
		t.Errorf("closed: %v", closed)
	}
}

// TestDecodedFormsAreCharged sends large requests without records, which are charged many times their size once they are there.
func TestDecodedFormsAreCharged(t *testing.T) {
	s, addr := running(t, Config{Handler: handlerFunc(echo), QueuedBytes: 1 << 20})
	most := watch(s)
	body := frame(metadataRequest(), 1)
	f := append(body, make([]byte, 200<<10)...) // bytes behind the body are ignored
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := dial(t, addr)
			for range 10 {
				c.send(f)
				c.recvIDs(1)
			}
		})
	}
	wg.Wait()
	one := int64(len(f)-4) * decodeCost
	if got := most.end(); got > 1<<20+one {
		t.Errorf("QueuedBytes reached %d, the limit and one frame are %d", got, 1<<20+one)
	}
}

func TestStalledSenderEndsWhenOthersWait(t *testing.T) {
	log := newLines()
	s, addr := stalling(t, Config{Handler: handlerFunc(echo), QueuedBytes: 10 << 10, Logger: log.logger()}, 30*time.Millisecond)
	f := frame(produceRequest(9, -1, 50<<10), 1)
	stalled, waiting := dial(t, addr), dial(t, addr)
	stalled.send(f[:20<<10])
	until(t, func() bool { return s.Stats().QueuedBytes > 0 })
	waiting.send(f)
	waiting.recvIDs(1)
	stalled.closed()
	log.next(t)
	if s.Stats().Closed["stalled sender"] != 1 {
		t.Errorf("Closed: %v", s.Stats().Closed)
	}
}

// TestWaitingIsNoStall has a frame wait for longer than the stall window, behind one that sends slowly but well.
func TestWaitingIsNoStall(t *testing.T) {
	const stall = 150 * time.Millisecond
	cfg := Config{Handler: handlerFunc(echo), QueuedBytes: 10 << 10}
	bubble(t, cfg, stall, func(t *testing.T, s *Server, dial func() client) {
		f := frame(produceRequest(9, -1, 100<<10), 1)
		slow, waiting := dial(), dial()
		slow.send(f[:20<<10])
		synctest.Wait()
		if s.Stats().QueuedBytes == 0 {
			t.Fatal("nothing is held")
		}
		var sender sync.WaitGroup
		sender.Go(func() { waiting.Write(f) })
		for sent := 20 << 10; sent < len(f); sent += 4 << 10 {
			<-time.After(stall - time.Millisecond) // in the bubble
			slow.send(f[sent:min(len(f), sent+4<<10)])
		}
		slow.recvIDs(1)
		waiting.recvIDs(1)
		sender.Wait()
		if closed := s.Stats().Closed; len(closed) > 0 {
			t.Errorf("closed: %v", closed)
		}
	})
}

// TestFavoredMustSend has the favored frame trickle: enough not to stall, too little to let others have their turn.
func TestFavoredMustSend(t *testing.T) {
	log := newLines()
	s, addr := stalling(t, Config{Handler: handlerFunc(echo), QueuedBytes: 10 << 10, Logger: log.logger()}, 30*time.Millisecond)
	trickle, waiting := dial(t, addr), dial(t, addr)
	trickle.send(announce(90<<20, 20<<10))
	until(t, func() bool { return s.Stats().QueuedBytes > 0 })
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		b := make([]byte, 4<<10)
		for range tick.C {
			if _, err := trickle.Write(b); err != nil {
				return
			}
		}
	}()
	waiting.send(frame(produceRequest(9, -1, 50<<10), 1))
	waiting.recvIDs(1)
	// It is counted a moment after its memory is free.
	until(t, func() bool { return s.Stats().Closed["stalled sender"] == 1 })
}

// TestFavoredMustTakeAnswers has the connection that all wait for, and one that waits, be blocked by an answer that nobody reads.
func TestFavoredMustTakeAnswers(t *testing.T) {
	promises := make(chan *promise, 2)
	cfg := Config{QueuedBytes: 10 << 10, Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		if req.Size > 1<<10 {
			return echo(ctx, req)
		}
		p := newPromise(ctx, req)
		promises <- p
		return Reply{Pending: p, Pipeline: true}
	})}
	bubble(t, cfg, 30*time.Millisecond, func(t *testing.T, s *Server, dial func() client) {
		f := frame(produceRequest(9, -1, 50<<10), 1)
		var senders sync.WaitGroup
		send := func(b []byte) client {
			c := dial()
			senders.Go(func() { c.Write(b) }) // the server reads what it has memory for
			synctest.Wait()
			return c
		}
		for n := range int32(2) {
			send(append(frame(produceRequest(9, -1, 10), 0), f[:20<<10]...))
			if s.Stats().QueuedBytes == 0 || s.budget.waiting.Load() != n {
				t.Fatalf("%d wait, want %d", s.budget.waiting.Load(), n)
			}
		}
		waiting := send(f)
		if n := s.budget.waiting.Load(); n != 2 {
			t.Fatalf("%d wait, want 2", n)
		}
		for range 2 {
			(<-promises).complete(produceAnswer())
		}
		waiting.recvIDs(1)
		senders.Wait()
		synctest.Wait()
		if n := s.Stats().Closed["slow reader"]; n != 2 {
			t.Errorf("closed: %v", s.Stats().Closed)
		}
	})
}

func TestVanishedWaiterLeavesTheBudget(t *testing.T) {
	s, addr := running(t, Config{Handler: handlerFunc(echo), QueuedBytes: 10 << 10})
	f := frame(produceRequest(9, -1, 50<<10), 1)
	holder, waiter := dial(t, addr), dial(t, addr)
	holder.send(f[:20<<10])
	until(t, func() bool { return s.Stats().QueuedBytes > 0 })
	waiter.send(f[:20<<10])
	until(t, func() bool { return s.budget.waiting.Load() == 1 })
	waiter.Conn.(*net.TCPConn).SetLinger(0)
	waiter.Close()
	until(t, func() bool { return s.budget.waiting.Load() == 0 })
	holder.send(f[20<<10:])
	holder.recvIDs(1)
}

// TestVanishedHolderLetsOthersIn ends the favored frame's connection.
func TestVanishedHolderLetsOthersIn(t *testing.T) {
	s, addr := running(t, Config{Handler: handlerFunc(echo), QueuedBytes: 10 << 10})
	f := frame(produceRequest(9, -1, 50<<10), 1)
	holder, waiter := dial(t, addr), dial(t, addr)
	holder.send(f[:20<<10])
	until(t, func() bool { return s.Stats().QueuedBytes > 0 })
	waiter.send(f)
	until(t, func() bool { return s.budget.waiting.Load() == 1 })
	holder.Close()
	waiter.recvIDs(1)
}

// TestSteadyFramesKeepTheirBuffer sends frames one after another and expects that no memory is taken for each.
func TestSteadyFramesKeepTheirBuffer(t *testing.T) {
	_, addr := running(t, Config{Handler: handlerFunc(echo)})
	for _, size := range []int{1 << 20, 8 << 20, 16<<20 + 100} {
		c := dial(t, addr)
		f := frame(produceRequest(9, -1, size), 1)
		step := func() {
			if _, err := c.Write(f); err != nil {
				t.Fatal(err)
			}
			c.recvIDs(1)
		}
		step()
		step()
		const rounds = 10
		if n := allocated(func() {
			for range rounds {
				step()
			}
		}); n > uint64(rounds*len(f)/2) && !raceEnabled { // a collection may empty the pool once
			t.Errorf("frames of %d bytes: %d bytes allocated in %d of them", len(f), n, rounds)
		}
	}
}
