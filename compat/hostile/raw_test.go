package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// raw is a connection that sends whatever it is told to.
type raw struct {
	net.Conn
}

func dial(t *testing.T, addr string) raw {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return raw{c}
}

func (c raw) send(t *testing.T, b []byte) {
	t.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(b); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// frame is a request as a client sends it.
func frame(corr int32, req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("hostile")).AppendRequest(nil, req, corr)
}

// sized puts a length in front of a body.
func sized(length int32, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), body...)
}

// read returns one response with its correlation id; body starts after that.
func (c raw) read(limit time.Duration) (corr int32, body []byte, err error) {
	_ = c.SetReadDeadline(time.Now().Add(limit))
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > 200<<20 {
		return 0, nil, fmt.Errorf("response of %d bytes", size)
	}
	body = make([]byte, size-4)
	_, err = io.ReadFull(c, body)
	return int32(binary.BigEndian.Uint32(head[4:])), body, err
}

// ask sends a request and decodes its answer.
func (c raw) ask(t *testing.T, corr int32, req kmsg.Request) kmsg.Response {
	t.Helper()
	c.send(t, frame(corr, req))
	return c.answer(t, corr, req)
}

func (c raw) answer(t *testing.T, corr int32, req kmsg.Request) kmsg.Response {
	t.Helper()
	got, body, err := c.read(time.Minute)
	if err != nil || got != corr {
		t.Fatalf("answer to %s: correlation id %d, want %d: %v", kmsg.NameForKey(req.Key()), got, corr, err)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		body = body[1:] // an empty set of header tags
	}
	if err := resp.ReadFrom(body); err != nil {
		t.Fatalf("answer to %s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp
}

// ends demands that the broker closes the connection within limit without having answered.
func (c raw) ends(limit time.Duration) error {
	_ = c.SetReadDeadline(time.Now().Add(limit))
	n, err := io.Copy(io.Discard, c)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the connection is still open after %v", limit)
	case n > 0:
		return fmt.Errorf("%d bytes came back", n)
	}
	return nil // end of file or a reset
}

// witness is an honest client that writes and reads all the time; it notices when the broker serves others worse.
type witness struct {
	rounds atomic.Int64
	stop   chan struct{}
	done   sync.WaitGroup

	mu    sync.Mutex
	worst time.Duration
	err   error
}

func startWitness(t *testing.T, b *harness.Broker) *witness {
	t.Helper()
	topic := harness.Topic("witness")
	b.Create(t, 1, nil, topic)
	cl := b.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}), kgo.ProducerLinger(0))
	w := &witness{stop: make(chan struct{})}
	w.done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-w.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := round(ctx, cl, topic, fmt.Sprint(n))
			cancel()
			w.mu.Lock()
			w.worst, w.err = max(w.worst, time.Since(start)), errors.Join(w.err, err)
			w.mu.Unlock()
			if err != nil {
				return
			}
			w.rounds.Add(1)
		}
	})
	return w
}

func round(ctx context.Context, cl *kgo.Client, topic, value string) error {
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		return err
	}
	for {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for r := range fetches.RecordsAll() {
			if string(r.Value) != value {
				return fmt.Errorf("read %q, wrote %q", r.Value, value)
			}
			return nil
		}
	}
}

// check ends the witness and tells whether it was served throughout. No round may take longer than limit.
func (w *witness) check(t *testing.T, limit time.Duration) {
	t.Helper()
	before := w.rounds.Load()
	for deadline := time.Now().Add(limit); w.rounds.Load() < before+3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if w.rounds.Load() < before+3 {
		t.Errorf("an honest client is not served any more: %d rounds in %v", w.rounds.Load()-before, limit)
	}
	close(w.stop)
	w.done.Wait()
	if w.err != nil || w.worst > limit {
		t.Errorf("an honest client was served badly: slowest round %v (limit %v), error %v", w.worst, limit, w.err)
	}
	t.Logf("an honest client did %d rounds meanwhile, the slowest in %v", w.rounds.Load(), w.worst.Round(time.Millisecond))
}
