package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// parking answers Metadata at once, Produce by a pipelined promise and everything else by one that blocks the connection.
type parking struct {
	promises chan *promise
	setup    func(*promise)
}

func newParking() *parking { return &parking{promises: make(chan *promise, 1000)} }

func (h *parking) Handle(ctx context.Context, req *Request) Reply {
	if req.Key == 3 {
		return echo(ctx, req)
	}
	p := newPromise(ctx, req)
	if h.setup != nil {
		h.setup(p)
	}
	h.promises <- p
	return Reply{Pending: p, Pipeline: req.Key == 0}
}

func (h *parking) next(t testing.TB) *promise {
	t.Helper()
	select {
	case p := <-h.promises:
		return p
	case <-time.After(patience):
		t.Fatal("no request came")
		return nil
	}
}

func (h *parking) none(t testing.TB) {
	t.Helper()
	select {
	case <-h.promises:
		t.Fatal("a request was handled that must wait")
	default:
	}
}

var (
	fetchAnswer   = func() Reply { return Reply{Body: Message(versioned(kmsg.NewPtrFetchResponse(), 12))} }
	produceAnswer = func() Reply { return Reply{Body: Message(kmsg.NewPtrProduceResponse())} }
)

func fetchRequest() kmsg.Request    { return versioned(kmsg.NewPtrFetchRequest(), 12) }
func metadataRequest() kmsg.Request { return versioned(kmsg.NewPtrMetadataRequest(), 9) }

func TestPipelinedAnswersKeepOrder(t *testing.T) {
	h := newParking()
	_, addr := running(t, Config{Handler: h})
	c := dial(t, addr)
	for i := range 20 {
		c.send(frame(produceRequest(9, -1, 100), int32(i)))
	}
	c.send(frame(metadataRequest(), 20)) // another key waits for all of them
	var all []*promise
	for range 20 {
		all = append(all, h.next(t))
	}
	for i := 19; i >= 0; i-- { // the last one first
		all[i].complete(produceAnswer())
	}
	c.recvIDs(ids(0, 21)...)
}

func TestPipelineLimit(t *testing.T) {
	h := newParking()
	_, addr := running(t, Config{Handler: h, MaxPipeline: 3})
	c := dial(t, addr)
	for i := range 5 {
		c.send(frame(produceRequest(9, -1, 100), int32(i)))
	}
	all := []*promise{h.next(t), h.next(t), h.next(t)}
	all[0].complete(produceAnswer())
	c.recvIDs(0)
	all = append(all, h.next(t)) // its place is free
	h.none(t)
	for _, p := range all[1:] {
		p.complete(produceAnswer())
	}
	h.next(t).complete(produceAnswer())
	c.recvIDs(1, 2, 3, 4)
}

func TestBlockingPendingHoldsLaterRequests(t *testing.T) {
	h := newParking()
	_, addr := running(t, Config{Handler: h})
	c := dial(t, addr)
	c.send(frame(fetchRequest(), 0), frame(fetchRequest(), 1))
	c.send(frame(metadataRequest(), 2))
	p := h.next(t)
	h.none(t)
	p.complete(fetchAnswer())
	c.recvIDs(0)
	h.next(t).complete(fetchAnswer())
	c.recvIDs(1, 2)
}

func TestDeadlineIsKept(t *testing.T) {
	h := newParking()
	h.setup = func(p *promise) { p.deadline = time.Now().Add(50 * time.Millisecond) }
	_, addr := running(t, Config{Handler: h})
	c := dial(t, addr)
	start := time.Now()
	c.send(frame(fetchRequest(), 0))
	c.recvIDs(0)
	if d := time.Since(start); d < 40*time.Millisecond || d > patience/2 {
		t.Errorf("answer after %v, want about 50ms", d)
	}
	if p := h.next(t); p.polls > 3 {
		t.Errorf("%d polls for one deadline", p.polls)
	}
}

func TestVanishedPeerCancelsParkedAnswer(t *testing.T) {
	for name, tail := range map[string][]byte{
		"nothing behind":     nil,
		"a length behind":    {0, 0, 1, 0},
		"a request behind":   frame(metadataRequest(), 9),
		"requests behind it": append(frame(metadataRequest(), 9), frame(produceRequest(9, -1, 100<<10), 10)...),
	} {
		t.Run(name, func(t *testing.T) {
			h := newParking()
			s, addr := running(t, Config{Handler: h})
			if s.plain && tail != nil {
				return // a hangup behind bytes cannot be seen without a raw side
			}
			c := dial(t, addr)
			c.send(frame(fetchRequest(), 0), tail)
			p := h.next(t)
			c.Close()
			waitFor(t, "Cancel", p.cancelled)
			if p.ctx.Err() == nil {
				t.Error("the context of the request has not ended")
			}
			until(t, func() bool { return s.Stats().Connections == 0 })
		})
	}
}

