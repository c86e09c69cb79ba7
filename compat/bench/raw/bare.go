package raw

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// BareServer sends files by sendfile(2) in a loop to whoever connects: the most that any broker on this machine could
// reach with the same client. The first connection gets the first file, and so on.
type BareServer struct {
	listener net.Listener
	files    []string
	chunk    int
	wait     sync.WaitGroup
}

// NewBareServer listens on a free port. Each sendfile call sends at most chunk bytes.
func NewBareServer(files []string, chunk int) (*BareServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &BareServer{listener: l, files: files, chunk: chunk}
	s.wait.Go(s.accept)
	return s, nil
}

// Addr is where it listens.
func (s *BareServer) Addr() string { return s.listener.Addr().String() }

// Close stops listening and waits for the connections, which end when their clients close.
func (s *BareServer) Close() error {
	err := s.listener.Close()
	s.wait.Wait()
	return err
}

func (s *BareServer) accept() {
	for i := 0; ; i++ {
		nc, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		sock, err := nc.(*net.TCPConn).File()
		nc.Close()
		if err != nil {
			return
		}
		path := s.files[i%len(s.files)]
		s.wait.Go(func() {
			defer sock.Close()
			_ = s.send(int(sock.Fd()), path) // ends by the client's closing
		})
	}
}

func (s *BareServer) send(sock int, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fd := int(f.Fd())
	for {
		for offset := int64(0); offset < info.Size(); {
			n, err := unix.Sendfile(sock, fd, &offset, min(s.chunk, int(info.Size()-offset)))
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("%s: shorter than it was", path)
			}
		}
	}
}

// Drain reads and drops everything from one connection until stop is set.
func Drain(c *Conn, chunk int, stop *atomic.Bool, bytes *atomic.Int64) error {
	scratch := make([]byte, chunk)
	for !stop.Load() {
		if err := c.Discard(chunk, scratch); err != nil {
			return err
		}
		bytes.Add(int64(chunk))
	}
	return nil
}
