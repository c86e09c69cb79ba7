package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAnswersEveryKeyAndVersion(t *testing.T) {
	_, addr := running(t, Config{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	id := int32(0)
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		for version := int16(0); version <= kmsg.RequestForKey(key).MaxVersion(); version++ {
			id++
			req := versioned(kmsg.RequestForKey(key), version)
			f := frame(req, id)
			if key == 7 && version == 0 { // header version 0, which the formatter does not know
				f = rawFrame([]byte{0, 7, 0, 0, 0, 0, byte(id >> 8), byte(id), 0, 0, 0, 0})
			}
			c.send(f)
			got, b := c.recv()
			if got != id {
				t.Fatalf("key %d version %d: correlation id %d, want %d", key, version, got, id)
			}
			if req.IsFlexible() && key != 18 {
				if len(b) == 0 || b[0] != 0 {
					t.Fatalf("key %d version %d: response header version 1 has a tag buffer; got %x", key, version, b)
				}
				b = b[1:]
			}
			resp := req.ResponseKind()
			if want := resp.AppendTo(nil); !bytes.Equal(b, want) {
				t.Fatalf("key %d version %d: body %x, want %x", key, version, b, want)
			}
		}
	}
}

func TestUnknownApiVersionsVersion(t *testing.T) {
	_, addr := running(t, Config{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	for id, junk := range [][]byte{{}, {0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0x80}, 40)} {
		c.send(rawFrame(append([]byte{0, 18, 0, 99, 0, 0, 0, byte(id)}, junk...)))
		got, b := c.recv()
		want := []byte{0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}
		if got != int32(id) || !bytes.Equal(b, want) {
			t.Fatalf("id %d: got id %d body %x, want %x", id, got, b, want)
		}
	}
	c.send(frame(versioned(kmsg.NewPtrApiVersionsRequest(), 0), 7)) // the connection stays open
	c.recvIDs(7)
}

func TestClientIDs(t *testing.T) {
	got := make(chan string, 1)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		got <- req.ClientID
		return echo(ctx, req)
	})})
	c := dial(t, addr)
	for _, id := range []string{"", "a", strings.Repeat("x", 300), "ü/ \x00", strings.Repeat("y", 32<<10-1), "null"} {
		for _, req := range []kmsg.Request{versioned(kmsg.NewPtrApiVersionsRequest(), 3), versioned(kmsg.NewPtrMetadataRequest(), 12)} {
			f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(id)).AppendRequest(nil, req, 1)
			if id == "null" {
				f = kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
			}
			c.send(f)
			c.recvIDs(1)
			want := id
			if id == "null" {
				want = ""
			}
			if g := <-got; g != want {
				t.Fatalf("client id %.20q, want %.20q", g, want)
			}
		}
	}
}

func TestSoftwareIsKept(t *testing.T) {
	got := make(chan string, 1)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		got <- req.Conn.SoftwareName + " " + req.Conn.SoftwareVersion + " " + req.Conn.Listener
		return echo(ctx, req)
	})})
	for _, tc := range []struct {
		name, version, want string
	}{
		{"apache-kafka-java", "4.4.0", "apache-kafka-java 4.4.0 PLAINTEXT"},
		{"-bad", "1", "  PLAINTEXT"},
		{"bad name", "1", "  PLAINTEXT"},
		{"", "", "  PLAINTEXT"},
	} {
		c := dial(t, addr)
		r := versioned(kmsg.NewPtrApiVersionsRequest(), 3)
		r.ClientSoftwareName, r.ClientSoftwareVersion = tc.name, tc.version
		c.send(frame(r, 1))
		c.recvIDs(1)
		if g := <-got; g != tc.want {
			t.Errorf("software %q, want %q", g, tc.want)
		}
	}
}

