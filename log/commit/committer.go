package commit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gregor/log/vfs"
)

const (
	// syncAllFrom is the number of dirty files from which one syncfs is used. Measured with 1 KiB of new data per file,
	// ext4 on virtio, 2 cores, Linux 6.18, medians of one fdatasync each / 32 at a time / one syncfs:
	//
	//	   1 file     0.14 ms    0.16 ms   0.14 ms
	//	   2 files    0.30 ms    0.24 ms   0.15 ms
	//	   6 files    0.78 ms    0.54 ms   0.17 ms
	//	  64 files     7.8 ms     4.9 ms    0.7 ms
	//	1000 files     120 ms      68 ms    9.7 ms
	//
	// A single file keeps fdatasync, which waits for nobody else's data.
	syncAllFrom = 2
	// maxParallel bounds the file syncs in flight when there is no syncfs; more gain nothing on the disk above.
	maxParallel = 32
)

// A syncfs also writes what others have on the file system. One that takes slowFactor times as long as the files by
// themselves would have, and at least slowFloor, is a sign of that: for slowPause times its duration files are then synced by
// themselves where that is expected to be faster, so that at most a tenth of the time goes into trying again.
const (
	slowFactor = 4
	slowFloor  = 20 * time.Millisecond
	slowPause  = 10
	maxPause   = 30 * time.Second
	// fileCost is what a file costs by itself until it was measured.
	fileCost = 150 * time.Microsecond
)

// ErrClosed is returned by Flush after Close.
var ErrClosed = errors.New("committer is closed")

// Committer syncs the sources of one file system. All methods may be called concurrently.
type Committer struct {
	fsys vfs.FS
	dir  string
	log  *slog.Logger

	wake chan struct{} // capacity 1
	done chan struct{} // closed when the goroutine has ended

	mu struct {
		sync.Mutex
		queue  []Source
		queued map[Source]struct{}
		closed bool
		// begun and ended count rounds; they differ while one runs. flushed is closed at the end of each round that
		// somebody waits for.
		begun, ended uint64
		flushed      chan struct{}
	}

	// The rest belongs to the goroutine.
	round      round
	noAll      bool          // syncfs does not exist here or is no longer trusted
	slowAll    time.Duration // of the last syncfs, if it was slow
	avoidUntil time.Time     // until when that is held against it
	perFile    time.Duration

	stats counters
}

// New starts a committer for the file system that holds dir. A nil log discards.
func New(fsys vfs.FS, dir string, log *slog.Logger) *Committer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Committer{
		fsys: fsys, dir: dir, log: log,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		perFile: fileCost,
	}
	c.mu.queued = make(map[Source]struct{})
	if p, ok := fsys.(vfs.SyncAllPreparer); ok {
		if err := p.PrepareSyncAll(dir); err != nil {
			c.noAll = true
			log.Debug("no syncfs here, syncing each file by itself", "dir", dir, "error", err)
		}
	}
	go c.run()
	return c
}

// Dirty says that s has unsynced bytes. It does not block, allocate (but for growing to a new number of sources) or call
// back, so it may be called with the source's lock held. After Close it does nothing: sources are closed first.
func (c *Committer) Dirty(s Source) {
	c.mu.Lock()
	if _, ok := c.mu.queued[s]; ok || c.mu.closed {
		c.mu.Unlock()
		return
	}
	c.mu.queued[s] = struct{}{}
	c.mu.queue = append(c.mu.queue, s)
	first := len(c.mu.queue) == 1
	c.mu.Unlock()
	if first {
		c.wakeUp()
	}
}

func (c *Committer) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush waits until every source that was dirty when it was called has had its EndSync, whatever came of it.
func (c *Committer) Flush(ctx context.Context) error {
	c.mu.Lock()
	target := c.mu.begun
	if len(c.mu.queue) > 0 {
		target++
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		if c.mu.ended >= target {
			c.mu.Unlock()
			return nil
		}
		if c.mu.flushed == nil {
			c.mu.flushed = make(chan struct{})
		}
		flushed := c.mu.flushed
		c.mu.Unlock()
		select {
		case <-flushed:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return c.endedOr(target)
		}
	}
}

// endedOr tells a last round that was awaited from one that never came.
func (c *Committer) endedOr(target uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.ended >= target {
		return nil
	}
	return ErrClosed
}

// Close syncs what is dirty and ends the goroutine. It may be called again.
func (c *Committer) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.wakeUp()
	<-c.done
}

func (c *Committer) run() {
	defer close(c.done)
	for range c.wake {
		for c.take() {
			c.sync()
			c.finish()
		}
		c.mu.Lock()
		end := c.mu.closed && len(c.mu.queue) == 0
		c.mu.Unlock()
		if end {
			return
		}
	}
}

// take moves the dirty sources into the round; false if there are none.
func (c *Committer) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.queue) == 0 {
		return false
	}
	c.mu.queue, c.round.sources = c.round.sources[:0], c.mu.queue
	clear(c.mu.queued)
	c.mu.begun++
	return true
}

// finish lets go of the round's sources and wakes those who waited for it.
func (c *Committer) finish() {
	c.round.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.ended = c.mu.begun
	if c.mu.flushed != nil {
		close(c.mu.flushed)
		c.mu.flushed = nil
	}
}
