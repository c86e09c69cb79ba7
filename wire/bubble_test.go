package wire

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener for connections within the process, whose deadlines follow the clock of a synctest bubble. They have no raw side.
type pipes struct {
	conns chan net.Conn
	end   sync.Once
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.end.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// bubble runs a test of windows and timeouts against a server in a synctest bubble, where no machine is too slow for them. What a client writes
// waits until the server reads it.
func bubble(t *testing.T, cfg Config, stall time.Duration, test func(t *testing.T, s *Server, dial func() client)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
		s := prepared(t, cfg, stall)
		s.listeners = append(s.listeners, listener{"PLAINTEXT", p})
		s.Serve()
		test(t, s, func() client {
			near, far := net.Pipe()
			t.Cleanup(func() { near.Close() })
			near.SetDeadline(time.Now().Add(patience))
			p.conns <- far
			return client{t, near}
		})
	})
}
