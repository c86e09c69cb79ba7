package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestParseHeader(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in       string
		flexible bool
		clientID string
		body     string
		err      error
	}{
		{"version 0 of ControlledShutdown", "\x00\x07\x00\x00\x00\x00\x00\x09rest", false, "", "rest", nil},
		{"version 1 of ControlledShutdown", "\x00\x07\x00\x01\x00\x00\x00\x09\x00\x02abrest", false, "ab", "rest", nil},
		{"null client id", "\x00\x03\x00\x01\x00\x00\x00\x09\xff\xffrest", false, "", "rest", nil},
		{"empty client id, no tags", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00\x00rest", true, "", "rest", nil},
		{"null client id, no tags", "\x00\x03\x00\x09\x00\x00\x00\x09\xff\xff\x00rest", true, "", "rest", nil},
		{"tags", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x01a\x02\x00\x03xyz\x81\x01\x00rest", true, "a", "rest", nil},
		{"short", "\x00\x03\x00\x09\x00\x00\x00", true, "", "", errHeaderShort},
		{"client id cut", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x05abcd", false, "", "", errHeaderShort},
		{"tag count missing", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00", true, "", "", errHeaderTags},
		{"tag cut", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00\x01\x00\x04xyz", true, "", "", errHeaderTags},
		{"tag count of 2^32-1", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00\xff\xff\xff\xff\x0f", true, "", "", errHeaderTags},
		{"varint of six bytes", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00\x80\x80\x80\x80\x80\x00", true, "", "", errHeaderTags},
		{"varint above 32 bits", "\x00\x03\x00\x09\x00\x00\x00\x09\x00\x00\xff\xff\xff\xff\x1f", true, "", "", errHeaderTags},
	} {
		h, body, err := parseHeader([]byte(tc.in), tc.flexible)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
			continue
		}
		if err == nil && (string(h.clientID) != tc.clientID || string(body) != tc.body || h.correlation != 9) {
			t.Errorf("%s: %+v, body %q", tc.name, h, body)
		}
	}
}

func TestProducePartsAreBounded(t *testing.T) {
	r := produceRequest(9, -1, 0)
	r.Topics[0].Partitions = make([]kmsg.ProduceRequestTopicPartition, maxProduceParts+1)
	if err := checkProduce(r.AppendTo(nil), 9); err != errTooMany {
		t.Errorf("error %v, want %v", err, errTooMany)
	}
	r.Topics[0].Partitions = r.Topics[0].Partitions[:1000]
	if err := checkProduce(r.AppendTo(nil), 9); err != nil {
		t.Error(err)
	}
}

// TestNoTagsBeforeTheirVersion fills in what newer versions have and expects older ones to be as if it were not there.
func TestNoTagsBeforeTheirVersion(t *testing.T) {
	produce := func(set bool) kmsg.Response {
		r := kmsg.NewPtrProduceResponse()
		rt := kmsg.NewProduceResponseTopic()
		rp := kmsg.NewProduceResponseTopicPartition()
		if set {
			rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = 3, 4
			b := kmsg.NewProduceResponseBroker()
			b.Host = "host"
			r.Brokers = append(r.Brokers, b)
		}
		rt.Partitions = append(rt.Partitions, rp)
		r.Topics = append(r.Topics, rt)
		return r
	}
	fetch := func(set bool) kmsg.Response {
		r := kmsg.NewPtrFetchResponse()
		if set {
			b := kmsg.NewFetchResponseBroker()
			b.Host = "host"
			r.Brokers = append(r.Brokers, b)
		}
		return r
	}
	for _, tc := range []struct {
		name  string
		build func(bool) kmsg.Response
		since int16
	}{{"Produce", produce, 10}, {"Fetch", fetch, 16}} {
		for v := int16(0); v <= tc.build(false).MaxVersion(); v++ {
			var with, without Payload
			Message(tc.build(true)).Encode(&with, v)
			Message(tc.build(false)).Encode(&without, v)
			if got := !bytes.Equal(with.Buf, without.Buf); got != (v >= tc.since) {
				t.Errorf("%s version %d: tags are written: %v", tc.name, v, got)
			}
		}
	}
}

func TestBudget(t *testing.T) {
	b := budget{limit: 100}
	first, favored := &waiter{}, &waiter{}
	if !b.acquire(first, 60) || first.favored {
		t.Fatal("the first frame has room")
	}
	if !b.acquire(favored, 60) || !favored.favored || b.used.Load() != 120 {
		t.Fatal("nobody waits and no frame is favored: the second one may overdraw")
	}
	if !b.try(favored, 1000) || b.try(first, 1) {
		t.Fatal("the favored frame goes on overdrawing, others do not")
	}
	b.release(1000)
	var woken []int
	second, third := &waiter{wake: func() { woken = append(woken, 2) }}, &waiter{wake: func() { woken = append(woken, 3) }}
	if b.acquire(second, 500) || b.acquire(third, 1) {
		t.Fatal("nothing is left")
	}
	b.release(60)
	if b.release(1); len(woken) > 0 { // 59 of 100 are used, which is not enough for the second, and the third is behind it
		t.Fatalf("woken %v", woken)
	}
	b.release(59)
	b.leave(favored)
	if fmt.Sprint(woken) != "[2 3]" && fmt.Sprint(woken) != "[2]" || !second.favored {
		t.Fatalf("woken %v: the first in the queue is the next to be favored", woken)
	}
	b.leave(second) // it does not know of its grant: that goes back and lets the third in
	if fmt.Sprint(woken) != "[2 3]" || b.used.Load() != 1 || second.favored || !b.granted(third) || b.granted(third) {
		t.Fatalf("woken %v, used %d", woken, b.used.Load())
	}
	b.release(1)
	b.leave(third)
	if b.used.Load() != 0 || b.waiting.Load() != 0 {
		t.Fatalf("used %d, waiting %d at the end", b.used.Load(), b.waiting.Load())
	}
}

// TestBudgetUnderContention has frames that grow step by step, more than fit at once. All come to their end, and the bound holds: used is never
// more than the limit and the favored frame, here 100 and 171.
func TestBudgetUnderContention(t *testing.T) {
	b := budget{limit: 100}
	var most atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			ch := make(chan struct{}, 1)
			for i := range 2000 {
				w := &waiter{wake: func() { ch <- struct{}{} }}
				held := int64(0)
				for step := range 3 {
					n := int64(1 + i%25<<step)
					if !b.acquire(w, n) {
						<-ch
						if i%7 == 0 {
							break // and does not know of it
						}
						if !b.granted(w) {
							t.Error("woken without a grant")
						}
					}
					held += n
					for used := b.used.Load(); ; {
						if old := most.Load(); old >= used || most.CompareAndSwap(old, used) {
							break
						}
					}
				}
				b.release(held)
				b.leave(w)
			}
		})
	}
	wg.Wait()
	if b.used.Load() != 0 || b.waiting.Load() != 0 || len(b.queue) != 0 || b.favored != nil {
		t.Errorf("used %d, waiting %d, queue %d, favored %v at the end", b.used.Load(), b.waiting.Load(), len(b.queue), b.favored)
	}
	if most.Load() > 100+3+24*7 {
		t.Errorf("used %d of 100: more than one frame too much", most.Load())
	}
}

func TestClasses(t *testing.T) {
	last := -1
	for n := 1; n <= largestClass; n += 1 + n/64 {
		class, size := classOf(n)
		if size < n || size > max(smallestClass, n+n/4+8) || class < last || class > last+1 {
			t.Fatalf("%d bytes: class %d after %d, size %d", n, class, last, size)
		}
		if again, same := classOf(size); again != class || same != size {
			t.Fatalf("%d bytes: class %d size %d, but its size has class %d size %d", n, class, size, again, same)
		}
		last = class
	}
	if class, _ := classOf(largestClass); class != bufferClasses-1 {
		t.Errorf("the largest class is %d, want %d", class, bufferClasses-1)
	}
	if class, size := classOf(largestClass + 1); class != -1 || size != largestClass+1 {
		t.Errorf("class %d size %d above the largest", class, size)
	}
	if n := int64(16<<20 + 70); charge(int(n)) != n || charge(chunkSize) != 0 {
		t.Error("a buffer is charged unless it is a chunk")
	}
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		l := limiter{log: slog.New(slog.NewTextHandler(&buf, nil))}
		for range 100 {
			l.warn(reasonTLS, "connection ended")
		}
		l.warn(reasonHTTP, "connection ended") // counted by itself
		if n := strings.Count(buf.String(), "\n"); n != limiterLines+1 {
			t.Errorf("%d lines, want %d", n, limiterLines+1)
		}
		buf.Reset()
		<-time.After(limiterWindow) // in the bubble
		l.warn(reasonTLS, "connection ended")
		l.warn(reasonTLS, "connection ended")
		if got := buf.String(); strings.Count(got, "suppressed=95") != 1 {
			t.Errorf("want one line that tells of 95 others: %s", got)
		}
	})
}

