package meta

import "context"

// watcher is one Watch. Its channel is sent to and closed under the tree's state lock.
type watcher struct {
	path   string
	events chan Event
	stop   func() bool // takes the callback off the context
}

// Watch implements Tree.
func (l *Local) Watch(ctx context.Context, path string) (<-chan Event, error) {
	if err := l.begin(ctx, path); err != nil {
		return nil, err
	}
	w := &watcher{path: path, events: make(chan Event, 1)}
	l.state.Lock()
	defer l.state.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	w.stop = context.AfterFunc(ctx, func() { l.unwatch(w) })
	set := l.watchers[path]
	if set == nil {
		set = map[*watcher]struct{}{}
		l.watchers[path] = set
	}
	set[w] = struct{}{}
	return w.events, nil
}

func (l *Local) unwatch(w *watcher) {
	l.state.Lock()
	defer l.state.Unlock()
	set := l.watchers[w.path]
	if _, there := set[w]; !there {
		return // the tree was closed first
	}
	delete(set, w)
	if len(set) == 0 {
		delete(l.watchers, w.path)
	}
	close(w.events)
}

// notify tells the watchers of a path. The state lock is held.
func (l *Local) notify(path string) {
	for w := range l.watchers[path] {
		select {
		case w.events <- Event{Path: path}:
		default: // one is waiting to be read already
		}
	}
}
