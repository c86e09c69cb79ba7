package wire

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestMute: the answer comes at once and says how long the client has to be quiet; what it sent behind is handled when that is over, also when nothing
// else happens on the connection.
func TestMute(t *testing.T) {
	const mute = 150 * time.Millisecond
	handled := make(chan time.Time, 2)
	_, addr := running(t, Config{Handler: muting(mute, handled)})
	c := dial(t, addr)
	c.send(frame(metadataRequest(), 1), frame(metadataRequest(), 2))
	_, body := c.recv()
	resp := versioned(kmsg.NewPtrMetadataRequest(), 9).ResponseKind().(*kmsg.MetadataResponse)
	if err := resp.ReadFrom(body[1:]); err != nil || resp.ThrottleMillis != int32(mute.Milliseconds()) {
		t.Errorf("throttle time is %d ms, %v", resp.ThrottleMillis, err)
	}
	c.recvIDs(2)
	first := <-handled
	if waited := (<-handled).Sub(first); waited < mute {
		t.Errorf("the second request was handled after %v, want %v", waited, mute)
	}
}

// muting asks for quiet after each request.
func muting(mute time.Duration, handled chan<- time.Time) handlerFunc {
	return func(_ context.Context, req *Request) Reply {
		handled <- time.Now()
		return Reply{Body: Message(req.Body.ResponseKind()), Mute: mute}
	}
}

// TestMuteIsNotIdle: that a connection was quiet is not held against it.
func TestMuteIsNotIdle(t *testing.T) {
	const mute, idle = 150 * time.Millisecond, 120 * time.Millisecond
	handled := make(chan time.Time, 3)
	bubble(t, Config{IdleTimeout: idle, Handler: muting(mute, handled)}, stallWindow, func(t *testing.T, _ *Server, dial func() client) {
		c, start := dial(), time.Now()
		c.send(frame(metadataRequest(), 1), frame(metadataRequest(), 2))
		c.recvIDs(1)
		if d := time.Since(start); d != 0 {
			t.Errorf("the answer came after %v", d)
		}
		c.recvIDs(2)
		<-time.After(mute + idle - time.Millisecond) // in the bubble
		c.send(frame(metadataRequest(), 3))
		c.recvIDs(3)
		for _, want := range []time.Duration{0, mute, 2*mute + idle - time.Millisecond} {
			if got := (<-handled).Sub(start); got != want {
				t.Errorf("handled after %v, want %v", got, want)
			}
		}
		<-time.After(mute + idle) // in the bubble
		c.closed()
	})
}

// TestMuteWithoutAnswer: acks 0 has no answer, and its connection is held up too.
func TestMuteWithoutAnswer(t *testing.T) {
	const mute = 100 * time.Millisecond
	handled := make(chan time.Time, 2)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		handled <- time.Now()
		if req.Key == 0 {
			return Reply{Silent: true, Mute: mute}
		}
		return echo(ctx, req)
	})})
	c := dial(t, addr)
	c.send(frame(produceRequest(9, 0, 100), 1), frame(metadataRequest(), 2))
	c.recvIDs(2)
	if first := <-handled; (<-handled).Sub(first) < mute {
		t.Error("the second request did not wait")
	}
}

// TestMutedConnectionsEnd: neither a peer that leaves nor a stop of the server waits for a muted connection.
func TestMutedConnectionsEnd(t *testing.T) {
	s, addr := running(t, Config{Handler: handlerFunc(func(_ context.Context, req *Request) Reply {
		return Reply{Body: Message(req.Body.ResponseKind()), Mute: time.Hour}
	})})
	leaver, stayer := dial(t, addr), dial(t, addr)
	for _, c := range []client{leaver, stayer} {
		c.send(frame(metadataRequest(), 1))
		c.recvIDs(1)
	}
	leaver.Close()
	until(t, func() bool { return s.Stats().Connections == 1 })
}

// TestDelay: a connection that is made too soon after others is closed after a while, unanswered, and the server does not wait for it when it stops.
func TestDelay(t *testing.T) {
	var asked atomic.Int64
	s, addr := running(t, Config{Handler: handlerFunc(echo), Delay: func(peer netip.Addr) time.Duration {
		switch asked.Add(1) {
		case 1:
			return 0
		case 2:
			return 10 * time.Millisecond
		}
		return time.Hour
	}})
	served := dial(t, addr)
	served.send(frame(metadataRequest(), 1))
	served.recvIDs(1)
	if n, err := dial(t, addr).Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes for a connection that was to be closed", n)
	}
	dial(t, addr)
	until(t, func() bool { return asked.Load() == 3 })
	if n := s.Stats().Closed[reasonRate.String()]; n < 1 {
		t.Errorf("%d counted", n)
	}
}
