package fetchsession

// Context is one Fetch request. It belongs to one goroutine, and no use of it or of its partitions is allowed after End, Throttle or Cancel.
type Context struct {
	cache   *Cache
	session *session // nil without one
	full    bool     // every partition is answered
	created bool     // the client does not know the session yet
	single  *partitions
}

// Answer is what a partition's answer says.
type Answer struct {
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	// Error says that the answer has an error code.
	Error bool
	// Records says that the answer has records.
	Records bool
	// Redirect says that it names a preferred replica or a diverging epoch.
	Redirect bool
}

func (c *Context) partitions() *partitions {
	if c.session != nil {
		return &c.session.parts
	}
	return c.single
}

// Len is the number of partitions to read.
func (c *Context) Len() int { return len(c.partitions().order) }

// Partition is the i-th partition to read. It must not be changed.
func (c *Context) Partition(i int) *Partition { return &c.partitions().at(i).Partition }

// SessionID is the answer's session id, 0 for none.
func (c *Context) SessionID() int32 {
	if c.session == nil {
		return 0
	}
	return c.session.id
}

// Include says if the i-th partition belongs in the answer, and remembers that the client was told. It is called at most once for each
// partition, when the answer is made: all partitions of a full fetch are answered, of an incremental one those with news.
func (c *Context) Include(i int, a Answer) bool {
	if c.session == nil {
		return true
	}
	e := c.session.parts.at(i)
	news := a.Records || a.Error || a.Redirect ||
		a.HighWatermark != e.highWatermark || a.LastStableOffset != e.lastStable || a.LogStartOffset != e.logStart
	e.highWatermark, e.lastStable, e.logStart = a.HighWatermark, a.LastStableOffset, a.LogStartOffset
	if a.Error {
		// Whatever comes after an error is news.
		e.highWatermark = unknown
	}
	e.answered = a.Records && !c.full
	return news || c.full
}

// End ends a request that was answered.
func (c *Context) End() {
	if c.session == nil {
		return
	}
	c.session.parts.rotate()
	c.cache.release(c.session, false)
}

// Throttle ends a request that is answered without partitions because of a quota, and returns the session id of that answer. An existing
// session stays with its new epoch; one that the request asked for is not made.
func (c *Context) Throttle() int32 {
	if c.session == nil {
		return 0
	}
	c.cache.release(c.session, c.created)
	if c.created {
		return 0
	}
	return c.session.id
}

// Cancel ends a request that is not answered.
func (c *Context) Cancel() {
	if c.session != nil {
		c.cache.release(c.session, c.created)
	}
}
