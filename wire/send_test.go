package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// parts is a Body of bytes and sections: positive numbers are bytes, negative ones sections of that length.
type parts struct {
	data     []byte // what all of it is, in order
	src      Source
	sizes    []int
	short    bool // promise more than the source has
	released *atomic.Int64
}

func (parts) Key() int16 { return 1 }

func (b parts) Encode(p *Payload, _ int16) {
	off := 0
	for _, n := range b.sizes {
		if n > 0 {
			p.Buf = append(p.Buf, b.data[off:off+n]...)
			off += n
			continue
		}
		s := Section{Source: b.src, Off: int64(off), Len: -n, Release: func() { b.released.Add(1) }}
		if b.short {
			s.Off = int64(len(b.data)) + int64(n) + 1
		}
		p.Add(s)
		off -= n
	}
}

func (b parts) sections() (n int64) {
	for _, s := range b.sizes {
		if s < 0 {
			n++
		}
	}
	return n
}

func (b parts) len() (n int) {
	for _, s := range b.sizes {
		n += max(s, -s)
	}
	return n
}

// filled makes a file with random content.
func filled(t testing.TB, n int) (*os.File, []byte) {
	t.Helper()
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(data)
	name := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, data
}

var layouts = map[string][]int{
	"no section":         {100},
	"small":              {30, -1000, 3},
	"at the copy limit":  {30, -copyLimit, 3},
	"over it":            {30, -copyLimit - 1, 3},
	"ends in a section":  {30, -100000},
	"starts with one":    {-100000, 5},
	"many":               {30, -70000, 10, -1, 10, -200000, 10, -5, -80000, 3},
	"adjacent and empty": {1, -50000, -50000, -50000},
	"large":              {30, -9 << 20, 20, -3 << 20, 1},
}

func TestSections(t *testing.T) {
	file, data := filled(t, 13<<20)
	for srcName, src := range map[string]Source{"file": file, "reader": bytes.NewReader(data), "file without descriptor": struct{ io.ReaderAt }{file}} {
		for name, sizes := range layouts {
			t.Run(srcName+"/"+name, func(t *testing.T) {
				b := parts{data: data, src: src, sizes: sizes, released: new(atomic.Int64)}
				s, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
					if req.Key != 1 {
						return echo(ctx, req)
					}
					return Reply{Body: b}
				})})
				c := dial(t, addr)
				var all []byte
				for i := range 3 { // several answers keep their order
					all = append(all, frame(fetchRequest(), int32(2*i))...)
					all = append(all, frame(metadataRequest(), int32(2*i+1))...)
				}
				c.send(all)
				for i := range int32(6) {
					id, got := c.recv()
					if id != i {
						t.Fatalf("correlation id %d, want %d", id, i)
					}
					if i%2 == 0 && !bytes.Equal(got[1:], data[:b.len()]) {
						t.Fatalf("answer %d differs from what was sent (%d bytes, want %d)", i, len(got)-1, b.len())
					}
				}
				until(t, func() bool { return b.released.Load() == 3*b.sections() })
				direct := s.Stats().SendfileBytes > 0
				total := 0
				for _, n := range sizes {
					total += max(0, -n)
				}
				if want := srcName == "file" && total > copyLimit && runtime.GOOS == "linux" && !s.plain; direct != want {
					t.Errorf("sendfile used: %v, want %v", direct, want)
				}
			})
		}
	}
}

func TestTruncatedSectionEndsTheConnection(t *testing.T) {
	file, data := filled(t, 1<<20)
	for srcName, src := range map[string]Source{"file": file, "reader": bytes.NewReader(data)} {
		for _, size := range []int{-1000, -100000, -900000} {
			t.Run(srcName, func(t *testing.T) {
				log := newLines()
				b := parts{data: data, src: src, sizes: []int{10, size, 10}, short: true, released: new(atomic.Int64)}
				_, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
					return Reply{Body: b}
				})})
				c := dial(t, addr)
				c.send(frame(fetchRequest(), 1), frame(fetchRequest(), 2))
				got, err := io.ReadAll(c)
				if err != nil && !errors.Is(err, net.ErrClosed) && len(got) >= 10-size+10 {
					t.Fatal(err)
				}
				if len(got) >= 4+5+10-size+10 {
					t.Fatalf("got %d bytes: the answer was padded", len(got))
				}
				log.next(t)
				until(t, func() bool { return b.released.Load() >= 1 })
				if n := b.released.Load(); n > 2 {
					t.Errorf("released %d times", n)
				}
			})
		}
	}
}

