package log

import (
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gregor/log/batch"
	"gregor/log/commit"
	"gregor/log/producer"
	"gregor/log/vfs"
)

// Log is the log of one partition. All methods may be called concurrently.
type Log struct {
	fs      vfs.FS
	handles *HandleCache
	logger  *slog.Logger
	now     func() time.Time

	dir       atomic.Pointer[string]
	cfg       atomic.Pointer[Config]
	list      atomic.Pointer[segments]
	epochsNow atomic.Pointer[epochList]
	failure   atomic.Pointer[offlineError] // why the log is offline
	closed    atomic.Bool
	// toldFuture says that a timestamp in the future was told of.
	toldFuture atomic.Bool

	end   markBox // log end offset; stored under mu
	high  markBox // high watermark; stored under flush.Mutex
	start atomic.Int64
	// synced is the recovery point: everything below is durable.
	synced atomic.Int64
	// cleanBelow is the first offset that compaction has not seen; a hint until firstDirty has looked at it.
	cleanBelow atomic.Int64
	// firstOpen is the oldest open transaction's first offset, math.MaxInt64 if none. Stored under mu.
	firstOpen atomic.Int64

	// files serialises whoever deletes, replaces or renames files of segments. It is held over that I/O.
	files    sync.Mutex
	discards discards

	// mu serialises whoever changes segments, end or producers.
	mu        sync.Mutex
	producers *producer.State
	snapshots snapshotList
	changed   bool // the indexes and the snapshot on disk are not those of the log's end

	// proving is held while a transaction index is compared with the log.
	proving sync.Mutex

	flush   flushState
	waiters waiters
}

// offlineError is ErrOffline with its cause.
type offlineError struct{ err error }

func (e *offlineError) Error() string        { return ErrOffline.Error() + ": " + e.err.Error() }
func (e *offlineError) Unwrap() error        { return e.err }
func (e *offlineError) Is(target error) bool { return target == ErrOffline }

func newLog(o Options) *Log {
	l := &Log{fs: o.FS, handles: o.Handles, logger: o.Logger, now: o.Now}
	if l.handles == nil {
		l.handles = NewHandleCache(o.FS, ownHandles)
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.now == nil {
		l.now = time.Now
	}
	cfg := o.Config.withDefaults()
	l.cfg.Store(&cfg)
	l.dir.Store(&o.Dir)
	l.epochsNow.Store(&epochList{})
	l.firstOpen.Store(math.MaxInt64)
	l.cleanBelow.Store(o.CleanBelow)
	l.producers = producer.New(cfg.ProducerExpiryMs)
	l.flush.idle.L = &l.flush
	l.flush.source = newSource(l, o.Committer)
	l.waiters.init()
	return l
}

// ownHandles is the number of idle handles of a log that shares no cache.
const ownHandles = 8

// StartOffset is the first offset that can be read.
func (l *Log) StartOffset() int64 { return l.start.Load() }

// EndOffset is the offset that the next record gets.
func (l *Log) EndOffset() int64 { return l.end.offset.Load() }

// HighWatermark is the offset up to which consumers read.
func (l *Log) HighWatermark() int64 { return l.high.offset.Load() }

// LastStable is the offset up to which read_committed consumers read. A transaction that began below the log start holds it there.
func (l *Log) LastStable() int64 {
	return min(l.HighWatermark(), max(l.firstOpen.Load(), l.StartOffset()))
}

// RecoveryPoint is the offset below which everything is durable, indexes of sealed segments too.
func (l *Log) RecoveryPoint() int64 { return l.synced.Load() }

// Dir is the directory of the log.
func (l *Log) Dir() string { return *l.dir.Load() }

// Size is the sum of the segments' sizes in bytes.
func (l *Log) Size() int64 {
	sum := int64(0)
	for _, s := range *l.list.Load() {
		sum += s.size.Load()
	}
	return sum
}

// Err says why the log is offline, nil while it is not.
func (l *Log) Err() error {
	if f := l.failure.Load(); f != nil {
		return f
	}
	return nil
}

// writable is nil while the log takes writes.
func (l *Log) writable() error {
	if l.closed.Load() {
		return ErrClosed
	}
	return l.Err()
}

// setOffline ends writing for good; the first failure stays the reason.
func (l *Log) setOffline(err error) error {
	f := &offlineError{err}
	if !l.failure.CompareAndSwap(nil, f) {
		return l.failure.Load()
	}
	l.logger.Error("log is offline after a storage failure", "dir", l.Dir(), "error", err)
	l.waiters.wakeAll()
	return f
}

// SetConfig changes the configuration from the next append on. Segments keep the jitter they were made with.
func (l *Log) SetConfig(c Config) {
	c = c.withDefaults()
	l.mu.Lock()
	l.cfg.Store(&c)
	l.producers.SetExpiry(c.ProducerExpiryMs)
	l.mu.Unlock()
	if c.FlushMessages > 1 {
		l.raiseHighToEnd()
	}
}

func (l *Log) openRead(name string) (vfs.File, error) {
	for {
		dir := l.dir.Load()
		f, err := l.fs.OpenRead(filepath.Join(*dir, name))
		// A rename in between moved the file, and only then is another try worth it.
		if err == nil || l.dir.Load() == dir {
			return f, err
		}
	}
}

var _ commit.Source = (*Log)(nil)

// headerEntry is what the segment needs of a client's batch.
func headerEntry(h *batch.Header) batch.Entry {
	return batch.Entry{Size: h.Size(), Magic: 2, BaseOffset: h.BaseOffset, LastOffset: h.LastOffset(),
		MaxTimestamp: h.MaxTimestamp, LeaderEpoch: h.LeaderEpoch}
}
