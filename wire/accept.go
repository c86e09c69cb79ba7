package wire

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
)

// acceptLoop accepts until the server stops. It never gives up on an error of Accept, since most pass (too many open files).
func (s *Server) acceptLoop(l listener) {
	defer s.running.Done()
	backoff := acceptBackoffMin
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			backoff = acceptBackoffMin
			if !s.admit(nc, l) {
				return
			}
		case s.stopping.Load() || errors.Is(err, net.ErrClosed):
			return
		default:
			s.log.Error("accept failed, trying again", "listener", l.name, "addr", l.Addr().String(), "error", err, "backoff", backoff,
				"fix", "if files ran out, raise the limit of open files (ulimit -n)")
			if !s.pause(backoff) {
				return
			}
			backoff = min(2*backoff, acceptBackoffMax)
		}
	}
}

// pause waits, unless the server stops first.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.quit:
		return false
	}
}

// admit starts the goroutine of an accepted connection within the limits. It returns false when the server or the listener stops.
// At MaxConns it waits for a place, as Kafka does: later clients stay in the kernel's queue and are served when others leave.
// Above MaxConnsPerIP the connection is closed.
func (s *Server) admit(nc net.Conn, l listener) bool {
	s.count.accepted.Add(1)
	ip := addrOf(nc.RemoteAddr())
	if limit, ok := s.enterIP(ip); !ok {
		s.count.closed[reasonPerIP].Add(1)
		s.quiet.warn(reasonPerIP, "connection refused", slog.String("peer", nc.RemoteAddr().String()), slog.Int("limit", limit))
		nc.Close() //nolint:errcheck // refused anyway
		return true
	}
	if s.cfg.Pace != nil {
		if d := s.cfg.Pace(l.name); d > 0 && !s.pause(d) {
			s.leaveIP(ip)
			nc.Close() //nolint:errcheck // the server stops
			return false
		}
	}
	if s.cfg.Delay != nil {
		if d := s.cfg.Delay(ip); d > 0 {
			s.closeLater(nc, ip, d)
			return true
		}
	}
	if !s.enter(l.name) {
		s.leaveIP(ip)
		nc.Close() //nolint:errcheck // the server stops
		return false
	}
	c := newConn(s, nc, l.name)
	s.mu.Lock()
	if s.stopping.Load() || !slices.Contains(s.listeners, l) {
		s.mu.Unlock()
		s.leave(l.name)
		s.leaveIP(ip)
		nc.Close() //nolint:errcheck // the server or the listener stops
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	s.count.connections.Add(1)
	go func() {
		defer s.running.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.leave(l.name)
		s.leaveIP(ip)
		s.count.connections.Add(-1) // last: who sees it gone may take its place
	}()
	return true
}

// closeLater ends a connection of an address that makes too many, after a delay: an immediate end would be answered by the next attempt.
func (s *Server) closeLater(nc net.Conn, ip netip.Addr, d time.Duration) {
	s.count.closed[reasonRate].Add(1)
	s.quiet.warn(reasonRate, "connection refused", slog.String("peer", nc.RemoteAddr().String()), slog.Duration("after", d))
	s.running.Add(1) // the listener's own keeps it from ending before
	go func() {
		defer s.running.Done()
		s.pause(d)
		nc.Close() //nolint:errcheck // refused anyway
		s.leaveIP(ip)
	}()
}

// enter takes a place among MaxConns and those of the listener, and waits for one if need be.
func (s *Server) enter(listener string) bool {
	for warned := false; ; warned = true {
		wait, limit := s.place(listener)
		if wait == nil {
			return true
		}
		if !warned {
			s.quiet.warn(reasonMaxConns, "new connections wait", slog.String("listener", listener), slog.Int("limit", limit))
		}
		select {
		case <-wait:
		case <-s.quit:
			return false
		}
	}
}

// addrOf is the address without port; the zero Addr stands for whatever is not IP.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
