package log

import (
	"io/fs"
	"sync"
	"sync/atomic"

	"gregor/log/vfs"
)

// Sizes of the pooled buffers in bytes.
const (
	blockBytes = 4 << 10
	chunkBytes = 256 << 10
)

// HandleCache keeps read handles of sealed segments and their indexes open for all logs of one file system, since opening costs
// more than a read. It bounds the handles that nobody is using; one in use is never closed. The logs share scan buffers
// through it, too.
//
// HandleCache.mu is a leaf and not held over opening or closing.
type HandleCache struct {
	fsys vfs.FS
	max  int

	blocks buffers // for lookups
	chunks buffers // for scans

	mu   sync.Mutex
	idle sharedFile // ring of files with open handles and no user, the most recently used first
	n    int        // files in the ring
}

// NewHandleCache returns a cache of at most max idle handles.
func NewHandleCache(fsys vfs.FS, max int) *HandleCache {
	c := &HandleCache{fsys: fsys, max: max, blocks: buffers{size: blockBytes}, chunks: buffers{size: chunkBytes}}
	c.idle.prev, c.idle.next = &c.idle, &c.idle
	return c
}

// Close closes the idle handles; one in use is closed by its last user. The cache keeps none from then on.
func (c *HandleCache) Close() {
	c.mu.Lock()
	c.max = 0
	victims := c.evict(nil)
	c.mu.Unlock()
	closeAll(victims)
}

// sharedFile is a file of a segment with the one handle that all share. Its zero value is a file that is not open.
type sharedFile struct {
	// users counts who may use file. It leaves 0 only under HandleCache.mu, so a file found at 0 under it stays unused.
	users atomic.Int64
	file  vfs.File // set before users leaves 0

	// Guarded by HandleCache.mu.
	gone       bool        // the segment was deleted: close instead of keeping
	prev, next *sharedFile // in the ring; nil outside
}

// adopt makes file, which was opened elsewhere, the handle of s, with one user. s is not shared yet.
func (s *sharedFile) adopt(file vfs.File) {
	s.file = file
	s.users.Store(1)
}

// acquire returns the handle of s, opening it by name when needed. The caller releases it. It fails with fs.ErrNotExist
// after drop.
func (c *HandleCache) acquire(s *sharedFile, seg *segment, ext string) (vfs.File, error) {
	// The handle of an active segment always has a user, its writer: then no lock is needed.
	for n := s.users.Load(); n > 0; n = s.users.Load() {
		if s.users.CompareAndSwap(n, n+1) {
			return s.file, nil
		}
	}
	if file, err := c.reuse(s); file != nil || err != nil {
		return file, err
	}
	file, err := seg.log.openRead(seg.name(ext))
	if err != nil {
		return nil, err
	}
	mine := file
	c.mu.Lock()
	switch {
	case s.gone:
		file, err = nil, fs.ErrNotExist
	case s.file != nil: // another goroutine was faster
		file = c.use(s)
	default:
		s.file, mine = file, nil
		s.users.Store(1)
	}
	c.mu.Unlock()
	if mine != nil {
		_ = mine.Close() // only read
	}
	return file, err
}

// reuse returns the open handle of s, nil if there is none.
func (c *HandleCache) reuse(s *sharedFile) (vfs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.gone {
		return nil, fs.ErrNotExist
	}
	if s.file == nil {
		return nil, nil
	}
	return c.use(s), nil
}

// use adds a user to an open file. c.mu must be held.
func (c *HandleCache) use(s *sharedFile) vfs.File {
	s.users.Add(1)
	c.unlink(s)
	return s.file
}

// release ends one use.
func (c *HandleCache) release(s *sharedFile) {
	if s.users.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	// Between the two steps another goroutine may have used and released it.
	if s.users.Load() > 0 || s.file == nil || s.next != nil {
		c.mu.Unlock()
		return
	}
	c.link(s)
	var victims []vfs.File
	if s.gone {
		victims = append(victims, c.shut(s))
	}
	victims = c.evict(victims)
	c.mu.Unlock()
	closeAll(victims)
}

// drop says that the file is deleted or replaced: its handle is closed by the last user, and nobody gets it any more.
func (c *HandleCache) drop(s *sharedFile) {
	c.mu.Lock()
	s.gone = true
	var victims []vfs.File
	if s.next != nil {
		victims = append(victims, c.shut(s))
	}
	c.mu.Unlock()
	closeAll(victims)
}

// evict shuts the longest unused files beyond the limit. c.mu must be held.
func (c *HandleCache) evict(victims []vfs.File) []vfs.File {
	for c.n > c.max {
		victims = append(victims, c.shut(c.idle.prev))
	}
	return victims
}

// shut takes an idle file out of the ring; the caller closes the handle. c.mu must be held.
func (c *HandleCache) shut(s *sharedFile) vfs.File {
	c.unlink(s)
	file := s.file
	s.file = nil
	return file
}

func (c *HandleCache) link(s *sharedFile) {
	s.prev, s.next = &c.idle, c.idle.next
	s.prev.next, s.next.prev = s, s
	c.n++
}

func (c *HandleCache) unlink(s *sharedFile) {
	if s.next == nil {
		return
	}
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
	c.n--
}

// closeAll closes handles whose content is synced or no longer wanted, so an error says nothing.
func closeAll(files []vfs.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// buffers is a pool of byte slices of one size.
type buffers struct {
	pool sync.Pool
	size int
}

// buffer has a pointer of its own, so that putting it back allocates nothing.
type buffer struct{ b []byte }

func (p *buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, p.size)}
}

func (p *buffers) put(b *buffer) { p.pool.Put(b) }