func TestBadInputEndsTheConnection(t *testing.T) {
	meta := frame(versioned(kmsg.NewPtrMetadataRequest(), 9), 1)
	for _, tc := range []struct {
		name   string
		bytes  []byte
		reason reason
		detail string
	}{
		{"length 0", []byte{0, 0, 0, 0}, reasonBadFrame, "length 0"},
		{"length 3", []byte{0, 0, 0, 3, 1, 2, 3}, reasonBadFrame, "length 3"},
		{"length -1", []byte{0xff, 0xff, 0xff, 0xff}, reasonBadFrame, "length -1"},
		{"length max", []byte{0x7f, 0xff, 0xff, 0xff}, reasonBadFrame, "length 2147483647"},
		{"over the limit", binary.BigEndian.AppendUint32(nil, 100<<20+1), reasonBadFrame, "socket.request.max.bytes"},
		{"http", []byte("GET / HTTP/1.1\r\n\r\n"), reasonHTTP, "GET"},
		{"tls", []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}, reasonTLS, "ClientHello"},
		{"unknown key", rawFrame([]byte{0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0, 0}), reasonUnsupported, "key=999"},
		{"negative key", rawFrame([]byte{0xff, 0xff, 0, 0, 0, 0, 0, 1, 0, 0}), reasonUnsupported, "not supported"},
		{"unknown version", rawFrame([]byte{0, 3, 0, 99, 0, 0, 0, 1, 0, 0}), reasonUnsupported, "version=99"},
		{"negative version", rawFrame([]byte{0, 3, 0xff, 0xff, 0, 0, 0, 1, 0, 0}), reasonUnsupported, "0 to 13"},
		{"large control frame", append(binary.BigEndian.AppendUint32(nil, maxControlFrame+1), 0, 3, 0, 9, 0, 0, 0, 1), reasonBadFrame, "without records"},
		{"client id too long", rawFrame([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 0, 0, 0, 0}), reasonUnparsable, "header"},
		{"client id length -2", rawFrame([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe, 0, 0, 0, 0}), reasonUnparsable, "header"},
		{"no client id", rawFrame([]byte{0, 3, 0, 1, 0, 0, 0, 1}), reasonUnparsable, "header"},
		{"header tags", rawFrame([]byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}), reasonUnparsable, "tagged"},
		{"array lies", rawFrame([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}), reasonUnparsable, "runs past"},
		{"produce lies", rawFrame([]byte{0, 0, 0, 7, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}), reasonUnparsable, "runs past"},
		{"body cut", rawFrame(meta[4 : len(meta)-1]), reasonUnparsable, "runs past"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := newLines()
			s, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(echo)})
			c := dial(t, addr)
			c.send(tc.bytes)
			c.closed()
			line := log.next(t)
			for _, want := range []string{tc.reason.String(), tc.detail, c.LocalAddr().String()} {
				if !strings.Contains(line, want) {
					t.Errorf("log line %q does not name %q", line, want)
				}
			}
			if n := s.Stats().Closed[tc.reason.String()]; n != 1 {
				t.Errorf("Closed[%v] is %d, want 1", tc.reason, n)
			}
		})
	}
}

func TestEarlierAnswersGoOutBeforeABadFrame(t *testing.T) {
	var p *promise
	ready := make(chan struct{})
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		p = newPromise(ctx, req)
		close(ready)
		return Reply{Pending: p, Pipeline: true}
	})})
	c := dial(t, addr)
	c.send(frame(produceRequest(9, -1, 10), 1), []byte{0xff, 0xff, 0xff, 0xff})
	waitFor(t, "the request", ready)
	p.complete(Reply{Body: Message(kmsg.NewPtrProduceResponse())})
	c.recvIDs(1)
	c.closed()
}

func TestHandlerClosesAfterEarlierAnswers(t *testing.T) {
	log := newLines()
	_, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		if req.Key == 0 {
			return Reply{Close: "acks=0 to a missing partition"}
		}
		return echo(ctx, req)
	})})
	c := dial(t, addr)
	meta := versioned(kmsg.NewPtrMetadataRequest(), 9)
	c.send(frame(meta, 1), frame(meta, 2), frame(produceRequest(3, 0, 1), 3), frame(meta, 4))
	c.recvIDs(1, 2)
	c.closed()
	if line := log.next(t); !strings.Contains(line, "missing partition") || !strings.Contains(line, "key=0") {
		t.Errorf("log line %q", line)
	}
}

