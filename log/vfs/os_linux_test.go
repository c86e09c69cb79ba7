package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReleaseAtLeast(t *testing.T) {
	cases := []struct {
		release string
		want    bool
	}{
		{"5.16.20", false}, {"5.17.0", true}, {"5.17", true}, {"5.17-rc4", true}, {"5.100.1-generic", true},
		{"4.19.0", false}, {"6.0.0-arch1", true}, {"10.1", true}, {"6", false}, {"", false}, {"x.y", false}, {"5.x", false},
	}
	for _, c := range cases {
		if got := releaseAtLeast(c.release, 5, 17); got != c.want {
			t.Errorf("%q: %v, want %v", c.release, got, c.want)
		}
	}
}

func TestSyscallConnCostsNothing(t *testing.T) {
	f, err := OS().Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := testing.AllocsPerRun(100, func() {
		if _, err := f.(Descriptor).SyscallConn(); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("SyscallConn allocates %v times", n)
	}
}

func TestSyncAllOnKernelFileSystemIsUnsupported(t *testing.T) {
	o := OS()
	for range 2 { // the second answer is the remembered one
		if err := o.SyncAll("/proc/self"); !errors.Is(err, ErrUnsupported) {
			t.Fatalf("syncfs of procfs: %v, want ErrUnsupported", err)
		}
	}
	err := o.SyncAll(filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, ErrUnsupported) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("syncfs of a missing directory: %v", err)
	}
}

// TestLockExcludesRecordLocks: a Java process locks by fcntl(2).
func TestLockExcludesRecordLocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	l, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	record := func() error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	if err := record(); !errors.Is(err, unix.EAGAIN) {
		t.Fatalf("a record lock beside ours: %v, want EAGAIN", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := record(); err != nil {
		t.Fatal(err)
	}
	if _, err := OS().Lock(name); !errors.Is(err, ErrLocked) {
		t.Fatalf("our lock beside a record lock: %v, want ErrLocked", err)
	}
}
