package logdir

import (
	"math/rand/v2"
	"sync"
	"testing"

	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// cuts are the disks after a power cut before each change.
type cuts struct {
	rng   *rand.Rand
	mu    sync.Mutex
	disks []*crashfs.FS
}

// cutAtEveryChange collects disks from now on, each cut with n random outcomes besides the extreme ones. Observe(nil) ends it.
func cutAtEveryChange(fsys *faultfs.FS, disk *crashfs.FS, n int) *cuts {
	c := &cuts{rng: rand.New(rand.NewPCG(1, 2))}
	fsys.Observe(func(o faultfs.Op) {
		if !o.Kind.Changes() {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.disks = append(c.disks, disk.CrashClone(c.rng, crashfs.LoseAll()), disk.CrashClone(c.rng, crashfs.KeepAll()))
		for range n {
			c.disks = append(c.disks, disk.CrashClone(c.rng, crashfs.Random()))
		}
	})
	return c
}

// serial options make the order of calls the same each time.
func serial(fsys *faultfs.FS) Options {
	o := fakeOptions(fsys)
	o.Parallel = 1
	return o
}

// reopen opens a disk after a cut; it must always open.
func reopen(t *testing.T, disk *crashfs.FS) *Dir {
	t.Helper()
	d, err := Open(fakeOptions(disk))
	if err != nil {
		t.Fatalf("after a cut: %v", err)
	}
	for _, p := range d.Partitions() {
		if p.Err() != nil {
			t.Fatalf("after a cut %s is offline: %v", p.ID(), p.Err())
		}
	}
	return d
}

func TestCrashInFirstOpen(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	cuts := cutAtEveryChange(fsys, disk, 10)
	d := mustOpen(t, serial(fsys))
	fsys.Observe(nil)
	for _, c := range cuts.disks {
		must(t, reopen(t, c).Close())
	}
	after := disk.CrashClone(cuts.rng, crashfs.LoseAll())
	if got := readFile(t, after, testDir+"/"+metaFile); got == "" {
		t.Error("the identity was not durable")
	}
	must(t, d.Close())
}

func TestCrashInCreate(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	d := mustOpen(t, serial(fsys))
	mustCreate(t, d, spec("old", 0))
	cuts := cutAtEveryChange(fsys, disk, 10)
	mustCreate(t, d, spec("a", 0), spec("a", 1))
	fsys.Observe(nil)
	partly := 0
	for _, c := range cuts.disks {
		e := reopen(t, c)
		if _, ok := e.Get(TopicPartition{"old", 0}); !ok {
			t.Fatal("a durable partition is gone")
		}
		for _, p := range e.Partitions() {
			if id := p.TopicID(); id != [16]byte{} && id != (Spec{p.ID(), id}).TopicID {
				t.Fatalf("%s has the id %v", p.ID(), id)
			}
		}
		if len(e.Partitions()) == 2 {
			partly++
		}
		must(t, e.Close())
	}
	if partly == 0 {
		t.Error("no cut left a part: the test does not reach what it is about")
	}
	for range 20 {
		e := reopen(t, disk.CrashClone(cuts.rng, crashfs.Random()))
		if got := names(e); got != "a-0 a-1 old-0" {
			t.Fatalf("after Create returned a cut left %q", got)
		}
		for _, i := range []int32{0, 1} {
			if p, _ := e.Get(TopicPartition{"a", i}); p.TopicID() != spec("a", i).TopicID {
				t.Fatalf("topic id of %s is %v", p.ID(), p.TopicID())
			}
		}
		must(t, e.Close())
	}
	must(t, d.Close())
}

func TestCrashInDelete(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	o := serial(fsys)
	o.FileDeleteDelay = -1 // removal is part of it
	d := mustOpen(t, o)
	mustCreate(t, d, spec("a", 0), spec("b", 0))
	cuts := cutAtEveryChange(fsys, disk, 10)
	must(t, d.Delete(TopicPartition{"a", 0}))
	must(t, d.Close())
	fsys.Observe(nil)
	there := make(map[string]int)
	for _, c := range cuts.disks {
		e := reopen(t, c)
		there[names(e)]++
		must(t, e.Close())
	}
	if there["a-0 b-0"] == 0 || there["b-0"] == 0 || len(there) != 2 {
		t.Errorf("after cuts there were %v", there)
	}
	for range 20 {
		e := reopen(t, disk.CrashClone(cuts.rng, crashfs.Random()))
		if got := names(e); got != "b-0" {
			t.Fatalf("after Delete returned a cut left %q", got)
		}
		must(t, e.Close())
	}
}

// TestCrashInCheckpointAndClose appends, checkpoints and closes with a cut before each change. A recovery point never covers what
// the disk does not have, and a clean disk has everything.
func TestCrashInCheckpointAndClose(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	d := mustOpen(t, serial(fsys))
	mustCreate(t, d, spec("a", 0), spec("b", 0))
	a, b := fake(t, d, "a", 0), fake(t, d, "b", 0)
	cuts := cutAtEveryChange(fsys, disk, 3)
	for i := range 5 {
		a.append(t)
		b.append(t)
		if i%2 == 0 {
			must(t, d.ownCommit.Flush(t.Context()))
		}
		must(t, d.ownCommit.Flush(t.Context())) // the committer does not run beside the observer
		must(t, d.Checkpoint())
	}
	must(t, d.Close())
	fsys.Observe(nil)
	clean := 0
	cuts.disks = append(cuts.disks, disk.CrashClone(cuts.rng, crashfs.LoseAll()))
	for _, c := range cuts.disks {
		e := reopen(t, c)
		for _, topic := range []string{"a", "b"} {
			l := fake(t, e, topic, 0)
			if l.opts.RecoveryPoint > l.end {
				t.Fatalf("recovery point %d, but %d records", l.opts.RecoveryPoint, l.end)
			}
			if l.opts.Clean != e.WasClean() || e.WasClean() && (l.end != 5 || l.opts.RecoveryPoint != 5) {
				t.Fatalf("clean with %d records, recovery point %d; want 5", l.end, l.opts.RecoveryPoint)
			}
		}
		if e.WasClean() {
			clean++
		}
		e.Abandon()
	}
	if last := reopenedClean(t, cuts.disks[len(cuts.disks)-1]); clean == 0 || last {
		t.Errorf("clean %d times; the last disk, opened once, is clean again: %v", clean, last)
	}
}

func reopenedClean(t *testing.T, disk *crashfs.FS) bool {
	t.Helper()
	e := reopen(t, disk)
	defer e.Abandon()
	return e.WasClean()
}

// TestMarkerIsGoneBeforeAnythingIsWritten cuts from the open of a clean directory on.
func TestMarkerIsGoneBeforeAnythingIsWritten(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	d := mustOpen(t, serial(fsys))
	mustCreate(t, d, spec("a", 0))
	must(t, d.Close())
	o := serial(fsys)
	o.ClusterID = "" // nothing to write: the marker's removal must be durable by itself
	d = mustOpen(t, o)
	if !d.WasClean() {
		t.Fatal("a clean stop was not seen")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	fake(t, d, "a", 0).append(t)
	for range 20 {
		if reopenedClean(t, disk.CrashClone(rng, crashfs.Random())) {
			t.Fatal("a cut brought the marker back")
		}
	}
}
