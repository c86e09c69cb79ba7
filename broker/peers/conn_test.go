package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

func dial(t *testing.T, d Dialer, endpoints []meta.Endpoint) *Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), endpoints)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestVersions: the highest version that both know, with brokers of several ages.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		name   string
		newest map[int16]int16
		req    kmsg.Request
		want   int16 // -1: none
	}{
		{"3.9", map[int16]int16{18: 4, 4: 7}, &kmsg.LeaderAndISRRequest{}, 7},
		{"2.0 knows ApiVersions 2", map[int16]int16{18: 2, 4: 1}, &kmsg.LeaderAndISRRequest{}, 1},
		{"0.10 knows ApiVersions 0", map[int16]int16{18: 0, 5: 0}, &StopReplicaRequest{}, 0},
		{"no later than allowed", map[int16]int16{18: 4, 5: 4}, &StopReplicaRequest{}, 2},
		{"later than what we know", map[int16]int16{18: 4, 6: 11}, &kmsg.UpdateMetadataRequest{}, 8},
		{"WriteTxnMarkers 2 is of KRaft", map[int16]int16{18: 4, 27: 2}, &kmsg.WriteTxnMarkersRequest{}, 1},
		{"AddPartitionsToTxn from brokers", map[int16]int16{18: 4, 24: 5}, &kmsg.AddPartitionsToTxnRequest{}, 5},
		{"AddPartitionsToTxn of clients only", map[int16]int16{18: 4, 24: 3}, &kmsg.AddPartitionsToTxnRequest{}, -1},
		{"header without client id", map[int16]int16{18: 4, 7: 0}, &kmsg.ControlledShutdownRequest{BrokerID: 3}, 0},
		{"flexible header", map[int16]int16{18: 4, 7: 3}, &kmsg.ControlledShutdownRequest{BrokerID: 3}, 3},
		{"a broker of KRaft", map[int16]int16{18: 4, 0: 11}, &kmsg.LeaderAndISRRequest{}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.newest = c.newest
			conn := dial(t, Dialer{ClientID: "7", Highest: map[int16]int16{keyStopReplica: 2}}, f.listen())
			resp, err := conn.Request(t.Context(), c.req)
			if c.want < 0 {
				if !errors.Is(err, ErrUnsupported) || conn.Broken() {
					t.Errorf("%v, broken %t, want %v and a connection that goes on", err, conn.Broken(), ErrUnsupported)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if seen := f.requests(); len(seen) != 1 || seen[0].GetVersion() != c.want || resp.GetVersion() != c.want {
				t.Errorf("%v, answer of version %d, want %d", seen, resp.GetVersion(), c.want)
			}
		})
	}
}

// TestConcurrentRequests: everybody gets the answer to his own question.
func TestConcurrentRequests(t *testing.T) {
	f := newFake(t)
	f.answer = func(req kmsg.Request) (kmsg.Response, error) {
		return &kmsg.ControlledShutdownResponse{ErrorCode: int16(req.(*kmsg.ControlledShutdownRequest).BrokerID)}, nil
	}
	c := dial(t, Dialer{}, f.listen())
	var running sync.WaitGroup
	for n := range int16(20) {
		running.Go(func() {
			resp, err := c.Request(t.Context(), &kmsg.ControlledShutdownRequest{BrokerID: int32(n)})
			if err != nil || resp.(*kmsg.ControlledShutdownResponse).ErrorCode != n {
				t.Errorf("%d: %+v, %v", n, resp, err)
			}
		})
	}
	running.Wait()
}

// TestContextEnds: the request ends with its context, and the connection with it, since the answer may still come.
func TestContextEnds(t *testing.T) {
	f, asked, release := newFake(t), make(chan struct{}), make(chan struct{})
	f.answer = func(kmsg.Request) (kmsg.Response, error) {
		close(asked)
		<-release
		return nil, errHangUp
	}
	c := dial(t, Dialer{}, f.listen())
	t.Cleanup(func() { close(release) }) // before listen waits
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := c.Request(ctx, &kmsg.UpdateMetadataRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	if _, err := c.Request(t.Context(), &kmsg.UpdateMetadataRequest{}); !errors.Is(err, net.ErrClosed) || !c.Broken() {
		t.Errorf("after that: %v, want %v", err, net.ErrClosed)
	}
}

func TestTimeout(t *testing.T) {
	f, release := newFake(t), make(chan struct{})
	f.answer = func(kmsg.Request) (kmsg.Response, error) { <-release; return nil, errHangUp }
	endpoints := f.listen()
	t.Cleanup(func() { close(release) })
	c := dial(t, Dialer{}, endpoints)
	c.timeout = 20 * time.Millisecond
	_, err := c.Request(t.Context(), &kmsg.UpdateMetadataRequest{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "UpdateMetadata 8 to 127.0.0.1:") {
		t.Errorf("%v", err)
	}
}

// TestDialFails: what is there does not answer as a broker does.
func TestDialFails(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	at := closed.Addr().(*net.TCPAddr)
	_, err = new(Dialer).Dial(t.Context(), []meta.Endpoint{{Listener: "L", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: int32(at.Port)}})
	if err == nil || !strings.Contains(err.Error(), "connecting to L://127.0.0.1:") {
		t.Errorf("nobody listens: %v", err)
	}
	for name, c := range map[string]struct {
		says string
		is   error
	}{
		"hangs up":            {"", io.EOF},
		"another protocol":    {"HTTP/1.1 400 Bad Request\r\n", ErrProtocol},
		"too small":           {"\x00\x00\x00\x03abc", ErrProtocol},
		"negative":            {"\xff\xff\xff\xff", ErrProtocol},
		"ends within":         {"\x00\x00\x00\x0aabc", io.ErrUnexpectedEOF},
		"another correlation": {"\x00\x00\x00\x06\x00\x00\x00\x07\x00\x00", ErrProtocol},
		"too many keys":       {"\x00\x00\x00\x0b\x00\x00\x00\x01\x00\x00\xff\xff\xff\xff\x0f", ErrProtocol},
		"an error":            {"\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x2a\x00\x00\x00\x00", ErrProtocol},
	} {
		dialer := Dialer{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				_, _ = readRequest(theirs)
				_, _ = theirs.Write([]byte(c.says))
			}()
			return ours, nil
		}}
		_, err := dialer.Dial(t.Context(), []meta.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 1}})
		if !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "asking PLAINTEXT://h:1 for its versions: ") {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
	}
}

