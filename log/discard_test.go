package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// rolled makes a synced log of segments with two batches each, the active one among them.
func rolled(t *testing.T, o Options, segments int) (*Log, map[int64][]byte) {
	t.Helper()
	l := mustOpen(t, o)
	want := fill(t, l, 2*segments)
	must(t, l.Flush())
	if n := len(*l.list.Load()); n != segments {
		t.Fatalf("%d segments, want %d", n, segments)
	}
	return l, want
}

func rolledOptions(fsys *faultfs.FS) Options {
	o := options(fsys)
	o.Config = Config{SegmentBytes: 500, IndexIntervalBytes: 1}
	return o
}

// deletedFiles are the names with .deleted.
func deletedFiles(t *testing.T, o Options) (names []string) {
	t.Helper()
	for _, name := range fileNames(t, o) {
		if filepath.Ext(name) == deletedExt {
			names = append(names, strings.TrimLeft(name, "0"))
		}
	}
	return names
}

// TestDeleteDelay follows the files of deleted segments from their rename to their removal.
func TestDeleteDelay(t *testing.T) {
	o := rolledOptions(faultfs.New(newFS(t)))
	c := newClock()
	o.Now, o.Config.FileDeleteDelayMs = c.Now, 60_000
	l, want := rolled(t, o, 5)
	reading, err := l.Read(0, 1<<20, ToHighWatermark, true)
	must(t, err)
	must(t, l.AdvanceStart(7))
	if got := strings.Join(deletedFiles(t, o), " "); got != ".index.deleted .log.deleted .timeindex.deleted" {
		t.Fatalf("renamed: %s", got)
	}
	if next := l.Sweep(); !next.Equal(c.Now().Add(time.Minute)) {
		t.Fatalf("next sweep at %v", next)
	}
	c.advance(30 * time.Second)
	must(t, l.AdvanceStart(18))
	c.advance(30 * time.Second)
	if next := l.Sweep(); !next.Equal(c.Now().Add(30*time.Second)) || len(deletedFiles(t, o)) != 6 {
		t.Fatalf("next sweep at %v, left %v", next, deletedFiles(t, o))
	}
	c.advance(30 * time.Second)
	if next := l.Sweep(); !next.IsZero() || len(deletedFiles(t, o)) != 0 {
		t.Fatalf("next sweep at %v, left %v", next, deletedFiles(t, o))
	}
	sameBatches(t, readAll(t, l, 18, ToHighWatermark), want, 18, 30)
	if got := content(t, &reading); string(got[:len(want[0])]) != string(want[0]) {
		t.Fatal("a slice is not readable after its segment was deleted")
	}
	reading.Release()
	if _, err := l.Read(17, 1, ToHighWatermark, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("reading below the start: %v", err)
	}
	must(t, l.Close())
}

// TestDeleteKeepsStart moves the start into a segment, and deletes only what lies below.
func TestDeleteKeepsStart(t *testing.T) {
	o := rolledOptions(faultfs.New(newFS(t)))
	l, want := rolled(t, o, 5)
	must(t, l.MoveStart(13))
	if len(fileNames(t, o)) == 0 || l.StartOffset() != 13 || len(*l.list.Load()) != 5 {
		t.Fatalf("start %d, %d segments", l.StartOffset(), len(*l.list.Load()))
	}
	must(t, l.Close())
	l = mustOpen(t, reopened(o, l, true))
	must(t, l.DeleteBelowStart())
	if n := len(*l.list.Load()); n != 3 || l.StartOffset() != 13 {
		t.Fatalf("start %d, %d segments", l.StartOffset(), n)
	}
	must(t, l.MoveStart(2))
	sameBatches(t, readAll(t, l, 13, ToHighWatermark), want, 12, 30)
	if err := l.MoveStart(31); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Fatalf("beyond the high watermark: %v", err)
	}
	must(t, l.Close())
	if err := l.MoveStart(20); !errors.Is(err, ErrClosed) {
		t.Fatalf("closed: %v", err)
	}
}

