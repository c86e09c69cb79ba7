package logdir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"gregor/log"
)

// Moves between directories (AlterReplicaLogDirs). The copy grows in a directory with the suffix -future while the log goes on; when it has caught up
// appends wait for a moment, the copy gets the partition's name and the old directory the suffix -delete. After a crash before that the copy
// begins again, in between there are two logs that are the same (chooseTwins), and after it there is the new one.

// Errors of Move.
var (
	// ErrNoDirectory is a directory that is not one of log.dirs.
	ErrNoDirectory = errors.New("no such log directory")
	// ErrDirectoryOffline is one that is not in use.
	ErrDirectoryOffline = errors.New("log directory is offline")
	// ErrNameTooLong is a topic whose name leaves no room for the suffix of a copy.
	ErrNameTooLong = errors.New("the name of the topic is too long to be moved")
)

// moves are the moves of a Set that did not end.
type moves struct {
	changing sync.Mutex    // held by whoever begins or ends one; above all locks
	slot     chan struct{} // capacity 1: one log is copied at a time
	running  sync.WaitGroup
	stopping atomic.Bool

	mu   sync.Mutex // a leaf
	byID map[TopicPartition]*move
}

// move is one log on its way.
type move struct {
	id       TopicPartition
	from, to *Dir
	dir      string // of the copy
	copy     *log.Move
	cancel   context.CancelFunc
	done     chan struct{}
}

// Move has a partition moved to another directory, given as in log.dirs, in the background. One that is on its way elsewhere turns; one that is there stays.
func (s *Set) Move(tp TopicPartition, path string) error {
	to, err := s.directory(path)
	if err != nil {
		return err
	}
	if len(futureName(tp)) > maxName {
		return fmt.Errorf("%w: %s", ErrNameTooLong, tp)
	}
	s.moves.changing.Lock()
	defer s.moves.changing.Unlock()
	if m := s.moves.get(tp); m != nil {
		if m.to == to {
			return nil
		}
		m.end()
	}
	p, from := s.find(tp) // that move may have been too quick to be ended
	if p == nil {
		return fmt.Errorf("%w: %s", ErrNotFound, tp)
	}
	if p.Log() == nil {
		return fmt.Errorf("%s cannot be moved: %w: %w", tp, log.ErrOffline, p.err)
	}
	if from == to {
		return nil
	}
	return s.begin(p, from, to)
}

