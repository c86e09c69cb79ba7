package log

import (
	"testing"

	"gregor/log/commit"
)

// committer keeps who is dirty.
type committer chan commit.Source

func (c committer) Dirty(s commit.Source) { c <- s }

// runSync does a round of the committer for l.
func runSync(t testing.TB, l *Log) {
	t.Helper()
	if target, ok := l.BeginSync(); ok {
		l.EndSync(target, syncAll(target.Files))
	}
}
