package meta

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// swap puts another file under the descriptor that the tree writes through, and returns what puts the right one back.
func swap(t *testing.T, path, other string) func() {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	replacement, err := os.OpenFile(other, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer replacement.Close()
	for _, entry := range fds {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || target != path {
			continue
		}
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err != nil {
			t.Fatal(err)
		}
		saved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(int(replacement.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := errors.Join(unix.Dup3(saved, fd, unix.O_CLOEXEC), unix.Close(saved)); err != nil {
				t.Error(err)
			}
		}
	}
	t.Fatalf("no descriptor of %s", path)
	return nil
}

func TestDiskFullAndThenNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	l := open(t, path)
	must(t, l, CreateOp("/a", []byte("1"), Persistent))
	restore := swap(t, path, "/dev/full")
	err := l.Multi(t.Context(), SetOp("/a", []byte("2"), 0), CreateOp("/e", nil, Ephemeral))
	restore()
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrFailed) {
		t.Fatalf("error %v, want no space", err)
	}
	if _, _, err := l.Get(t.Context(), "/e"); !errors.Is(err, ErrNoNode) {
		t.Errorf("half a Multi is visible: %v", err)
	}
	must(t, l, SetOp("/a", []byte("3"), 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if data, version, err := open(t, path).Get(t.Context(), "/a"); string(data) != "3" || version != 1 || err != nil {
		t.Errorf("got %q, %d, %v", data, version, err)
	}
}

func TestFailedDiskIsFinal(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	l := open(t, path)
	must(t, l, CreateOp("/a", []byte("1"), Persistent))
	restore := swap(t, path, "/proc/self/mem") // a write there fails
	err := l.Multi(t.Context(), SetOp("/a", []byte("2"), 0))
	restore()
	if !errors.Is(err, ErrFailed) {
		t.Fatalf("error %v, want ErrFailed", err)
	}
	if err := l.Multi(t.Context(), SetOp("/a", []byte("3"), 0)); !errors.Is(err, ErrFailed) {
		t.Errorf("a later change: %v, want ErrFailed", err)
	}
	if data, _, err := l.Get(t.Context(), "/a"); string(data) != "1" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
}
