package logdir

import (
	"sync"
	"sync/atomic"

	"gregor/log/commit"
)

// gate is the Committer that logs get. Logs that are opened or made together have one, which holds back what they report until all are
// there: else the first would start a sync, and a thousand logs would take dozens of syncs instead of one or two. It also counts new
// bytes as a reason for a checkpoint.
type gate struct {
	dir  *Dir
	open atomic.Bool

	mu   sync.Mutex // orders what is held before the opening; below a log's lock
	held []commit.Source
}

func (g *gate) Dirty(s commit.Source) {
	g.dir.Touch()
	if !g.open.Load() && g.hold(s) {
		return
	}
	g.dir.committer.Dirty(s)
}

// hold keeps s for release; false if that was already.
func (g *gate) hold(s commit.Source) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open.Load() {
		return false
	}
	g.held = append(g.held, s)
	return true
}

// release lets everything through, from now on at once.
func (g *gate) release() {
	g.mu.Lock()
	g.open.Store(true)
	held := g.held
	g.held = nil
	g.mu.Unlock()
	for _, s := range held {
		g.dir.committer.Dirty(s)
	}
}