// TestFramesBehindAParkedAnswerAreHandled closes behind a parked fetch and records that want no answer.
func TestFramesBehindAParkedAnswerAreHandled(t *testing.T) {
	var silent atomic.Int64
	h := newParking()
	s, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		if p, ok := req.Body.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
			silent.Add(1)
			return Reply{Silent: true}
		}
		return h.Handle(ctx, req)
	})})
	c := dial(t, addr)
	quiet := frame(produceRequest(9, 0, 30<<10), 1)
	c.send(frame(fetchRequest(), 0), quiet, frame(produceRequest(9, -1, 10), 2), quiet, frame(metadataRequest(), 3), frame(fetchRequest(), 4), quiet)
	c.CloseWrite()
	c.closed() // no answer: the first was not ready
	until(t, func() bool { return s.Stats().Connections == 0 })
	if n := silent.Load(); n != 3 {
		t.Errorf("%d of 3 requests were handled", n)
	}
	for range 3 {
		waitFor(t, "Cancel", h.next(t).cancelled)
	}
}

func TestHalfCloseAsksOnceMore(t *testing.T) {
	h := newParking()
	h.setup = func(p *promise) { p.onFinal = func() (Reply, bool) { return fetchAnswer(), true } }
	_, addr := running(t, Config{Handler: h})
	c := dial(t, addr)
	c.send(frame(fetchRequest(), 0), frame(fetchRequest(), 1), frame(metadataRequest(), 2))
	c.CloseWrite()
	c.recvIDs(0, 1, 2)
	c.closed()
}

func TestResetPeerCancels(t *testing.T) {
	h := newParking()
	s, addr := running(t, Config{Handler: h})
	c := dial(t, addr)
	c.send(frame(produceRequest(9, -1, 100), 0), frame(metadataRequest(), 1))
	p := h.next(t)
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
	waitFor(t, "Cancel", p.cancelled)
	until(t, func() bool { return s.Stats().Connections == 0 })
}

func TestShutdown(t *testing.T) {
	h := newParking()
	s, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		r := h.Handle(ctx, req)
		if req.Key == 1 {
			r.Pending.(*promise).onFinal = func() (Reply, bool) { return fetchAnswer(), true }
		}
		return r
	})})
	parked, idle, piped := dial(t, addr), dial(t, addr), dial(t, addr)
	parked.send(frame(fetchRequest(), 5))
	h.next(t)
	piped.send(frame(produceRequest(9, -1, 1), 6), frame(produceRequest(9, -1, 1), 7))
	p6, p7 := h.next(t), h.next(t)
	idle.send(frame(metadataRequest(), 1))
	idle.recvIDs(1)
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	parked.recvIDs(5)
	parked.closed()
	idle.closed()
	p6.complete(produceAnswer())
	p7.complete(produceAnswer())
	piped.recvIDs(6, 7)
	piped.closed()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if nc, err := s.listeners[0].Accept(); !errors.Is(err, net.ErrClosed) { // its port may be another's by now
		t.Errorf("the listener still accepts: %v, %v", nc, err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("second Shutdown: %v", err)
	}
}

func TestShutdownCancelsWhatIsNotReady(t *testing.T) {
	h := newParking()
	s, addr := running(t, Config{Handler: h})
	fetch, prod := dial(t, addr), dial(t, addr)
	fetch.send(frame(fetchRequest(), 5))
	pf := h.next(t)
	prod.send(frame(produceRequest(9, -1, 1), 6))
	pp := h.next(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	waitFor(t, "Cancel of the fetch", pf.cancelled)
	cancel()
	waitFor(t, "Cancel of the produce", pp.cancelled)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestWakesAreNeverLost completes every answer from another goroutine at a random moment around the wait. The deadlines are far, so a lost
// wake shows as a timeout of the client.
func TestWakesAreNeverLost(t *testing.T) {
	work := make(chan *promise, 1024)
	var completers sync.WaitGroup
	for i := range 2 {
		completers.Go(func() {
			n := i
			for p := range work {
				for range n % 200 { // a different moment each time
					n++
				}
				n += 7
				p.complete(produceAnswer())
				p.wake()
			}
		})
	}
	defer completers.Wait()
	defer close(work)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		p := newPromise(ctx, req)
		work <- p
		return Reply{Pending: p, Pipeline: req.Key == 0}
	})})
	var clients sync.WaitGroup
	for w := range 4 {
		clients.Go(func() {
			c := dial(t, addr)
			req := frame(produceRequest(9, -1, 200), 1)
			if w%2 == 1 {
				req = frame(fetchRequest(), 1)
			}
			const window = 3
			b := make([]byte, 4096)
			for range 1500 {
				for range window {
					c.Write(req)
				}
				for range window {
					if _, err := io.ReadFull(c, b[:4]); err != nil {
						t.Errorf("lost: %v", err)
						return
					}
					io.ReadFull(c, b[:b[3]])
				}
			}
		})
	}
	clients.Wait()
}

