package wire

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handlerFunc is a Handler.
type handlerFunc func(ctx context.Context, req *Request) Reply

func (f handlerFunc) Handle(ctx context.Context, req *Request) Reply { return f(ctx, req) }

// supportsAll are the ranges of kmsg.
func supportsAll(key int16) (int16, int16, bool) {
	r := kmsg.RequestForKey(key)
	if r == nil {
		return 0, 0, false
	}
	return 0, r.MaxVersion(), true
}

// echo answers every request with an empty response of its kind.
func echo(_ context.Context, req *Request) Reply {
	return Reply{Body: Message(req.Body.ResponseKind())}
}

// patience is how long a test waits for what must come. It is long, since a machine may be busy, and never waited for in vain but by a test that fails.
const patience = 2 * time.Minute

// running starts a server on loopback that ends with the test.
func running(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	return stalling(t, cfg, stallWindow)
}

// stalling starts a server whose stall window is another.
func stalling(t testing.TB, cfg Config, stall time.Duration) (*Server, string) {
	t.Helper()
	s := prepared(t, cfg, stall)
	s.plain = strings.HasPrefix(t.Name(), "TestWithoutRawSide")
	addr, err := s.Listen("PLAINTEXT", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	return s, addr.String()
}

// prepared is a server that listens nowhere yet and ends with the test.
func prepared(t testing.TB, cfg Config, stall time.Duration) *Server {
	t.Helper()
	if cfg.Supports == nil {
		cfg.Supports = supportsAll
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.stall = stall
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if q := s.Stats().QueuedBytes; q != 0 {
			t.Errorf("QueuedBytes is %d after the end, want 0", q)
		}
	})
	return s
}

// client speaks raw frames.
type client struct {
	testing.TB
	net.Conn
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return client{t, nc}
}

// frame encodes a request with header.
func frame(req kmsg.Request, correlation int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester")).AppendRequest(nil, req, correlation)
}

// rawFrame puts a length before the bytes.
func rawFrame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func (c client) send(b ...[]byte) {
	c.Helper()
	var all []byte
	for _, p := range b {
		all = append(all, p...)
	}
	if _, err := c.Write(all); err != nil {
		c.Fatalf("write: %v", err)
	}
}

// recv reads one answer: correlation id and what follows it.
func (c client) recv() (int32, []byte) {
	c.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		c.Fatalf("read length: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		c.Fatalf("read answer: %v", err)
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

// recvIDs reads answers and checks their correlation ids.
func (c client) recvIDs(ids ...int32) {
	c.Helper()
	for _, want := range ids {
		if got, _ := c.recv(); got != want {
			c.Fatalf("correlation id %d, want %d", got, want)
		}
	}
}

// closed expects the end of the connection and nothing before.
func (c client) closed() {
	c.Helper()
	b, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.Fatal("connection is still open")
	}
	if len(b) > 0 {
		c.Fatalf("%d bytes before the end: %x", len(b), b)
	}
}

// promise is a Pending that tests complete.
type promise struct {
	mu        sync.Mutex
	reply     *Reply
	wake      func()
	deadline  time.Time
	onFinal   func() (Reply, bool) // at an ended context
	ctx       context.Context
	polls     int
	cancelled chan struct{}
}

func newPromise(ctx context.Context, req *Request) *promise {
	return &promise{wake: req.Wake, ctx: ctx, deadline: time.Now().Add(time.Hour), cancelled: make(chan struct{})}
}

func (p *promise) Poll(now time.Time) (Reply, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls++
	if p.reply != nil {
		return *p.reply, true
	}
	if p.ctx.Err() != nil && p.onFinal != nil {
		return p.onFinal()
	}
	if !now.Before(p.deadline) {
		return Reply{Body: Message(kmsg.NewPtrFetchResponse())}, true
	}
	return Reply{}, false
}

func (p *promise) Deadline() time.Time { return p.deadline }

func (p *promise) Cancel() { close(p.cancelled) }

func (p *promise) complete(r Reply) {
	p.mu.Lock()
	p.reply = &r
	p.mu.Unlock()
	p.wake()
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all []string
	c   chan struct{}
}

func newLines() *lines { return &lines{c: make(chan struct{}, 1000)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.all = append(l.all, string(b))
	l.mu.Unlock()
	l.c <- struct{}{}
	return len(b), nil
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (l *lines) next(t testing.TB) string {
	t.Helper()
	select {
	case <-l.c:
	case <-time.After(patience):
		t.Fatal("no log line")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[len(l.all)-1]
}

func waitFor(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("timed out waiting for %s", what)
	}
}

func produceRequest(version, acks int16, n int) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks = version, acks
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "some-topic"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = make([]byte, n)
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func versioned[R interface{ SetVersion(int16) }](r R, version int16) R {
	r.SetVersion(version)
	return r
}

func ids(from, to int) (out []int32) {
	for i := from; i < to; i++ {
		out = append(out, int32(i))
	}
	return out
}
