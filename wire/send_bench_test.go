package wire

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
)

// benchFile is larger than the processor's caches: what is fetched was seldom touched just before.
const benchFile = 256 << 20

// pair makes a connection of a server without goroutine, and a peer that reads and discards.
func pair(b *testing.B) *conn {
	b.Helper()
	s, err := New(Config{Handler: handlerFunc(echo), Supports: supportsAll})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		peer, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return
		}
		defer peer.Close()
		buf := make([]byte, 1<<20)
		for {
			if _, err := peer.Read(buf); err != nil {
				return
			}
		}
	}()
	nc, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close(); <-done })
	return newConn(s, nc, "BENCH")
}

// BenchmarkSection compares copying with sendfile for an answer of one section; copyLimit is where they cross.
func BenchmarkSection(b *testing.B) {
	file, _ := filled(b, benchFile)
	for _, kib := range []int{1, 4, 8, 16, 32, 64, 128, 256, 1024} {
		for _, way := range []string{"copy", "sendfile"} {
			b.Run(fmt.Sprintf("%s-%dKiB", way, kib), func(b *testing.B) {
				c := pair(b)
				if !c.sendsFiles() && way == "sendfile" {
					b.Skip("no sendfile on this platform")
				}
				n := kib << 10
				b.SetBytes(int64(n))
				b.ReportAllocs()
				runtime.LockOSThread() // so that the thread's time is that of the sender alone
				defer runtime.UnlockOSThread()
				before := threadCPU()
				off := int64(0)
				for b.Loop() {
					off = (off + int64(n)) % (benchFile - int64(n))
					c.out.Buf = append(c.out.Buf[:0], make([]byte, 60)...)
					c.out.sections = c.out.sections[:0]
					c.out.Add(Section{Source: file, Off: off, Len: n})
					c.out.Buf = append(c.out.Buf, 0, 0, 0, 0)
					var err error
					if way == "copy" {
						err = c.sendGathered(n)
					} else {
						err = c.sendBurst()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(threadCPU()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkBareSendfile is io.Copy from a file of 1 MiB to the socket, the bound for fetches.
func BenchmarkBareSendfile(b *testing.B) {
	file, _ := filled(b, benchFile)
	c := pair(b)
	b.SetBytes(1 << 20)
	off := int64(0)
	for b.Loop() {
		off = (off + 1<<20) % (benchFile - 1<<20)
		if _, err := file.Seek(off, io.SeekStart); err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyN(c.nc.(*net.TCPConn), file, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