// directory finds one of log.dirs that is in use.
func (s *Set) directory(path string) (*Dir, error) {
	for _, m := range s.members {
		switch {
		case m.path != path:
		case m.dir == nil:
			return nil, fmt.Errorf("%w: %s: %w", ErrDirectoryOffline, path, m.err)
		default:
			return m.dir, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNoDirectory, path)
}

func (ms *moves) get(tp TopicPartition) *move {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.byID[tp]
}

// end cancels a move and waits until nothing of it is left, or it has succeeded.
func (m *move) end() {
	m.cancel()
	<-m.done
}

// begin makes the directory of the copy, durably, and starts the move.
func (s *Set) begin(p *Partition, from, to *Dir) error {
	if err := to.begin(); err != nil {
		return err
	}
	defer to.end()
	m := &move{id: p.id, from: from, to: to, dir: filepath.Join(to.opts.Dir, futureName(p.id)), done: make(chan struct{})}
	if err := to.makeFuture(p, m.dir); err != nil {
		return errors.Join(fmt.Errorf("moving %s to %s: %w", p.id, to.opts.Dir, err), to.opts.FS.RemoveAll(m.dir))
	}
	m.copy = p.Log().NewMove(m.dir)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	s.moves.mu.Lock()
	s.moves.byID[m.id] = m
	s.moves.mu.Unlock()
	s.moves.running.Go(func() { s.run(ctx, m) })
	return nil
}

// makeFuture makes the directory of a copy. An entry of the checkpoints that an earlier log of that name left must not hide records of this one.
func (d *Dir) makeFuture(p *Partition, dir string) error {
	if err := d.forget([]Spec{{TopicPartition: p.id}}); err != nil {
		return err
	}
	fsys := d.opts.FS
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	if err := writeNew(fsys, filepath.Join(dir, topicIDFile), formatTopicID(p.topicID)); err != nil {
		return err
	}
	return errors.Join(fsys.SyncDir(dir), fsys.SyncDir(d.opts.Dir))
}

// run carries a move out, on a goroutine of its own.
func (s *Set) run(ctx context.Context, m *move) {
	defer close(m.done)
	defer m.cancel()
	err := s.carry(ctx, m)
	s.moves.mu.Lock()
	delete(s.moves.byID, m.id)
	s.moves.mu.Unlock()
	logger := s.opts.Logger.With("partition", m.id.String(), "from", m.from.opts.Dir, "to", m.to.opts.Dir)
	switch {
	case err == nil:
		logger.Info("partition was moved to another log directory")
		return
	case s.moves.stopping.Load():
		return // the next start goes on
	case ctx.Err() == nil && !errors.Is(err, log.ErrClosed):
		logger.Error("partition could not be moved to another log directory, and stays", "error", err)
	}
	if err := m.to.opts.FS.RemoveAll(m.dir); err != nil {
		logger.Warn("copy of a partition is left behind; remove it", "dir", m.dir, "error", err)
	}
}

// carry waits for the turn and copies.
func (s *Set) carry(ctx context.Context, m *move) error {
	select {
	case s.moves.slot <- struct{}{}:
		defer func() { <-s.moves.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := m.copy.Copy(ctx); err != nil {
		return err
	}
	committer := &gate{dir: m.to}
	committer.release()
	return m.copy.Finish(ctx, committer, func() (string, error) { return s.promote(m) })
}

// promote makes a copy the partition. The log lets nobody append meanwhile. The old directory loses its name, durably, before anything can be
// written to the new one only: what a crash in between leaves are two logs of which one is as good as the other.
func (s *Set) promote(m *move) (dir string, err error) {
	p, ok := m.from.Get(m.id)
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNotFound, m.id)
	}
	fsys := m.to.opts.FS
	dir = filepath.Join(m.to.opts.Dir, m.id.String())
	if err := fsys.Rename(m.dir, dir); err != nil {
		return "", err
	}
	old := filepath.Join(m.from.opts.Dir, deletedName(m.id))
	err = fsys.SyncDir(m.to.opts.Dir)
	if err == nil {
		m.to.enlist(&Partition{id: p.id, dir: dir, topicID: p.topicID, hw: p.hw, store: p.store})
		err = m.to.checkpoint() // the log start and the recovery point go with it
	}
	if err == nil {
		err = fsys.Rename(p.dir, old)
	}
	if err != nil {
		m.to.unlist(p)
		return "", errors.Join(err, fsys.Rename(dir, m.dir), fsys.SyncDir(m.to.opts.Dir))
	}
	m.from.unlist(p)
	m.from.Touch()
	if err := fsys.SyncDir(m.from.opts.Dir); err != nil {
		// Should the old one come back, the new one has more.
		s.opts.Logger.Warn("old directory of a partition that was moved may come back after a crash", "dir", p.dir, "error", err)
	}
	m.from.removal.add(old, m.from.opts.Now().Add(max(m.from.opts.FileDeleteDelay, 0)))
	return dir, nil
}

// enlist adds a partition.
func (d *Dir) enlist(p *Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.partitions[p.id] = p
}

// unlist forgets a partition that stays on the disk.
func (d *Dir) unlist(p *Partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.partitions, p.id)
}

// resume begins the moves again that a stop or a crash interrupted.
func (s *Set) resume() {
	for _, d := range s.live() {
		for _, f := range d.futures {
			p, in := s.find(f.id)
			logger := s.opts.Logger.With("dir", f.dir)
			if p == nil || p.Log() == nil {
				logger.Warn("copy of a partition is left alone: the partition itself is not there")
				continue
			}
			if in != d {
				if err := s.Move(f.id, d.opts.Dir); err != nil {
					logger.Error("partition cannot be moved on", "error", err)
				} else {
					logger.Info("partition is moved on to another log directory, from its beginning")
				}
			}
			d.removal.add(f.dir, d.opts.Now())
		}
	}
}

// stop ends all moves for now; their copies stay as a note for the next start.
func (ms *moves) stop() {
	ms.stopping.Store(true)
	ms.changing.Lock()
	defer ms.changing.Unlock()
	ms.mu.Lock()
	for _, m := range ms.byID {
		m.cancel()
	}
	ms.mu.Unlock()
	ms.running.Wait()
}

// endMoves ends the moves of partitions that are to be deleted. Needs moves.changing.
func (s *Set) endMoves(tps []TopicPartition) {
	for _, tp := range tps {
		if m := s.moves.get(tp); m != nil {
			m.end()
		}
	}
}

// Future is a copy of a partition in another directory, which takes its place when it has caught up.
type Future struct {
	ID   TopicPartition
	Size int64
	// Lag is the number of offsets that it is behind.
	Lag int64
}

// futuresIn are the copies that grow in d.
func (s *Set) futuresIn(d *Dir) (all []Future) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	for _, m := range s.moves.byID {
		p, ok := m.from.Get(m.id)
		if m.to != d || !ok || p.Log() == nil {
			continue
		}
		size, offset := m.copy.Progress()
		all = append(all, Future{ID: m.id, Size: size, Lag: max(0, p.Log().EndOffset()-offset)})
	}
	return all
}