// failing is a listener whose Accept fails until it is closed.
type failing struct {
	mu    sync.Mutex
	times []time.Time
}

func (f *failing) Accept() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = append(f.times, time.Now())
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}
func (f *failing) Close() error   { return nil }
func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Handler: handlerFunc(echo), Supports: supportsAll})
		if err != nil {
			t.Fatal(err)
		}
		f := &failing{}
		s.listeners = append(s.listeners, listener{"PLAINTEXT", f})
		s.Serve()
		<-time.After(10 * time.Second) // in the bubble
		if err := s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := len(f.times); n < 15 || n > 20 { // 5 ms, 10 ms … 640 ms, then every second
			t.Errorf("%d attempts in 10 s", n)
		}
		if d := f.times[1].Sub(f.times[0]); d != acceptBackoffMin {
			t.Errorf("first pause %v", d)
		}
	})
}

func TestListenErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tc := range []struct{ addr, want string }{
		{l.Addr().String(), "another process"},
		{"192.0.2.1:0", "no such address"},
		{"127.0.0.1", "host:port"},
		{"127.0.0.1:99999", "host:port"},
		{"127.0.0.1:x", "host"},
	} {
		s, err := New(Config{Handler: handlerFunc(echo), Supports: supportsAll})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Listen("PLAINTEXT", tc.addr)
		var le *ListenError
		if !errors.As(err, &le) || le.Addr != tc.addr || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.addr) {
			t.Errorf("%s: %v does not name the address and %q", tc.addr, err, tc.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"Handler":  {Supports: supportsAll},
		"Supports": {Handler: handlerFunc(echo)},
		"MaxFrame": {Handler: handlerFunc(echo), Supports: supportsAll, MaxFrame: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLargeFrames goes through every way that a frame's buffer grows.
func TestLargeFrames(t *testing.T) {
	_, data := filled(t, 20<<20)
	same := make(chan bool, 1)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		records := req.Body.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
		same <- bytes.Equal(records, data[:len(records)])
		return echo(ctx, req)
	})})
	c := dial(t, addr)
	for _, size := range []int{1, chunkSize - 60, chunkSize, chunkSize + 1, 64 << 10, 1<<20 - 70, 1 << 20, 3 << 20, 16 << 20, 9 << 20, 20 << 20} {
		r := produceRequest(9, -1, 0)
		r.Topics[0].Partitions[0].Records = data[:size]
		f := frame(r, 1)
		go c.Write(append(f, f[:len(f):len(f)]...))
		for range 2 {
			if !<-same {
				t.Fatalf("size %d: the records differ", size)
			}
			c.recvIDs(1)
		}
	}
}