func TestIdleConnectionEnds(t *testing.T) {
	const idle = 80 * time.Millisecond
	h := newParking()
	bubble(t, Config{Handler: h, IdleTimeout: idle}, stallWindow, func(t *testing.T, s *Server, dial func() client) {
		start := time.Now()
		silent, fetching := dial(), dial()
		fetching.send(frame(fetchRequest(), 1))
		p := h.next(t)
		silent.closed()
		if d := time.Since(start); d != idle {
			t.Errorf("closed after %v, want %v", d, idle)
		}
		synctest.Wait()
		if n := s.Stats().Closed["idle"]; n != 1 {
			t.Errorf("Closed[idle] is %d, want 1", n)
		}
		// A pending answer is not idle, however long it takes.
		for range 4 {
			dial().closed()
		}
		p.complete(fetchAnswer())
		fetching.recvIDs(1)
		fetching.closed()
	})
}

// TestIdleSocketEnds is the same with sockets.
func TestIdleSocketEnds(t *testing.T) {
	h := newParking()
	s, addr := running(t, Config{Handler: h, IdleTimeout: 80 * time.Millisecond})
	fetching := dial(t, addr)
	for ended := int64(0); ; { // on a machine that stops now and then the time is over before the request is there
		fetching.Write(frame(fetchRequest(), 1))
		until(t, func() bool {
			return len(h.promises) > 0 || s.Stats().Closed["idle"]+s.Stats().Closed["peer closed"] > ended
		})
		if len(h.promises) > 0 {
			break
		}
		ended++
		fetching = dial(t, addr)
	}
	for range 3 {
		dial(t, addr).closed()
	}
	if n := s.Stats().Closed["idle"]; n < 3 {
		t.Errorf("Closed[idle] is %d, want 3", n)
	}
	h.next(t).complete(fetchAnswer())
	fetching.recvIDs(1)
	fetching.closed()
}

// untilSlow makes connections, and has them ask until the server gives one up because it takes no bytes. One that came to ask too late is idle.
func untilSlow(t *testing.T, s *Server, addr string, ask func(client)) {
	t.Helper()
	for ended := int64(0); s.Stats().Closed["slow reader"] == 0; ended++ {
		c := dial(t, addr)
		ask(c)
		until(t, func() bool { return s.Stats().Accepted > ended && s.Stats().Connections == 0 })
		c.Close()
	}
}

func TestSlowReaderEnds(t *testing.T) {
	log := newLines()
	s, addr := running(t, Config{Logger: log.logger(), IdleTimeout: 100 * time.Millisecond, Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		r := versioned(kmsg.NewPtrMetadataResponse(), 9)
		id := string(make([]byte, 1<<20))
		r.ClusterID = &id
		return Reply{Body: Message(r)}
	})})
	untilSlow(t, s, addr, func(c client) {
		f := frame(metadataRequest(), 1)
		for {
			if _, err := c.Write(f); err != nil {
				return // the server gave up
			}
		}
	})
	if line := log.next(t); !strings.Contains(line, "slow reader") {
		t.Error(line)
	}
}

func TestConnectionLimits(t *testing.T) {
	log := newLines()
	s, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(echo), Limits: Limits{MaxConnsPerIP: 2}})
	a, b := dial(t, addr), dial(t, addr)
	a.send(frame(metadataRequest(), 1))
	a.recvIDs(1)
	b.send(frame(metadataRequest(), 1))
	b.recvIDs(1)
	refused := dial(t, addr)
	refused.closed()
	log.next(t)
	a.Close()
	until(t, func() bool { return s.Stats().Connections == 1 })
	next := dial(t, addr)
	next.send(frame(metadataRequest(), 1))
	next.recvIDs(1)
}

func TestMaxConnsWaits(t *testing.T) {
	log := newLines()
	_, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(echo), Limits: Limits{MaxConns: 1}})
	a, b := dial(t, addr), dial(t, addr)
	a.send(frame(metadataRequest(), 1))
	a.recvIDs(1)
	b.send(frame(metadataRequest(), 2))
	log.next(t) // b waits
	a.Close()
	b.recvIDs(2)
	dial(t, addr) // and one that waits does not hinder the end
}

// TestWithoutRawSide runs tests as on systems other than Linux.
func TestWithoutRawSide(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"order": TestPipelinedAnswersKeepOrder, "limit": TestPipelineLimit, "blocking": TestBlockingPendingHoldsLaterRequests,
		"deadline": TestDeadlineIsKept, "vanished": TestVanishedPeerCancelsParkedAnswer, "shutdown": TestShutdown,
		"cancel": TestShutdownCancelsWhatIsNotReady, "wakes": TestWakesAreNeverLost, "idle": TestIdleSocketEnds,
		"slow reader": TestSlowReaderEnds, "budget": TestQueuedBytesBoundsAndProgresses, "liars": TestLiarsHinderNobody, "stalled": TestStalledSenderEndsWhenOthersWait, "sections": TestSections,
		"truncated": TestTruncatedSectionEndsTheConnection, "keys": TestAnswersEveryKeyAndVersion, "large": TestLargeFrames,
		"bad input": TestBadInputEndsTheConnection, "half close": TestHalfCloseStillAnswers, "end": TestFramesBeforeTheEndAreHandled,
	} {
		t.Run(name, test)
	}
}
