package log

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"gregor/log/commit"
)

// flushState is what a sync needs to know. The lock comes after Log.mu and before waiters.mu, and is never held over I/O.
type flushState struct {
	sync.Mutex
	idle sync.Cond // signalled when busy ends

	// busy says that a sync runs, or that something that must not run beside one does (truncation, close, rename). Two syncs at
	// a time could tell success to one for bytes that the kernel has just told the other it lost.
	busy bool
	// refused says that a sync was asked for while busy.
	refused bool
	// dirty says that the committer was told and has not asked yet.
	dirty bool

	// pending are files that must be durable before bytes written after them count as durable, oldest first. A sync that runs
	// covers the first covered of them.
	source  *source // nil: whoever uses the log calls Flush
	pending []commit.Syncer
	covered int
	dir     bool // the log's directory has new entries, which no sync covers yet
	parent  bool // the log's directory is a new entry itself

	// seenSynced is the recovery point that the last Tick with unsynced bytes saw, first at seenAt; for flush.ms.
	seenSynced int64
	seenAt     time.Time

	files []commit.Syncer // memory of Target.Files
}

// segmentSync syncs a sealed segment by the handle that its bytes were written to, which reports every error since, and then
// lets it go.
type segmentSync struct{ seg *segment }

func (s *segmentSync) Sync() error { return s.seg.data.file.Sync() }

// fileSync syncs a file by name: its handle was closed after it was written.
type fileSync struct {
	log  *Log
	name string
}

