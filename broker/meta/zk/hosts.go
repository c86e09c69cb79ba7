package zk

import (
	"math/rand/v2"
	"sync"
)

// hosts gives the library the servers by the names that they were given by, in a random order that stays. Its own provider makes addresses of them at the
// start: certificates are for names, and an address may become another's.
type hosts struct {
	mu      sync.Mutex // a leaf
	servers []string
	now     int
	last    int // the one that was connected to
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.now, h.last = append([]string{}, servers...), -1, -1
	rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next implements zk.HostProvider: the next server, and whether all were tried, so that the library waits.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = (h.now + 1) % len(h.servers)
	retryStart = h.now == h.last
	h.last = max(h.last, 0)
	return h.servers[h.now], retryStart
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.now
}