func TestWrongRepliesAndPanicsEndTheConnection(t *testing.T) {
	for name, handler := range map[string]handlerFunc{
		"zero reply": func(context.Context, *Request) Reply { return Reply{} },
		"two replies": func(_ context.Context, req *Request) Reply {
			return Reply{Silent: true, Body: Message(req.Body.ResponseKind())}
		},
		"panic": func(context.Context, *Request) Reply { panic("handler bug") },
		"late pending": func(context.Context, *Request) Reply {
			return Reply{Pending: neverReady{time.Now().Add(time.Millisecond)}}
		},
		"panic in poll": func(ctx context.Context, req *Request) Reply {
			p := newPromise(ctx, req)
			p.reply = &Reply{Body: badBody{}}
			req.Wake()
			return Reply{Pending: p}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLines()
			_, addr := running(t, Config{Logger: log.logger(), Handler: handler})
			c := dial(t, addr)
			c.send(frame(versioned(kmsg.NewPtrMetadataRequest(), 9), 1))
			c.closed()
			log.next(t)
		})
	}
}

type neverReady struct{ deadline time.Time }

func (neverReady) Poll(time.Time) (Reply, bool) { return Reply{}, false }
func (n neverReady) Deadline() time.Time        { return n.deadline }
func (neverReady) Cancel()                      {}

type badBody struct{}

func (badBody) Key() int16             { return 1 }
func (badBody) Encode(*Payload, int16) { panic("encode bug") }

func TestSilentWritesNothing(t *testing.T) {
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		if p, ok := req.Body.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
			return Reply{Silent: true}
		}
		return echo(ctx, req)
	})})
	c := dial(t, addr)
	var all []byte
	for range 100 {
		all = append(all, frame(produceRequest(7, 0, 1000), 1)...)
	}
	c.send(all, frame(versioned(kmsg.NewPtrMetadataRequest(), 9), 2))
	c.recvIDs(2)
	c.CloseWrite()
	c.closed()
}

// CloseWrite sends the end of the stream and keeps the reading half open.
func (c client) CloseWrite() { c.Conn.(*net.TCPConn).CloseWrite() }

func TestFramesBeforeTheEndAreHandled(t *testing.T) {
	for range 50 {
		var n int
		s, addr := running(t, Config{Handler: handlerFunc(func(_ context.Context, req *Request) Reply {
			n++
			return Reply{Silent: true}
		})})
		c := dial(t, addr)
		var all []byte
		for range 10 {
			all = append(all, frame(produceRequest(7, 0, 3000), 1)...)
		}
		c.send(all, []byte{0, 0, 1}) // and a torn frame
		c.Close()
		shut(t, s, "peer closed")
		if n != 10 {
			t.Fatalf("%d requests handled, want 10", n)
		}
	}
}

// shut waits until a connection ended for the reason and then stops the server, so that what the handler wrote can be read.
func shut(t *testing.T, s *Server, reason string) {
	t.Helper()
	until(t, func() bool { return s.Stats().Closed[reason] > 0 && s.Stats().Connections == 0 })
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// until polls for a condition that nothing signals.
func until(t testing.TB, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("condition not met in %v", patience)
		}
	}
}

func TestHalfCloseStillAnswers(t *testing.T) {
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		p := newPromise(ctx, req)
		time.AfterFunc(20*time.Millisecond, func() { p.complete(Reply{Body: Message(req.Body.ResponseKind())}) })
		return Reply{Pending: p, Pipeline: true}
	})})
	c := dial(t, addr)
	for i := range 20 {
		c.send(frame(produceRequest(9, -1, 5000), int32(i)))
	}
	c.CloseWrite()
	c.recvIDs(ids(0, 20)...)
	c.closed()
}
