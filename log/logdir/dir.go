package logdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"gregor/log"
	"gregor/log/commit"
	"gregor/log/vfs"
)

const lockFile = ".lock"

// Dir is an open log directory. All methods may be called concurrently.
type Dir struct {
	opts  Options
	limit atomic.Int32 // Options.Parallel, which can change
	id    identity
	clean bool
	// unnamed says that meta.properties is to be written, fresh that there is none.
	unnamed, fresh bool
	lock           io.Closer
	read           checkpointSet // as found by Open

	handles   *log.HandleCache
	committer Committer
	ownCommit *commit.Committer // nil if the committer was handed in
	ownHandle *log.HandleCache  // nil if the cache was handed in

	armed   atomic.Bool   // something moved since the last checkpoint
	moved   chan struct{} // capacity 1: armed was set
	removal removalQueue
	futures []futureDir // found by Open
	stop    chan struct{}
	running sync.WaitGroup // the two goroutines

	checkpoints struct {
		sync.Mutex
		onDisk checkpointSet
	}
	mu struct {
		sync.RWMutex
		partitions map[TopicPartition]*Partition
		busy       map[TopicPartition]struct{} // being made or deleted
		closed     bool
		calls      sync.WaitGroup // changes in progress
	}
}

// Open takes the directory and opens all logs in it.
func Open(opts Options) (*Dir, error) {
	d, err := claim(opts)
	if err != nil {
		return nil, err
	}
	if err = d.format(); err == nil && d.opts.Locked != nil {
		err = d.opts.Locked(d)
	}
	if err == nil {
		err = d.openLogs()
	}
	if err != nil {
		d.release()
		return nil, advise(err)
	}
	for _, f := range d.futures {
		d.opts.Logger.Warn("directory is left alone: it is the copy of a partition that was to be moved", "dir", f.dir)
	}
	return d, nil
}

// futureDir is a directory with the suffix -future.
type futureDir struct {
	id  TopicPartition
	dir string
}

// claim takes the directory and reads whose it is and how it was left. It changes nothing in one that is there but the lock.
func claim(opts Options) (*Dir, error) {
	d := &Dir{opts: opts.withDefaults(), moved: make(chan struct{}, 1), stop: make(chan struct{})}
	d.SetParallel(d.opts.Parallel)
	d.removal.wake = make(chan struct{}, 1)
	d.mu.partitions = make(map[TopicPartition]*Partition)
	d.mu.busy = make(map[TopicPartition]struct{})
	if err := d.take(); err != nil {
		return nil, advise(err)
	}
	if err := d.look(); err != nil {
		d.release()
		return nil, advise(err)
	}
	return d, nil
}

