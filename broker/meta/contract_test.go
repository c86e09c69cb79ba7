package meta_test

import (
	"path/filepath"
	"testing"

	"gregor/broker/meta"
	"gregor/broker/meta/treetest"
)

// TestLocal runs what every Tree passes.
func TestLocal(t *testing.T) {
	treetest.Run(t, func(t *testing.T) meta.Tree {
		l, err := meta.OpenLocal(filepath.Join(t.TempDir(), meta.FileName))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return l
	})
}
