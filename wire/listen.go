package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
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
// Nothing is accepted before Serve, and it must be called before Serve. The error is a *ListenError, which names the
// address, the cause and the fix. TCP keepalive and no-delay are on for accepted connections, as Go has them.
func (s *Server) Listen(name, addr string) (net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving || s.stopping.Load() {
		return nil, &ListenError{name, addr, "call Listen before Serve", errors.New("server is running or stopped")}
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, &ListenError{name, addr, listenFix(err), err}
	}
	s.listeners = append(s.listeners, listener{name, l})
	return l.Addr(), nil
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