func (s *fileSync) Sync() error {
	f, err := s.log.openRead(s.name)
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(s.name) != logExt && s.name != epochFile {
		return nil // it went with its segment, after a reader had rebuilt it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// dirSync syncs the entries of a directory.
type dirSync struct {
	log    *Log
	parent bool
}

func (s *dirSync) Sync() error {
	if s.parent {
		return s.log.fs.SyncDir(s.log.parentDir())
	}
	return s.log.fs.SyncDir(s.log.Dir())
}

func (l *Log) needSync(s commit.Syncer) {
	l.flush.Lock()
	l.flush.pending = append(l.flush.pending, s)
	l.flush.dir = true
	l.flush.Unlock()
}

func (l *Log) needDirSync() {
	l.flush.Lock()
	l.flush.dir = true
	l.flush.Unlock()
}

// markDirty tells the committer that there are bytes to sync, once until it asks for them.
func (l *Log) markDirty() {
	l.flush.Lock()
	to := l.flush.source
	tell := to != nil && !l.flush.dirty
	l.flush.dirty = true
	l.flush.Unlock()
	if tell {
		to.committer.Dirty(to)
	}
}

// source is the log as its committer knows it. A log that was moved to another disk has another, so that the committer of the old disk, which may
// have been told before, does not take its bytes to be where it syncs.
type source struct {
	log       *Log
	committer interface{ Dirty(commit.Source) }
}

func newSource(l *Log, committer interface{ Dirty(commit.Source) }) *source {
	if committer == nil {
		return nil
	}
	return &source{l, committer}
}

// BeginSync implements commit.Source.
func (s *source) BeginSync() (commit.Target, bool) {
	l := s.log
	l.flush.Lock()
	defer l.flush.Unlock()
	if l.flush.source != s {
		return commit.Target{}, false
	}
	return l.beginSync()
}

// EndSync implements commit.Source. The log is not moved between the two.
func (s *source) EndSync(t commit.Target, err error) { s.log.EndSync(t, err) }

// BeginSync implements commit.Source.
func (l *Log) BeginSync() (commit.Target, bool) {
	l.flush.Lock()
	defer l.flush.Unlock()
	return l.beginSync()
}

// beginSync does it with flush locked.
func (l *Log) beginSync() (commit.Target, bool) {
	// From here on an append tells the committer again: its bytes may miss this sync.
	l.flush.dirty = false
	if l.flush.busy {
		l.flush.refused = true
		return commit.Target{}, false
	}
	if l.closed.Load() {
		return commit.Target{}, false
	}
	t, ok := l.collect()
	l.flush.busy = ok
	return t, ok
}

// collect says what a sync that starts now covers. flush must be locked. A directory is not asked for twice: if its sync fails,
// the log is offline.
func (l *Log) collect() (commit.Target, bool) {
	f := &l.flush
	end, synced := l.end.load(), l.synced.Load()
	if l.Err() != nil || (end.offset == synced && len(f.pending) == 0 && !f.dir && !f.parent) {
		return commit.Target{}, false
	}
	f.files = append(f.files[:0], f.pending...)
	f.covered = len(f.pending)
	if f.parent {
		f.files = append(f.files, &dirSync{l, true})
	}
	if f.dir {
		f.files = append(f.files, &dirSync{l, false})
	}
	f.parent, f.dir = false, false
	if end.offset > synced {
		list := *l.list.Load()
		f.files = append(f.files, list[list.find(end.segment)])
	}
	return commit.Target{Files: f.files, Offset: end.offset, Segment: end.segment, Position: end.pos}, true
}

// Sync implements commit.Syncer for the bytes of an active segment.
func (s *segment) Sync() error { return s.data.file.Sync() }

// EndSync implements commit.Source.
func (l *Log) EndSync(t commit.Target, err error) {
	l.endSync(t, err)
	l.ready()
}

func (l *Log) endSync(t commit.Target, err error) {
	if err != nil {
		_ = l.setOffline(err) // logged, kept, and told to the next writer
		return
	}
	f := &l.flush
	f.Lock()
	done := f.pending[:f.covered]
	f.pending = f.pending[f.covered:]
	if len(f.pending) == 0 {
		f.pending = nil
	}
	f.covered = 0
	l.synced.Store(max(l.synced.Load(), t.Offset))
	f.Unlock()
	for _, s := range done {
		if sealed, ok := s.(*segmentSync); ok {
			sealed.seg.unpin()
		}
	}
	l.raiseHigh(mark{offset: t.Offset, segment: t.Segment, pos: t.Position})
}

// raiseHigh moves the high watermark forward to m and wakes who waits for it.
func (l *Log) raiseHigh(m mark) {
	l.flush.Lock()
	raised := l.raiseHighLocked(m)
	l.flush.Unlock()
	if raised {
		l.highRaised(m.offset)
	}
}

// raiseHighToEnd makes written records visible that need not be durable for it (FlushMessages above 1). The end is read under the
// lock that truncation takes to lower the high watermark, after it lowered the end.
func (l *Log) raiseHighToEnd() {
	l.flush.Lock()
	m := l.end.load()
	raised := l.raiseHighLocked(m)
	l.flush.Unlock()
	if raised {
		l.highRaised(m.offset)
	}
}

func (l *Log) raiseHighLocked(m mark) bool {
	if m.offset <= l.high.offset.Load() {
		return false
	}
	l.high.store(m)
	return true
}

func (l *Log) highRaised(offset int64) {
	l.closeTransactions(offset)
	l.waiters.wake(atHigh, offset)
	l.waiters.wake(atStable, l.LastStable())
}

// unsynced says that there is something to sync.
func (l *Log) unsynced() bool {
	l.flush.Lock()
	defer l.flush.Unlock()
	return l.end.offset.Load() != l.synced.Load() || len(l.flush.pending) > 0 || l.flush.dir || l.flush.parent
}

// ready ends busy.
func (l *Log) ready() {
	f := &l.flush
	f.Lock()
	clear(f.files)
	f.busy = false
	again := f.refused
	f.refused = false
	f.idle.Broadcast()
	f.Unlock()
	if again {
		l.markDirty()
	}
}

// exclude waits until no sync runs and keeps others from starting, until ready. Log.mu must not be held.
func (l *Log) exclude() {
	l.flush.Lock()
	for l.flush.busy {
		l.flush.idle.Wait()
	}
	l.flush.busy = true
	l.flush.Unlock()
}

// Flush syncs everything written before the call. The error is ErrOffline when the sync, or an earlier one, failed.
func (l *Log) Flush() error {
	if l.closed.Load() {
		return ErrClosed
	}
	l.exclude()
	defer l.ready()
	return l.flushExcluded()
}

// flushExcluded syncs on the caller's goroutine, between exclude and ready.
func (l *Log) flushExcluded() error {
	l.flush.Lock()
	t, ok := l.collect()
	l.flush.Unlock()
	if !ok {
		return l.Err()
	}
	l.endSync(t, syncAll(t.Files))
	return l.Err()
}

// syncAll syncs in order up to the first failure: what comes after would leave a hole.
func syncAll(files []commit.Syncer) error {
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