// TestAnswerLimit: a size above the limit is refused before its bytes are read, and one below it costs no more than what came.
func TestAnswerLimit(t *testing.T) {
	if _, err := readFrame(bufio.NewReader(strings.NewReader("\x00\x00\x00\x09")), 8); !errors.Is(err, ErrProtocol) {
		t.Errorf("over the limit: %v", err)
	}
	large := bytes.Repeat([]byte("x"), 300<<10)
	got, err := readFrame(bufio.NewReader(bytes.NewReader(frame(large))), 1<<20)
	if err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	allocated := testing.AllocsPerRun(1, func() {
		_, err = readFrame(bufio.NewReader(strings.NewReader("\x06\x00\x00\x00few")), 100<<20)
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || allocated > 20 {
		t.Errorf("100 MiB announced, 3 bytes sent: %v, %v allocations", err, allocated)
	}
}

// FuzzAnswer reads answers to each kind of request.
func FuzzAnswer(f *testing.F) {
	kinds := []kmsg.Request{&kmsg.LeaderAndISRRequest{}, &kmsg.UpdateMetadataRequest{}, &StopReplicaRequest{}, kmsg.NewPtrApiVersionsRequest(),
		&kmsg.ControlledShutdownRequest{}, &kmsg.WriteTxnMarkersRequest{}}
	for kind, req := range kinds {
		for v := range req.MaxVersion() + 1 {
			req.SetVersion(v)
			b := []byte{0, 0, 0, 1}
			if req.IsFlexible() && req.Key() != keyAPIVersions {
				b = append(b, 0)
			}
			f.Add(uint8(kind), v, req.ResponseKind().AppendTo(b))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, version int16, b []byte) {
		req := kinds[int(kind)%len(kinds)]
		if version < 0 || version > req.MaxVersion() || len(b) < 4 {
			t.Skip("no version of the request, or shorter than frames are")
		}
		req.SetVersion(version)
		resp, err := decode(b, req, 1)
		if err != nil && !errors.Is(err, ErrProtocol) || err == nil && resp.Key() != req.Key() {
			t.Errorf("%v, %v", resp, err)
		}
		if err == nil {
			_, _ = read(&Broker{}, req, resp)
		}
	})
}

// TestPool: one connection for many requests, another after a failure and after the broker's restart.
func TestPool(t *testing.T) {
	f := newFake(t)
	var fail atomic.Bool
	f.answer = func(kmsg.Request) (kmsg.Response, error) {
		if fail.Load() {
			return nil, errHangUp
		}
		return nil, nil
	}
	broker, live := Broker{ID: 3, Epoch: 1, Endpoints: f.listen()}, true
	var dialed atomic.Int32
	dialer := Dialer{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	p := NewPool(dialer, func(int32) (Broker, bool) { return broker, live })
	ask := func(what string, wantDialed int32, want error) {
		t.Helper()
		_, err := p.Request(t.Context(), 3, &kmsg.WriteTxnMarkersRequest{})
		if !errors.Is(err, want) || dialed.Load() != wantDialed {
			t.Errorf("%s: %v, want %v; %d connections, want %d", what, err, want, dialed.Load(), wantDialed)
		}
	}
	ask("first", 1, nil)
	ask("again", 1, nil)
	fail.Store(true)
	ask("the broker hangs up", 1, io.EOF)
	fail.Store(false)
	ask("after a failure", 2, nil)
	broker.Epoch = 2
	ask("after a restart", 3, nil)
	live = false
	ask("after it left", 3, ErrLeft)
	live = true
	ask("when it came back", 4, nil)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	ask("closed", 4, ErrClosed)
}
