package fetchsession

import (
	"container/heap"
	"container/list"
	"time"
)

// session is what is remembered for one client.
type session struct {
	id       int32
	follower bool
	usesIDs  bool

	// Guarded by Cache.mu.
	epoch   int32 // of the next request
	busy    bool  // a Context uses it
	used    time.Time
	size    int // partitions that the cache counts for it
	useElem *list.Element
	heapAt  int // index in Cache.byValue

	// Belong to whoever uses the session.
	parts   partitions
	context Context
}

// worthLess says if s gives its slot to o: followers before consumers, many partitions before few. Equals do not evict each other, so that
// clients of the same kind cannot drive one another out in turns.
func (s *session) worthLess(o *session) bool {
	if s.follower != o.follower {
		return o.follower
	}
	return s.size < o.size
}

// insert gives a new session a slot and an id. It fails when all slots are taken by sessions that are in use and worth as much.
func (c *Cache) insert(s *session, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.size > c.maxPartitions || c.slots <= 0 {
		return false
	}
	for len(c.sessions) >= c.slots || c.partitions+s.size > c.maxPartitions {
		victim := c.byUse.Front().Value.(*session)
		if now.Sub(victim.used) <= IdleEviction {
			victim = c.byValue[0]
			if !victim.worthLess(s) {
				return false
			}
		}
		c.removeLocked(victim)
		c.evicted++
	}
	s.id = c.newIDLocked()
	c.sessions[s.id] = s
	s.useElem = c.byUse.PushBack(s)
	heap.Push(&c.byValue, s)
	c.partitions += s.size
	return true
}

// resize counts a session's partitions anew. It reports false when all sessions together have too many.
func (c *Cache) resize(s *session) bool {
	n := len(s.parts.order)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == s.size || c.sessions[s.id] != s {
		return true
	}
	c.partitions += n - s.size
	s.size = n
	heap.Fix(&c.byValue, s.heapAt)
	return c.partitions <= c.maxPartitions
}

// removeLocked needs c.mu.
func (c *Cache) removeLocked(s *session) {
	delete(c.sessions, s.id)
	c.byUse.Remove(s.useElem)
	heap.Remove(&c.byValue, s.heapAt)
	c.partitions -= s.size
}

// valueHeap orders sessions by what they are worth. It implements heap.Interface and keeps session.heapAt.
type valueHeap []*session

func (h valueHeap) Len() int           { return len(h) }
func (h valueHeap) Less(i, j int) bool { return h[i].worthLess(h[j]) }
func (h valueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}

// Push implements heap.Interface.
func (h *valueHeap) Push(x any) {
	s := x.(*session)
	s.heapAt = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *valueHeap) Pop() any {
	old := *h
	n := len(old) - 1
	s := old[n]
	old[n] = nil
	*h = old[:n]
	return s
}