// TestDeleteCutAtEachCall cuts the power after each call of the file system: the log that comes back ends where it did and has no hole.
func TestDeleteCutAtEachCall(t *testing.T) {
	for _, clean := range []bool{false, true} {
		for _, delay := range []int64{0, 1000} {
			mem := newFS(t)
			seam := faultfs.New(mem)
			o := rolledOptions(seam)
			c := newClock()
			o.Now, o.Config.FileDeleteDelayMs = c.Now, delay
			l, want := rolled(t, o, 6)
			must(t, mem.SyncAll("/"))
			var cuts []*crashfs.FS
			seam.Observe(func(faultfs.Op) {
				for seed := range uint64(6) {
					cuts = append(cuts, mem.CrashClone(rng(seed), crashfs.Random()))
				}
				cuts = append(cuts, mem.CrashClone(rng(0), crashfs.LoseAll()), mem.CrashClone(rng(0), crashfs.KeepAll()))
			})
			must(t, l.AdvanceStart(15))
			c.advance(time.Second)
			l.Sweep()
			seam.Observe(nil)
			for i, disk := range cuts {
				again := reopened(o, l, clean)
				again.FS, again.LogStart = disk, -1
				if clean {
					again.LogStart = 15
				}
				got := mustOpen(t, again)
				if got.EndOffset() != 36 || got.StartOffset() > 15 {
					t.Fatalf("cut %d: offsets [%d,%d)", i, got.StartOffset(), got.EndOffset())
				}
				sameBatches(t, readAll(t, got, got.StartOffset(), ToLogEnd), want, got.StartOffset()/3*3, 36)
				if left := deletedFiles(t, again); len(left) > 0 {
					t.Fatalf("cut %d: left %v", i, left)
				}
				got.Abandon()
			}
			if len(cuts) < 100 {
				t.Fatalf("only %d cuts", len(cuts))
			}
			l.Abandon()
		}
	}
}

// TestDeleteGoesOn deletes on a disk that refuses a call: without room for it the next deletion begins there, after another error the log is offline.
func TestDeleteGoesOn(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for _, kind := range []faultfs.Kind{faultfs.Rename, faultfs.SyncDir} {
			for skip := range 7 {
				t.Run(fmt.Sprint(errno, kind, skip), func(t *testing.T) {
					mem := newFS(t)
					seam := faultfs.New(mem)
					o := rolledOptions(seam)
					l, want := rolled(t, o, 6)
					seen := 0
					remove := seam.Add(faultfs.Rule{Kind: kind, Err: errno, Times: 1, Match: func(faultfs.Op) bool { seen++; return seen == skip+1 }})
					err := l.AdvanceStart(20)
					remove()
					if hit := seen > skip; hit != (err != nil) {
						t.Fatalf("after %d calls: %v", seen, err)
					}
					if offline := err != nil && errno == syscall.EIO; offline != (l.Err() != nil) {
						t.Fatalf("%v, then offline with %v", err, l.Err())
					}
					if l.Err() == nil {
						must(t, l.DeleteBelowStart())
						must(t, l.AdvanceStart(24))
						if left := fileNames(t, o); !strings.HasPrefix(left[0], fileName(24, "")) {
							t.Fatalf("left %v", left)
						}
						must(t, l.TruncateFullyAndStartAt(0))
						want = fill(t, l, 12)
						must(t, l.Flush())
					}
					l.Abandon()
					again := reopened(o, l, false)
					again.FS = mem.CrashClone(rng(1), crashfs.LoseAll())
					l = mustOpen(t, again)
					defer l.Abandon()
					sameBatches(t, readAll(t, l, l.StartOffset(), ToLogEnd), want, l.StartOffset()/3*3, 36)
				})
			}
		}
	}
}

// TestDiscardedIsNotRebuilt has a reader rebuild the indexes of a segment that is being deleted: no file may come back.
func TestDiscardedIsNotRebuilt(t *testing.T) {
	o := rolledOptions(faultfs.New(newFS(t)))
	l, _ := rolled(t, o, 3)
	must(t, l.Close())
	l = mustOpen(t, reopened(o, l, true))
	defer l.Abandon()
	must(t, o.FS.Remove(filepath.Join(o.Dir, fileName(0, indexExt))))
	first := (*l.list.Load())[0]
	must(t, l.AdvanceStart(8))
	if err := first.ensure(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("ensure: %v", err)
	}
	// One that was rebuilt before has a sync waiting.
	l.needSync(&fileSync{l, fileName(0, indexExt)})
	must(t, l.Flush())
	for _, name := range fileNames(t, o) {
		if strings.HasPrefix(name, fileName(0, "")) {
			t.Errorf("%s is there", name)
		}
	}
}
