package zk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"gregor/broker/meta"
)

// Watch implements meta.Tree. It returns when the watch is set.
func (t *Tree) Watch(ctx context.Context, path string) (<-chan meta.Event, error) {
	if !meta.ValidPath(path) {
		return nil, fmt.Errorf("%q: %w", path, meta.ErrBadPath)
	}
	renewed := t.reconnected()
	var set watches
	if err := t.set(ctx, path, &set); err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, meta.ErrClosed
	}
	events := make(chan meta.Event, 1)
	t.running.Go(func() {
		defer close(events)
		t.watch(ctx, path, set, renewed, events)
	})
	return events, nil
}

// watch gives an event each time one of the library's came, after the next is set, and after each reconnection: the library may lose what happened before
// one when the connection ends again before it has set its watches on it.
func (t *Tree) watch(ctx context.Context, path string, set watches, renewed <-chan struct{}, events chan<- meta.Event) {
	for {
		select {
		case <-renewed:
			renewed = t.reconnected()
		case <-set.node:
			set.node = nil
		case <-set.children:
			set.children = nil
		case <-ctx.Done():
			return
		case <-t.done:
			return
		}
		if err := t.set(ctx, path, &set); err != nil {
			return
		}
		select {
		case events <- meta.Event{Path: path}:
		default: // one waits to be read
		}
	}
}

// watches are those that the library has set on one node. Each fires once, also when the session ends.
type watches struct {
	node     <-chan zk.Event // data and existence
	children <-chan zk.Event // nil while there is no node
}

// set sets those that are not: the library would keep a second one beside the first.
func (t *Tree) set(ctx context.Context, path string, w *watches) error {
	type there struct {
		exists bool
		events <-chan zk.Event
	}
	exists := true
	if w.node == nil {
		got, err := retry(ctx, t, func() (a there, err error) {
			a.exists, _, a.events, err = t.conn.ExistsW(t.full(path))
			return a, err
		})
		if err != nil {
			return err
		}
		exists, w.node = got.exists, got.events
	}
	if !exists || w.children != nil {
		return nil
	}
	children, err := retry(ctx, t, func() (<-chan zk.Event, error) {
		_, _, events, err := t.conn.ChildrenW(t.full(path))
		return events, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil // deleted: the first watch tells when it is there again
	}
	if err == nil {
		w.children = children
	}
	return err
}
