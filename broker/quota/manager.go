package quota

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Manager holds the quotas and meters what is used of them. All methods may be called concurrently.
type Manager struct {
	windows int           // quota.window.num
	window  time.Duration // quota.window.size.seconds
	table   atomic.Pointer[table]

	accept atomic.Pointer[map[string]float64] // rates of connections by listener, that of all by ""; never changed in place

	mu    sync.Mutex
	used  map[usage]*use
	prune int // look for quiet ones when there are so many
}

type usage struct {
	kind  Kind
	share Entity
}

// use is what one share used of one kind.
type use struct {
	meter  meter
	bucket bucket
	last   time.Time
}

// pruneFirst is how many shares may be remembered before it is looked which of them are quiet.
const pruneFirst = 1024

// New returns a manager without quotas that measures over the given number of windows.
func New(windows int, window time.Duration) *Manager {
	m := &Manager{windows: windows, window: window, used: make(map[usage]*use), prune: pruneFirst}
	m.table.Store(new(table))
	return m
}

// Set replaces the quotas of an entity; none removes it. It is for one goroutine at a time.
func (m *Manager) Set(e Entity, v Values) { m.table.Store(m.table.Load().with(e, v)) }

// Get returns the quotas of an entity; they must not be changed.
func (m *Manager) Get(e Entity) Values { return m.table.Load().of[e] }

// All calls f with each entity that has quotas, in no order.
func (m *Manager) All(f func(Entity, Values)) {
	for e, v := range m.table.Load().of {
		f(e, v)
	}
}

// Any says whether there is a quota of the kind at all.
func (m *Manager) Any(k Kind) bool { return m.table.Load().some[k] }

// Use records what a client used and returns how long it has to be quiet.
func (m *Manager) Use(k Kind, user, client string, v float64, now time.Time) time.Duration {
	t := m.table.Load()
	if !t.some[k] {
		return 0
	}
	l, ok := t.find(k, user, client)
	if !ok {
		return 0
	}
	return m.measure(k, l, v, now)
}

// Connect records a connection from an address and returns how long it has to wait.
func (m *Manager) Connect(ip string, now time.Time) time.Duration {
	t := m.table.Load()
	if !t.some[Connection] {
		return 0
	}
	l, ok := t.findIP(ip)
	if !ok {
		return 0
	}
	return m.measure(Connection, l, 1, now)
}

// SetAcceptRates limits the connections in a second by listener, those of all together by ""; 0 is no limit. The map is kept.
func (m *Manager) SetAcceptRates(rates map[string]float64) { m.accept.Store(&rates) }

// Accept records a connection to a listener and returns how long the next is to wait (max.connection.creation.rate).
func (m *Manager) Accept(listener string, now time.Time) time.Duration {
	rates := m.accept.Load()
	if rates == nil {
		return 0
	}
	var wait time.Duration
	if rate := (*rates)[""]; rate > 0 {
		wait = m.measure(Connection, limit{rate: rate}, 1, now)
	}
	if rate := (*rates)[listener]; rate > 0 && listener != "" {
		wait = max(wait, m.measure(Connection, limit{rate: rate, share: Entity{Client: listener}}, 1, now))
	}
	return wait
}

func (m *Manager) measure(k Kind, l limit, v float64, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(usage{k, l.share}, now)
	u.meter.record(now, v, m.windows, m.window)
	rate := u.meter.rate(now, m.windows, m.window)
	if rate <= l.rate {
		return 0
	}
	wait := m.seconds((rate - l.rate) / l.rate * m.whole().Seconds())
	if k == Request || k == Connection {
		return min(wait, m.window) // so that a burst does not shut somebody out for long
	}
	return wait
}

// Undo takes back what Use recorded, for an answer that is not given.
func (m *Manager) Undo(k Kind, user, client string, v float64, now time.Time) {
	l, ok := m.table.Load().find(k, user, client)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(usage{k, l.share}, now).meter.record(now, -v, m.windows, m.window)
}

// Window is how much a client can use within all windows: an answer larger than that would keep it waiting for ever.
func (m *Manager) Window(k Kind, user, client string) float64 {
	t := m.table.Load()
	if !t.some[k] {
		return math.Inf(1)
	}
	l, _ := t.find(k, user, client)
	return l.rate * float64(m.windows-1) * m.window.Seconds()
}

// Mutate takes n tokens for changes of partitions. With strict nothing is taken, and ok is false, when there are none left at all (KIP-599).
// The delay is how long the client has to wait.
func (m *Manager) Mutate(user, client string, n int, strict bool, now time.Time) (delay time.Duration, ok bool) {
	t := m.table.Load()
	if !t.some[Mutation] {
		return 0, true
	}
	l, found := t.find(Mutation, user, client)
	if !found {
		return 0, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &m.of(usage{Mutation, l.share}, now).bucket
	b.refill(now, l.rate, l.rate*m.whole().Seconds())
	if strict && b.tokens < 0 {
		return m.seconds(-b.tokens / l.rate), false
	}
	b.tokens -= float64(n)
	if b.tokens >= 0 {
		return 0, true
	}
	return m.seconds(-b.tokens / l.rate), true
}

// whole is all windows together.
func (m *Manager) whole() time.Duration { return time.Duration(m.windows) * m.window }

// seconds is a delay in whole milliseconds, as clients are told, within what an answer can say.
func (m *Manager) seconds(s float64) time.Duration {
	return time.Duration(min(math.Ceil(s*1000), math.MaxInt32)) * time.Millisecond
}

// of finds or makes the use of a share. mu must be held.
func (m *Manager) of(k usage, now time.Time) *use {
	u := m.used[k]
	if u == nil {
		if len(m.used) >= m.prune {
			m.forget(now)
		}
		u = new(use)
		m.used[k] = u
	}
	u.last = now
	return u
}

// forget drops the shares that were quiet so long that they are as good as new.
func (m *Manager) forget(now time.Time) {
	const debt = time.Hour // by then even a large one is paid
	for k, u := range m.used {
		if quiet := now.Sub(u.last); quiet >= m.whole() && u.bucket.tokens >= 0 || quiet >= debt {
			delete(m.used, k)
		}
	}
	m.prune = max(pruneFirst, 2*len(m.used))
}
