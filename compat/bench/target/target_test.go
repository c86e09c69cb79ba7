package target

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	stat := "42 (a b) c) S 1 42 42 0 -1 4194560 1 2 3 4 123 77 9 9 20 0 12 0 5000 1 2"
	got, err := parseStat([]byte(stat))
	if err != nil || got != 2*time.Second {
		t.Errorf("%v, %v, want 2s", got, err)
	}
	for _, bad := range []string{"", "42", "42 (x) S 1 2", strings.Replace(stat, "123", "abc", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		if after, err := CPU(os.Getpid()); err != nil {
			t.Fatal(err)
		} else if after < before {
			t.Fatalf("CPU time went from %v to %v", before, after)
		}
	}
	if rss, err := RSS(os.Getpid()); err != nil || rss < 1<<20 || rss > 1<<32 {
		t.Errorf("RSS %d, %v", rss, err)
	}
	if busy, err := BusyCPU(); err != nil || busy <= 0 {
		t.Errorf("busy %v, %v", busy, err)
	}
	if _, err := CPU(-1); err == nil {
		t.Error("CPU of no process")
	}
}

func TestCheckDirRefusesMemory(t *testing.T) {
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || uint32(st.Type) != unix.TMPFS_MAGIC {
		t.Skipf("no tmpfs at /dev/shm to try (%v)", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "gregor-bench")
	if err != nil {
		t.Skipf("cannot write to /dev/shm: %v", err)
	}
	defer os.Remove(dir)
	if err := CheckDir(dir); err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("got %v, want an error that names the flag", err)
	}
}

func TestFreeAddr(t *testing.T) {
	addr, err := freeAddr()
	if err != nil || !strings.HasPrefix(addr, "127.0.0.1:2") && !strings.HasPrefix(addr, "127.0.0.1:3") {
		t.Errorf("%q, %v", addr, err)
	}
}
