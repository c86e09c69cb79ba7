package log

import (
	"testing"

	"gregor/log/batch"
)

// TestWindowsAfterCrash: a roll leaves a snapshot with one batch of each producer; after a crash right behind it a client repeats the last five
// from before the roll, and each is answered with its first offset.
func TestWindowsAfterCrash(t *testing.T) {
	o := options(newFS(t))
	o.Config.SegmentBytes = 4000
	l := mustOpen(t, o)
	var sent [][]byte
	var at []int64
	for seq := int32(0); len(*l.list.Load()) < 3; seq++ {
		b := batchOf(t, 1, 300, 1000, batch.Options{Producer: &batch.Producer{ID: 9, Epoch: 2, Sequence: seq}})
		sent = append(sent, append([]byte(nil), b...))
		at = append(at, mustAppend(t, l, b).BaseOffset)
	}
	must(t, l.Flush())
	crashed := reopened(o, l, false)
	l.Abandon()
	l = mustOpen(t, crashed)
	defer l.Abandon()
	for i := len(sent) - 5; i < len(sent); i++ {
		a := mustAppend(t, l, sent[i])
		if !a.Duplicate || a.BaseOffset != at[i] {
			t.Errorf("batch %d of %d again: %+v, want a duplicate at %d", i, len(sent), a, at[i])
		}
	}
}