// TestSectionsAreReleasedWhenTheReaderLeaves also covers answers that are ready but behind one that is not.
func TestSectionsAreReleasedWhenTheReaderLeaves(t *testing.T) {
	file, data := filled(t, 8<<20)
	b := parts{data: data, src: file, sizes: []int{10, -8<<20 + 10}, released: new(atomic.Int64)}
	h := newParking()
	var pended atomic.Int64
	handler := handlerFunc(func(ctx context.Context, req *Request) Reply {
		if req.Key == 1 {
			return Reply{Body: b}
		}
		if pended.Add(1) == 1 {
			return h.Handle(ctx, req)
		}
		return Reply{Body: b}
	})
	s, addr := running(t, Config{IdleTimeout: 200 * time.Millisecond, Handler: handler})
	untilSlow(t, s, addr, func(c client) { c.Write(frame(fetchRequest(), 1)) })
	until(t, func() bool { return b.released.Load() == 1 })

	s, addr = running(t, Config{Handler: handler})
	gone := dial(t, addr)
	gone.send(frame(fetchRequest(), 1))
	gone.Read(make([]byte, 1000))
	gone.Conn.(*net.TCPConn).SetLinger(0)
	gone.Close()
	until(t, func() bool { return b.released.Load() == 2 })

	behind := dial(t, addr)
	behind.send(frame(produceRequest(9, -1, 1), 1), frame(produceRequest(9, -1, 1), 2))
	p := h.next(t)
	until(t, func() bool { return s.Stats().Requests[0] == 2 })
	behind.Conn.(*net.TCPConn).SetLinger(0)
	behind.Close()
	waitFor(t, "Cancel", p.cancelled)
	until(t, func() bool { return b.released.Load() == 3 })
}

// TestSlowReaderThatMovesStays reads a large answer in small steps, each within the timeout, for longer than the timeout.
func TestSlowReaderThatMovesStays(t *testing.T) {
	_, data := filled(t, 6<<20)
	b := parts{data: data, src: bytes.NewReader(data), sizes: []int{10, -6<<20 + 10}, released: new(atomic.Int64)}
	handler := handlerFunc(func(context.Context, *Request) Reply { return Reply{Body: b} })
	bubble(t, Config{IdleTimeout: 150 * time.Millisecond, Handler: handler}, stallWindow, func(t *testing.T, _ *Server, dial func() client) {
		c := dial()
		c.send(frame(fetchRequest(), 1))
		var got []byte
		chunk := make([]byte, 50<<10)
		for len(got) < 4+5+6<<20 {
			<-time.After(140 * time.Millisecond) // in the bubble
			n, err := c.Read(chunk)
			if err != nil {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			got = append(got, chunk[:n]...)
		}
		if !bytes.Equal(got[9:], data) {
			t.Error("the answer differs")
		}
	})
}

// TestSharedFile sends from one file over many connections at the same time: they share the descriptor, not a position.
func TestSharedFile(t *testing.T) {
	file, data := filled(t, 4<<20)
	released := new(atomic.Int64)
	_, addr := running(t, Config{Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
		return Reply{Body: parts{data: data, src: file, sizes: []int{10, -500000, 7, -700000}, released: released}}
	})})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c := dial(t, addr)
			for i := range int32(10) {
				c.send(frame(fetchRequest(), i))
				if id, got := c.recv(); id != i || !bytes.Equal(got[1:], data[:1200017]) {
					t.Errorf("answer %d differs", i)
					return
				}
			}
		})
	}
	wg.Wait()
}
