package wire

import "net/netip"

// Limits bound open connections. They can change while the Server runs; connections that are open stay.
type Limits struct {
	MaxConns      int // max.connections; 0 is no limit
	MaxConnsPerIP int // max.connections.per.ip; 0 is no limit, less lets only those in that PerIP has
	// PerIP takes the place of MaxConnsPerIP for these addresses, 0 for none (max.connections.per.ip.overrides). The Server keeps it.
	PerIP map[netip.Addr]int
	// PerListener is the most connections of listeners of these names (listener.name.NAME.max.connections). The Server keeps it.
	PerListener map[string]int
}

// SetLimits changes the limits. Connections that wait for a place are looked at again.
func (s *Server) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
	s.freed()
}

// freed wakes those who wait for a place. Server.mu is held.
func (s *Server) freed() {
	if s.placed != nil {
		close(s.placed)
		s.placed = nil
	}
}

// place takes a place among MaxConns and those of a listener if there is one. Otherwise it returns a channel that is closed when there may be, and the
// limit.
func (s *Server) place(listener string) (wait chan struct{}, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = s.limits.MaxConns
	full := limit > 0 && s.open >= limit
	if own, ok := s.limits.PerListener[listener]; ok && !full {
		limit, full = own, s.openOn[listener] >= own
	}
	if !full {
		s.open++
		s.openOn[listener]++
		return nil, limit
	}
	if s.placed == nil {
		s.placed = make(chan struct{})
	}
	return s.placed, limit
}

// leave gives the place back.
func (s *Server) leave(listener string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.openOn[listener]--; s.openOn[listener] == 0 {
		delete(s.openOn, listener)
	}
	s.freed()
}

// enterIP counts a connection of an address, unless it has as many as it may.
func (s *Server) enterIP(ip netip.Addr) (limit int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, own := s.limits.PerIP[ip]
	if !own {
		limit = s.limits.MaxConnsPerIP
	}
	if (own || limit != 0) && s.perIP[ip] >= limit {
		return limit, false
	}
	s.perIP[ip]++
	return limit, true
}

func (s *Server) leaveIP(ip netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip]--; s.perIP[ip] <= 0 {
		delete(s.perIP, ip)
	}
}
