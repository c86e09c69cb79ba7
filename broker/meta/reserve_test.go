package meta

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReserve: a new file has its reserve, and changes do not make it longer as long as they fit.
func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	l, err := OpenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if size() < reserved {
		t.Skipf("this file system gives no reserve: the file has %d bytes", size())
	}
	if err := EnsureRoot(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := l.Multi(t.Context(), CreateOp(TopicPath(name), TopicNode{Replicas: Replicas{0: {1}}}.Encode(), Persistent)); err != nil {
			t.Fatal(err)
		}
	}
	if got := size(); got != reserved {
		t.Errorf("file has %d bytes, want %d", got, reserved)
	}
}
