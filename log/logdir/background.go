package logdir

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Touch says that offsets of a log moved in a way that makes no bytes to sync, such as a new log start offset: a checkpoint
// is written within Options.CheckpointInterval. It is cheap and does not block.
func (d *Dir) Touch() {
	if d.armed.Load() || !d.armed.CompareAndSwap(false, true) {
		return
	}
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// Sync waits until what is unsynced in all logs is durable, or is known not to be. After an unclean stop that is all above the recovery points, and
// brings the high watermarks to where readers saw them.
func (d *Dir) Sync(ctx context.Context) error {
	if c, ok := d.committer.(interface{ Flush(context.Context) error }); ok {
		return c.Flush(ctx)
	}
	return nil
}

// runCheckpoints writes the checkpoints an interval after something moved.
func (d *Dir) runCheckpoints() {
	for {
		select {
		case <-d.moved:
		case <-d.stop:
			return
		}
		timer := time.NewTimer(d.opts.CheckpointInterval)
		select {
		case <-timer.C:
		case <-d.stop:
			timer.Stop()
			return
		}
		if err := d.checkpoint(); err != nil {
			d.opts.Logger.Warn("checkpoints were not written, trying again later", "dir", d.opts.Dir, "error", err)
			d.Touch()
		}
	}
}

// Checkpoint writes what moved since the last time. The checkpoints save work at the next start; nothing depends on them.
func (d *Dir) Checkpoint() error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	return d.checkpoint()
}

// CheckpointStarts makes the log start offsets durable, and nothing else: what lies below them may be deleted then.
func (d *Dir) CheckpointStarts() error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	old := d.checkpoints.onDisk
	set := old
	set[logStarts] = d.collect(old)[logStarts]
	var err error
	d.checkpoints.onDisk, err = set.write(d.opts.FS, d.opts.Dir, old)
	return err
}

func (d *Dir) checkpoint() error {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	d.armed.Store(false) // what moves from here on is seen below or arms again
	old := d.checkpoints.onDisk
	var err error
	d.checkpoints.onDisk, err = d.collect(old).write(d.opts.FS, d.opts.Dir, old)
	return err
}

// collect asks all logs. A partition that is offline keeps what it had.
func (d *Dir) collect(old checkpointSet) checkpointSet {
	var set checkpointSet
	for i := range set {
		set[i] = make(offsets, len(old[i]))
	}
	d.mu.RLock()
	all := maps.Clone(d.mu.partitions)
	d.mu.RUnlock()
	for tp, p := range all {
		if p.store == nil {
			for i := range set {
				if offset, ok := old[i][tp]; ok {
					set[i][tp] = offset
				}
			}
			continue
		}
		set[recoveryPoints][tp] = p.store.RecoveryPoint()
		set[highWatermarks][tp] = p.store.HighWatermark()
		if start := p.store.StartOffset(); start > 0 {
			set[logStarts][tp] = start
		}
		if clean := p.store.CleanBelow(); clean > 0 {
			set[cleanOffsets][tp] = clean
		}
	}
	return set
}

// removalQueue holds deleted directories until they are due. All have the same delay, so they are due in order.
type removalQueue struct {
	wake chan struct{} // capacity 1
	mu   struct {
		sync.Mutex
		entries []removal
	}
}

type removal struct {
	path string
	due  time.Time
}

func (q *removalQueue) add(path string, due time.Time) {
	q.mu.Lock()
	q.mu.entries = append(q.mu.entries, removal{path, due})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next takes the first entry out if it is due; else it says how long to wait, below 0 if there is none.
func (q *removalQueue) next(now time.Time) (path string, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.entries) == 0 {
		return "", -1
	}
	first := q.mu.entries[0]
	if wait = first.due.Sub(now); wait > 0 {
		return "", wait
	}
	q.mu.entries = q.mu.entries[1:]
	return first.path, 0
}

// runRemovals removes deleted directories. What is left at a stop is found again by the next Open.
func (d *Dir) runRemovals() {
	for {
		path, wait := d.removal.next(d.opts.Now())
		switch {
		case path != "":
			d.remove(path)
			if d.stopped() {
				return
			}
		case wait < 0:
			select {
			case <-d.removal.wake:
			case <-d.stop:
				return
			}
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-d.stop:
				timer.Stop()
				return
			}
		}
	}
}

func (d *Dir) stopped() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

func (d *Dir) remove(path string) {
	if err := d.opts.FS.RemoveAll(path); err != nil {
		d.opts.Logger.Warn("deleted directory cannot be removed, the next start tries again", "dir", path, "error", err)
		return
	}
	d.opts.Logger.Debug("deleted directory is removed", "dir", path)
}
