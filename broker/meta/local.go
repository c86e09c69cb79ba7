package meta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Local is a Tree in one file. It has one user: the process that opened it.
type Local struct {
	path string
	db   *bbolt.DB

	now func() time.Time

	write  sync.Mutex // one Multi at a time
	failed error      // guarded by write
	born   int64      // the number of the last Multi, see Born; guarded by write

	state     sync.RWMutex
	closed    bool
	ephemeral map[string]node
	watchers  map[string]map[*watcher]struct{}
}

var _ Tree = (*Local)(nil)

// node is what is kept of one node.
type node struct {
	version int32
	born    int64 // 0 in files from before there was such a number
	data    []byte
}

// Get implements Tree.
func (l *Local) Get(ctx context.Context, path string) ([]byte, int32, error) {
	n, err := l.read(ctx, path)
	return n.data, n.version, err
}

// Born implements Tree: nanoseconds of the wall clock when the node was made, or one more than the last such number if the clock did not go on. The
// last number is in the file from the next change of a persistent node on. So it grows over restarts too, unless all that was made in between is
// ephemeral and the clock was set back. It is 0 for nodes that were made before there was such a number.
func (l *Local) Born(ctx context.Context, path string) (int64, error) {
	n, err := l.read(ctx, path)
	return n.born, err
}

func (l *Local) read(ctx context.Context, path string) (node, error) {
	if err := l.begin(ctx, path); err != nil {
		return node{}, err
	}
	n, ok := l.ephemeralNode(path)
	if !ok {
		err := l.view(func(t *stage) error {
			n, ok = t.persistent(path)
			return nil
		})
		if err != nil {
			return node{}, fmt.Errorf("read %s: %w", path, err)
		}
	}
	if !ok { // it may have become ephemeral between the two looks
		n, ok = l.ephemeralNode(path)
	}
	if !ok {
		return node{}, fmt.Errorf("read %s: %w", path, ErrNoNode)
	}
	return n, nil
}

func (l *Local) ephemeralNode(path string) (node, bool) {
	l.state.RLock()
	defer l.state.RUnlock()
	n, ok := l.ephemeral[path]
	n.data = bytes.Clone(n.data)
	return n, ok
}

// Children implements Tree.
func (l *Local) Children(ctx context.Context, path string) ([]string, error) {
	if err := l.begin(ctx, path); err != nil {
		return nil, err
	}
	names := l.ephemeralChildren(path)
	found := false
	err := l.view(func(t *stage) error {
		_, found = t.persistent(path)
		t.persistentChildren(path, func(name string) bool {
			names = append(names, name)
			return true
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	if !found {
		if _, found = l.ephemeralNode(path); !found {
			return nil, fmt.Errorf("list %s: %w", path, ErrNoNode)
		}
	}
	sort.Strings(names)
	return names, nil
}

func (l *Local) ephemeralChildren(path string) []string {
	l.state.RLock()
	defer l.state.RUnlock()
	names := []string{}
	for p := range l.ephemeral {
		if parent, name := split(p); parent == path {
			names = append(names, name)
		}
	}
	return names
}

// begin checks what every call needs.
func (l *Local) begin(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !ValidPath(path) {
		return fmt.Errorf("%q: %w", path, ErrBadPath)
	}
	l.state.RLock()
	defer l.state.RUnlock()
	if l.closed {
		return ErrClosed
	}
	return nil
}

func (l *Local) view(f func(*stage) error) error {
	return l.guard(func() error {
		err := l.db.View(func(tx *bbolt.Tx) error { return f(&stage{bucket: tx.Bucket(bucketName())}) })
		return closedAs(err)
	})
}

func closedAs(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Multi implements Tree. A context that ends while the change is being written does not stop it.
func (l *Local) Multi(ctx context.Context, ops ...Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.write.Lock()
	defer l.write.Unlock()
	if l.failed != nil {
		return l.failed
	}
	l.state.RLock()
	closed := l.closed
	l.state.RUnlock()
	if closed {
		return ErrClosed
	}
	// Only Multi changes the map, so that it can be read without the lock here.
	s := &stage{ephemeral: l.ephemeral, overlay: map[string]*node{}, born: max(l.born+1, l.now().UnixNano())}
	if err := l.run(s, ops); err != nil {
		return err
	}
	l.born = s.born
	l.publish(s)
	return nil
}

// run does the ops in a transaction that is written only if a persistent node changes.
func (l *Local) run(s *stage, ops []Op) error {
	writes := false
	for _, op := range ops {
		if op.kind == OpCheck {
			continue
		}
		_, isEphemeral := l.ephemeral[op.path]
		writes = writes || op.life == Sequential || op.life == Persistent && !isEphemeral
	}
	if !writes {
		return l.guard(func() error {
			return closedAs(l.db.View(func(tx *bbolt.Tx) error {
				s.bucket = tx.Bucket(bucketName())
				return s.apply(ops)
			}))
		})
	}
	var refused error
	err := l.guard(func() error {
		return closedAs(l.db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists(bucketName())
			if err != nil {
				return err
			}
			if s.counters, err = tx.CreateBucketIfNotExists(countersName()); err != nil {
				return err
			}
			s.bucket = bucket
			if refused = s.apply(ops); refused != nil {
				return refused
			}
			return putCounter(s.counters, bornKey, s.born)
		}))
	})
	switch {
	case err == nil || refused != nil || errors.Is(err, ErrClosed):
		return err
	case !canRetry(err):
		l.failed = fmt.Errorf("%w: %w", ErrFailed, err)
		return l.failed
	}
	return fmt.Errorf("write %s: %w", l.path, err)
}

// canRetry tells a file that could not grow, where nothing is lost, from a failed sync, after which nothing is known.
func canRetry(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && (pe.Op == "write" || pe.Op == "truncate") && errors.Is(err, syscall.ENOSPC)
}

// publish makes the ephemeral changes visible and tells the watchers.
func (l *Local) publish(s *stage) {
	l.state.Lock()
	defer l.state.Unlock()
	for path, n := range s.overlay {
		if n == nil {
			delete(l.ephemeral, path)
		} else {
			l.ephemeral[path] = *n
		}
	}
	for _, path := range s.changed {
		l.notify(path)
	}
}

// Close implements Tree. Ephemeral nodes end here. A Multi that is being written is waited for.
func (l *Local) Close() error {
	l.write.Lock()
	defer l.write.Unlock()
	l.state.Lock()
	if l.closed {
		l.state.Unlock()
		return nil
	}
	l.closed = true
	for _, set := range l.watchers {
		for w := range set {
			w.stop()
			close(w.events)
		}
	}
	l.watchers = nil
	l.ephemeral = map[string]node{}
	l.state.Unlock()
	if err := l.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", l.path, err)
	}
	return nil
}
