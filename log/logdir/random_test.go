package logdir

import (
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"gregor/log"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// world is a directory with real logs and what must be on the disk: every partition that Create returned, but those that Delete was
// asked for, with every record below its high watermark.
type world struct {
	disk *crashfs.FS
	fsys *faultfs.FS
	rng  *rand.Rand // of the operations
	dir  *Dir

	mu   sync.Mutex // the observer is called from several goroutines
	dice *rand.Rand // of the cuts
	must map[TopicPartition]*log.Log
	may  map[TopicPartition]struct{} // being made or deleted
	cuts []cut
}

// cut is a disk after a power cut, with the end offset that each partition has at least, and the partitions that may be there.
type cut struct {
	disk *crashfs.FS
	ends map[TopicPartition]int64
	may  map[TopicPartition]struct{}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{disk: crashfs.New(), must: make(map[TopicPartition]*log.Log), may: make(map[TopicPartition]struct{})}
	w.rng, w.dice = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	w.fsys = faultfs.New(w.disk)
	w.fsys.Observe(w.observe)
	w.open(t)
	return w
}

func (w *world) open(t *testing.T) {
	t.Helper()
	d := mustOpen(t, Options{FS: w.fsys, Dir: testDir, BrokerID: 1, ClusterID: "abc", FileDeleteDelay: -1,
		Config: func(string) log.Config { return log.Config{SegmentBytes: 4000, IndexIntervalBytes: 1} }})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dir = d
	for tp := range w.must {
		p, ok := d.Get(tp)
		if !ok || p.Log() == nil {
			t.Fatalf("%s is not there after a stop", tp)
		}
		w.must[tp] = p.Log()
	}
}

// observe cuts now and then. The offsets are read first: what they promise must be in the clone.
func (w *world) observe(o faultfs.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !o.Kind.Changes() || w.dice.IntN(20) != 0 {
		return
	}
	c := cut{ends: make(map[TopicPartition]int64), may: maps.Clone(w.may)}
	for tp, l := range w.must {
		c.ends[tp] = l.HighWatermark()
	}
	policy := []crashfs.Policy{crashfs.Random(), crashfs.Random(), crashfs.LoseAll(), crashfs.KeepAll()}[w.dice.IntN(4)]
	c.disk = w.disk.CrashClone(w.dice, policy)
	w.cuts = append(w.cuts, c)
}

func (w *world) step(t *testing.T) {
	tp := TopicPartition{[]string{"a", "b", "c"}[w.rng.IntN(3)], int32(w.rng.IntN(2))}
	w.mu.Lock()
	l := w.must[tp]
	w.mu.Unlock()
	switch n := w.rng.IntN(40); {
	case l == nil:
		w.create(t, tp)
	case n == 0:
		w.delete(t, tp)
	case n == 1:
		must(t, w.dir.Checkpoint())
	case n == 2:
		must(t, w.dir.Close())
		w.open(t)
	case n == 3:
		w.dir.Abandon()
		w.open(t)
	default:
		appendOne(t, l)
		if n%2 == 0 {
			must(t, w.dir.ownCommit.Flush(t.Context()))
		}
	}
}

func (w *world) create(t *testing.T, tp TopicPartition) {
	w.mu.Lock()
	w.may[tp] = struct{}{}
	w.mu.Unlock()
	made, err := w.dir.Create(Spec{TopicPartition: tp, TopicID: [16]byte{1}})
	must(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.must[tp] = made[0].Log()
	delete(w.may, tp)
}

func (w *world) delete(t *testing.T, tp TopicPartition) {
	w.mu.Lock()
	delete(w.must, tp)
	w.may[tp] = struct{}{}
	w.mu.Unlock()
	must(t, w.dir.Delete(tp))
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.may, tp)
}

// check opens the disk after the cut.
func (c *cut) check(t *testing.T) {
	t.Helper()
	d, err := Open(Options{FS: c.disk, Dir: testDir, BrokerID: 1, ClusterID: "abc"})
	if err != nil {
		t.Fatalf("after a cut: %v", err)
	}
	defer d.Abandon()
	for _, p := range d.Partitions() {
		end, durable := c.ends[p.ID()]
		_, maybe := c.may[p.ID()]
		switch {
		case p.Err() != nil:
			t.Errorf("after a cut %s is offline: %v", p.ID(), p.Err())
		case !durable && !maybe:
			t.Errorf("after a cut %s is back", p.ID())
		case p.Log().EndOffset() < end:
			t.Errorf("after a cut %s ends at %d, %d was visible", p.ID(), p.Log().EndOffset(), end)
		}
		delete(c.ends, p.ID())
	}
	for tp := range c.ends {
		t.Errorf("after a cut %s is gone", tp)
	}
}

func TestRandomOperationsAndCuts(t *testing.T) {
	cuts := 0
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		for range 150 {
			w.step(t)
		}
		must(t, w.dir.Close())
		w.fsys.Observe(nil)
		for _, c := range w.cuts {
			c.check(t)
		}
		cuts += len(w.cuts)
		if open := w.disk.OpenFiles(); len(open) != 0 {
			t.Errorf("left open: %v", open)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if cuts < 100 {
		t.Errorf("only %d cuts", cuts)
	}
	t.Logf("%d cuts", cuts)
}