// take makes and locks the directory.
func (d *Dir) take() error {
	fsys, dir := d.opts.FS, d.opts.Dir
	info, err := fsys.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeDurable(fsys, dir); err != nil {
			return fmt.Errorf("making the log directory: %w", err)
		}
	case err != nil:
		return fmt.Errorf("log directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("log directory %s is a file; name a directory, or move the file away", dir)
	}
	d.lock, err = fsys.Lock(filepath.Join(dir, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%w: %s; stop that process, or use another directory", ErrInUse, dir)
	}
	if err != nil {
		return fmt.Errorf("locking the log directory: %w", err)
	}
	return nil
}

// makeDurable makes a directory and whatever is missing above it.
func makeDurable(fsys vfs.FS, dir string) error {
	missing := []string{dir}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		if _, err := fsys.Stat(up); err == nil {
			break
		}
		missing = append(missing, up)
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, m := range slices.Backward(missing) {
		if err := fsys.SyncDir(filepath.Dir(m)); err != nil {
			return err
		}
	}
	return nil
}

// look reads what is in the directory besides logs.
func (d *Dir) look() (err error) {
	fsys, dir := d.opts.FS, d.opts.Dir
	d.id, d.unnamed, err = identify(fsys, dir, identity{BrokerID: d.opts.BrokerID, ClusterID: d.opts.ClusterID})
	if err != nil {
		return err
	}
	if d.unnamed {
		_, err := fsys.Stat(filepath.Join(dir, metaFile))
		d.fresh = errors.Is(err, fs.ErrNotExist)
	}
	d.read, err = readCheckpoints(fsys, dir, func(file string, err error) {
		d.opts.Logger.Warn("checkpoint is ignored, logs are recovered from their start", "file", file, "error", err)
	})
	if err != nil {
		return err
	}
	d.checkpoints.onDisk = d.read
	d.lookForMarker()
	return nil
}

// format writes the identity where it is not complete.
func (d *Dir) format() error {
	if !d.unnamed {
		return nil
	}
	fsys, dir := d.opts.FS, d.opts.Dir
	if err := replaceFile(fsys, dir, metaFile, d.id.format(d.opts.Now())); err != nil {
		return fmt.Errorf("writing the identity of the log directory: %w", err)
	}
	return fsys.SyncDir(dir)
}

// openLogs opens the logs and begins to work; after an error release is called.
func (d *Dir) openLogs() error {
	start := d.opts.Now()
	// Last, so that a start that fails before this costs nothing, but before a log is touched.
	if err := d.takeMarker(); err != nil {
		return err
	}
	d.share()
	if err := d.loadAll(); err != nil {
		return err
	}
	offline := 0
	for _, p := range d.mu.partitions {
		if p.err != nil {
			offline++
		}
	}
	d.running.Go(d.runCheckpoints)
	d.running.Go(d.runRemovals)
	d.opts.Logger.Info("log directory is open", "dir", d.opts.Dir, "partitions", len(d.mu.partitions), "offline", offline,
		"clean", d.clean, "took", d.opts.Now().Sub(start))
	return nil
}

// share sets up what the logs share.
func (d *Dir) share() {
	d.handles, d.committer = d.opts.Handles, d.opts.Committer
	if d.handles == nil {
		d.ownHandle = log.NewHandleCache(d.opts.FS, DefaultIdleHandles)
		d.handles = d.ownHandle
	}
	if d.committer == nil {
		d.ownCommit = commit.New(d.opts.FS, d.opts.Dir, d.opts.Logger)
		d.committer = d.ownCommit
	}
}

// loadAll opens the logs, several at a time.
func (d *Dir) loadAll() error {
	names, err := d.list()
	if err != nil {
		return err
	}
	loaded := make([]*Partition, len(names))
	together := &gate{dir: d}
	defer together.release()
	err = d.parallel(len(names), func(i int) error {
		p, err := d.load(names[i], together)
		loaded[i] = p
		return err
	})
	for _, p := range loaded {
		if p != nil {
			d.mu.partitions[p.id] = p
		}
	}
	return err
}

// list finds the partitions, and queues what is to be removed.
func (d *Dir) list() ([]TopicPartition, error) {
	entries, err := d.opts.FS.List(d.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing the log directory: %w", err)
	}
	var names []TopicPartition
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(d.opts.Dir, e.Name())
		switch tp, kind := parseName(e.Name()); kind {
		case live:
			names = append(names, tp)
		case deleted:
			d.removal.add(path, d.opts.Now())
		case metadata:
		case future:
			d.futures = append(d.futures, futureDir{tp, path})
		case stray:
			d.opts.Logger.Warn("directory is left alone: its log is not assigned here", "dir", path)
		default:
			d.opts.Logger.Warn("directory is left alone: its name is not <topic>-<partition>", "dir", path)
		}
	}
	return names, nil
}

// parallel calls do for 0 to n-1 on as many goroutines as are allowed and joins the errors. After an error no more calls
// are begun.
func (d *Dir) parallel(n int, do func(i int) error) error {
	var (
		next   atomic.Int64
		failed atomic.Bool
		mu     sync.Mutex
		errs   []error
		wg     sync.WaitGroup
	)
	for range min(int(d.limit.Load()), n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && !failed.Load(); i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					failed.Store(true)
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// SetParallel changes Options.Parallel.
func (d *Dir) SetParallel(n int) { d.limit.Store(int32(max(1, n))) }

// Path is the directory.
func (d *Dir) Path() string { return d.opts.Dir }

// BrokerID and ClusterID are those of meta.properties.
func (d *Dir) BrokerID() int32 { return d.id.BrokerID }

// ClusterID: see BrokerID.
func (d *Dir) ClusterID() string { return d.id.ClusterID }

// WasClean says that the last stop was clean.
func (d *Dir) WasClean() bool { return d.clean }

// CommitStats returns the counters of the Dir's own committer, zeros if it was handed in.
func (d *Dir) CommitStats() commit.Stats {
	if d.ownCommit == nil {
		return commit.Stats{}
	}
	return d.ownCommit.Stats()
}

// Get finds a partition.
func (d *Dir) Get(tp TopicPartition) (*Partition, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.mu.partitions[tp]
	return p, ok
}

// Partitions returns all partitions, sorted by topic and number.
func (d *Dir) Partitions() []*Partition {
	d.mu.RLock()
	all := make([]*Partition, 0, len(d.mu.partitions))
	for _, p := range d.mu.partitions {
		all = append(all, p)
	}
	d.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Partition) int { return compareNames(a.id, b.id) })
	return all
}

// begin and end enclose a change; Close waits for those in progress.
func (d *Dir) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return ErrClosed
	}
	d.mu.calls.Add(1)
	return nil
}

func (d *Dir) end() { d.mu.calls.Done() }

var _ interface{ Flush(context.Context) error } = (*commit.Committer)(nil)
