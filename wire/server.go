package wire

import (
	"context"
	"errors"
	"net"
)

// Server accepts connections and serves them. Its methods may be called from any goroutine.
type Server struct {
	cfg Config
}

// New checks the configuration and makes a Server that listens nowhere yet.
func New(cfg Config) (*Server, error) {
	if cfg.Handler == nil {
		return nil, errors.New("wire: Config.Handler is nil: give a Handler")
	}
	if cfg.Supports == nil {
		return nil, errors.New("wire: Config.Supports is nil: give a function that reports the versions of a key")
	}
	return &Server{cfg: cfg}, nil
}

// Listen binds the named listener to a TCP address and returns the address that was bound; port 0 picks a free one.
// Nothing is accepted before Serve. The error is a *ListenError, which names the address, the cause and the fix.
func (s *Server) Listen(name, addr string) (net.Addr, error) { return nil, errors.ErrUnsupported }

// Serve starts to accept on every listener and returns at once.
func (s *Server) Serve() {}

// Shutdown stops accepting, asks the pending answers once more, writes what is ready, closes every connection and awaits
// all goroutines. When ctx ends first the connections are closed at once, and ctx's error is returned after the goroutines ended.
func (s *Server) Shutdown(ctx context.Context) error { return nil }

// Stats reports the counters.
func (s *Server) Stats() Stats { return Stats{} }
