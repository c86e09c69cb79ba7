package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// ListenError says why a listener could not be bound and what helps.
type ListenError struct {
	Name string // of the listener
	Addr string // as given
	Fix  string
	Err  error
}

// Error implements error.
func (e *ListenError) Error() string {
	return fmt.Sprintf("wire: listener %s cannot bind %q: %v: %s", e.Name, e.Addr, e.Err, e.Fix)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// Listen binds the named listener to a TCP address and returns the address that was bound; port 0 picks a free one.
// Nothing is accepted before Serve; after it at once. The error is a *ListenError, which names the address, the cause and the fix. TCP keepalive and
// no-delay are on for accepted connections, as Go has them.
func (s *Server) Listen(name, addr string) (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return nil, &ListenError{name, addr, "make a new server", errors.New("server is stopped")}
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, &ListenError{name, addr, listenFix(err), err}
	}
	bound := listener{name, l}
	s.listeners = append(s.listeners, bound)
	if s.serving {
		s.running.Add(1)
		go s.acceptLoop(bound)
	}
	return l.Addr(), nil
}

// lingering is how long connections outlive their listener: what asked for its end is to be answered.
const lingering = 500 * time.Millisecond

// Unlisten closes the listener that is bound to an address, as Listen returned it, and half a second later the connections of listeners of that name
// that are open now.
func (s *Server) Unlisten(addr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.listeners, func(l listener) bool { return l.Addr() == addr })
	if i < 0 {
		return
	}
	gone := s.listeners[i]
	s.listeners = slices.Delete(s.listeners, i, i+1)
	gone.Close() //nolint:errcheck // nothing is lost with a listener
	var left []*conn
	for c := range s.conns {
		if c.info.Listener == gone.name {
			left = append(left, c)
		}
	}
	if len(left) == 0 || s.stopping.Load() {
		return
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		if s.pause(lingering) {
			s.end(left)
		}
	}()
}

// end closes those of the connections that are still open.
func (s *Server) end(conns []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		if _, open := s.conns[c]; open {
			c.nc.Close() //nolint:errcheck // ends what blocks; the connection's goroutine reports the end
			c.wake()     // for one that waits outside of the socket
		}
	}
}

// listenFix is the advice for a failed bind.
func listenFix(err error) string {
	var addrErr *net.AddrError
	var dnsErr *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process listens there: stop it or choose another port (port 0 picks a free one)"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher port or grant the capability"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address: use one of its own, or 0.0.0.0 or [::] for all"
	case errors.As(err, &dnsErr):
		return "the host name does not resolve: use an address of this machine, or 0.0.0.0 or [::] for all"
	case errors.As(err, &addrErr):
		return "the address must be host:port, for example 127.0.0.1:9092 or [::]:9092"
	}
	return "the address must be host:port of this machine, for example 127.0.0.1:9092"
}
