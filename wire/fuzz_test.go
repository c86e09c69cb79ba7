package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// seedFrames are valid frames, without their length, of many keys and versions.
func seedFrames() (all [][]byte) {
	for key := int16(0); key <= kmsg.MaxKey; key += 3 {
		req := kmsg.RequestForKey(key)
		for _, v := range []int16{0, req.MaxVersion()} {
			req.SetVersion(v)
			all = append(all, frame(req, 1)[4:])
		}
	}
	for _, v := range []int16{0, 3, 9, 13} {
		all = append(all, frame(produceRequest(v, -1, 10), 1)[4:])
	}
	return all
}

func FuzzHeader(f *testing.F) {
	for _, b := range seedFrames() {
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Add([]byte{0, 7, 0, 0, 0, 0, 0, 1}, false)
	f.Add([]byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 2, 0, 1, 7, 0x80, 1, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, flexible bool) {
		h, body, err := parseHeader(b, flexible)
		if err != nil {
			return
		}
		if len(body)+len(h.clientID)+minFrame > len(b) {
			t.Fatalf("header %+v and body of %d bytes out of %d", h, len(body), len(b))
		}
		if !bytes.HasSuffix(b, body) || !bytes.Contains(b, h.clientID) {
			t.Fatal("body or client id is not from the frame")
		}
	})
}

// allocated measures what f allocates on the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// decodeFactor is the most memory that decoding takes for a byte of the frame; decodeBase is what any request takes.
const (
	decodeFactor = 200
	decodeBase   = 16 << 10
)

// FuzzDecode decodes frames and measures what that allocates: nothing may come of a length alone.
func FuzzDecode(f *testing.F) {
	for _, b := range seedFrames() {
		f.Add(b)
	}
	s, err := New(Config{Handler: handlerFunc(echo), Supports: supportsAll})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < minFrame {
			return
		}
		h := peekHeader(b)
		low, high, ok := supportsAll(h.key)
		if !ok || h.version < low || h.version > high {
			return
		}
		c := &conn{srv: s}
		n := allocated(func() {
			sl := new(slot)
			if c.parse(sl, b) == nil {
				s.free(sl)
			}
		})
		// Other goroutines of the fuzzer allocate too, so a measurement over the limit has to repeat itself.
		limit := uint64(decodeBase + decodeFactor*len(b))
		for range 5 {
			if n <= limit {
				return
			}
			n = min(n, allocated(func() { c.parse(new(slot), b) }))
		}
		if n > limit {
			t.Fatalf("%d bytes for a frame of %d", n, len(b))
		}
	})
}

// FuzzProduce checks that the walk over a Produce body and kmsg agree on what is whole.
func FuzzProduce(f *testing.F) {
	for v := int16(0); v <= 13; v++ {
		r := produceRequest(v, -1, 10)
		f.Add(r.AppendTo(nil), v)
	}
	f.Fuzz(func(t *testing.T, b []byte, version int16) {
		if version < 0 || version > 13 {
			return
		}
		walked := checkProduce(b, version)
		if walked == errTooMany {
			return
		}
		r := kmsg.NewPtrProduceRequest()
		r.Version = version
		if err := r.ReadFrom(b); walked != nil && err == nil {
			t.Fatalf("version %d %x: kmsg takes it, the walk says %v", version, b, walked)
		}
	})
}

// FuzzConnection feeds arbitrary bytes to a whole connection without a raw side. What goes in valid must come out answered, and the
// connection ends by itself when the bytes do.
func FuzzConnection(f *testing.F) {
	seeds := seedFrames()
	for i, b := range seeds {
		f.Add(append(rawFrame(b), rawFrame(seeds[(i+1)%len(seeds)])...))
	}
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := New(Config{Supports: supportsAll, MaxFrame: 1 << 20, Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
			switch req.Key % 4 {
			case 0:
				return Reply{Silent: true}
			case 1:
				return Reply{Pending: soon{time.Now(), req.Body.ResponseKind()}, Pipeline: req.Version%2 == 0}
			}
			return echo(ctx, req)
		})})
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		answers := make(chan int64, 1)
		go func() {
			n, _ := io.Copy(io.Discard, near)
			answers <- n
		}()
		go func() {
			near.Write(b)
			near.Close()
		}()
		c := newConn(s, far, "FUZZ")
		c.serve()
		<-answers
		if q := s.budget.used.Load(); q != 0 {
			t.Fatalf("%d bytes are still reserved", q)
		}
		if n := s.count.closed[reasonPanic].Load(); n != 0 {
			t.Fatal("the connection panicked")
		}
		if want := wholeFrames(b); s.requests() > want {
			t.Fatalf("%d requests out of %d frames", s.requests(), want)
		}
	})
}

func (s *Server) requests() (n int) {
	for i := range s.count.requests {
		n += int(s.count.requests[i].Load())
	}
	return n
}

func wholeFrames(b []byte) (n int) {
	for len(b) >= 4 {
		size := int(int32(binary.BigEndian.Uint32(b)))
		if size < 0 || size > len(b)-4 {
			break
		}
		b = b[4+size:]
		n++
	}
	return n
}

// soon is a Pending that is ready when it is asked.
type soon struct {
	at   time.Time
	resp kmsg.Response
}

func (s soon) Poll(time.Time) (Reply, bool) { return Reply{Body: Message(s.resp)}, true }
func (s soon) Deadline() time.Time          { return s.at }
func (s soon) Cancel()                      {}
