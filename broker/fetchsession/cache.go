package fetchsession

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// IdleEviction is how long a session may be idle before anyone may take its slot.
const IdleEviction = 120 * time.Second

// partitionsPerSlot bounds the memory of a cache: all sessions together have at most this many partitions for each slot. A partition is about 200
// bytes, so the 1000 slots that Kafka has by default are 200 MB at most, if someone tries.
const partitionsPerSlot = 1000

// Epochs with a meaning of their own in a request.
const (
	epochNew  = 0  // full fetch that asks for a session
	epochNone = -1 // full fetch without one
)

// Cache holds the sessions of one broker. It is safe for concurrent use.
type Cache struct {
	slots         int
	maxPartitions int

	mu         sync.Mutex
	sessions   map[int32]*session
	byUse      *list.List // of *session, longest unused first
	byValue    valueHeap  // least valuable first
	partitions int        // of all sessions
	evicted    uint64
}

// Stats are the numbers of a cache.
type Stats struct {
	Sessions   int
	Partitions int
	// Evicted counts sessions that gave their slot to another.
	Evicted uint64
}

// New makes a cache for a number of sessions (max.incremental.fetch.session.cache.slots). With none every fetch is a full one.
func New(slots int) *Cache {
	return &Cache{slots: slots, maxPartitions: slots * partitionsPerSlot, sessions: map[int32]*session{}, byUse: list.New()}
}

// Stats returns the present numbers.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Sessions: len(c.sessions), Partitions: c.partitions, Evicted: c.evicted}
}

// Begin starts a request of any version; below v7 there are no sessions. Follower says that another broker asks, whose session is worth more
// than a consumer's. The error is an *Error. The request's topic names are kept, nothing else of it.
func (c *Cache) Begin(req *kmsg.FetchRequest, follower bool, now time.Time) (*Context, error) {
	id, epoch := req.SessionID, req.SessionEpoch
	if req.Version < 7 {
		id, epoch = 0, epochNone
	}
	switch epoch {
	case epochNew:
		c.close(id)
		return c.create(req, follower, now), nil
	case epochNone:
		c.close(id)
		return c.sessionless(req), nil
	}
	return c.resume(req, now)
}

func (c *Cache) sessionless(req *kmsg.FetchRequest) *Context {
	p := &partitions{}
	p.fill(req.Topics, false)
	return &Context{cache: c, full: true, single: p}
}

// create makes a session when there is room for one.
func (c *Cache) create(req *kmsg.FetchRequest, follower bool, now time.Time) *Context {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	s := &session{follower: follower, usesIDs: req.Version >= 13, epoch: 1, busy: true, used: now, size: n}
	if n == 0 || !c.insert(s, now) {
		return c.sessionless(req)
	}
	s.parts.fill(req.Topics, true)
	c.resize(s)
	s.context = Context{cache: c, session: s, full: true, created: true}
	return &s.context
}

// resume takes the next incremental request of a session.
func (c *Cache) resume(req *kmsg.FetchRequest, now time.Time) (*Context, error) {
	s, err := c.acquire(req, now)
	if err != nil {
		return nil, err
	}
	s.parts.merge(req.Topics)
	s.parts.forget(req.ForgottenTopics)
	if len(s.parts.order) == 0 {
		c.release(s, true)
		return c.sessionless(&kmsg.FetchRequest{}), nil
	}
	if !c.resize(s) {
		// The client learns from session id 0 that the session is over, and the answer is as good as any.
		c.release(s, true)
		return &Context{cache: c, full: true, single: &s.parts}, nil
	}
	s.context = Context{cache: c, session: s}
	return &s.context, nil
}

// acquire finds the session of an incremental request and moves its epoch on.
func (c *Cache) acquire(req *kmsg.FetchRequest, now time.Time) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[req.SessionID]
	switch {
	case s == nil:
		return nil, ErrUnknownID
	case s.epoch != req.SessionEpoch || s.busy:
		return nil, ErrEpoch
	case s.usesIDs != (req.Version >= 13):
		return nil, ErrTopicIDs
	}
	s.busy = true
	s.epoch = nextEpoch(s.epoch)
	s.used = now
	c.byUse.MoveToBack(s.useElem)
	return s, nil
}

// release ends the use of a session, and with remove the session.
func (c *Cache) release(s *session, remove bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.busy = false
	if remove && c.sessions[s.id] == s {
		c.removeLocked(s)
	}
}

// close removes a session by id, if it is there.
func (c *Cache) close(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		c.removeLocked(s)
	}
}

// newIDLocked returns a session id that is not in use. Needs c.mu.
func (c *Cache) newIDLocked() int32 {
	for {
		id := rand.Int32N(math.MaxInt32) + 1
		if c.sessions[id] == nil {
			return id
		}
	}
}

// nextEpoch is the epoch of the request after the one with this epoch; 0 and negative ones have other meanings.
func nextEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}
