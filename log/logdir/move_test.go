package logdir

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// moving makes a set of two directories with a partition of three records in the first.
func moving(t *testing.T, fsys vfs.FS) (SetOptions, *Set) {
	t.Helper()
	o := setOptions(fsys, 2)
	o.open, o.FileDeleteDelay = nil, -1
	s := mustOpenSet(t, o)
	made, err := s.Create(spec("a", 0), spec("b", 0))
	must(t, err)
	for range 3 {
		appendOne(t, made[0].Log())
	}
	must(t, s.Sync(t.Context()))
	return o, s
}

// moved waits for a move to end.
func moved(t *testing.T, s *Set, tp TopicPartition, path string) {
	t.Helper()
	must(t, s.Move(tp, path))
	if m := s.moves.get(tp); m != nil {
		<-m.done
	}
}

func TestMove(t *testing.T) {
	disk := crashfs.New()
	o, s := moving(t, disk)
	a := TopicPartition{"a", 0}
	p, _ := s.Get(a)
	must(t, p.Log().MoveStart(1))
	moved(t, s, a, "/d2")
	if got := spread(s); got != "; a-0 b-0" {
		t.Fatal(got)
	}
	q, _ := s.Get(a)
	if q.Log() != p.Log() || q.TopicID() != p.TopicID() || q.Dir() != "/d2/a-0" || q.Log().Dir() != "/d2/a-0" {
		t.Fatalf("%+v", q)
	}
	appendOne(t, q.Log())
	must(t, s.Sync(t.Context()))
	// Killed: the log start was written with the move.
	s.Abandon()
	s = mustOpenSet(t, o)
	if q, _ = s.Get(a); spread(s) != "; a-0 b-0" || q.Log().EndOffset() != 4 || q.Log().StartOffset() != 1 || q.TopicID() != p.TopicID() {
		t.Fatalf("%s: [%d,%d)", spread(s), q.Log().StartOffset(), q.Log().EndOffset())
	}
	moved(t, s, a, "/d1")
	moved(t, s, a, "/d1")
	if got := spread(s); got != "a-0; b-0" {
		t.Fatal(got)
	}
	must(t, s.Close())
	s = mustOpenSet(t, o)
	if q, _ = s.Get(a); spread(s) != "a-0; b-0" || q.Log().EndOffset() != 4 || q.Log().StartOffset() != 1 || !s.WasClean() {
		t.Fatalf("%s: [%d,%d)", spread(s), q.Log().StartOffset(), q.Log().EndOffset())
	}
	must(t, s.Close())
	if open := disk.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestMoveRefuses(t *testing.T) {
	fsys := faultfs.New(crashfs.New())
	o, s := moving(t, fsys)
	long := spec(strings.Repeat("x", 220), 0)
	_, err := s.Create(long)
	must(t, err)
	wantIs(t, s.Move(TopicPartition{"a", 0}, "/d3"), ErrNoDirectory)
	wantIs(t, s.Move(TopicPartition{"a", 1}, "/d2"), ErrNotFound)
	wantIs(t, s.Move(long.TopicPartition, "/d2"), ErrNameTooLong)
	must(t, s.Close())
	fsys.Add(faultfs.Rule{Kind: faultfs.Lock, Path: "/d2", Err: syscall.EROFS})
	s = mustOpenSet(t, o)
	wantIs(t, s.Move(TopicPartition{"a", 0}, "/d2"), ErrDirectoryOffline)
	must(t, s.Close())
}

// held makes moves wait where they read the segment first, until the returned function is called.
func held(fsys *faultfs.FS) (entered chan struct{}, let func()) {
	block := make(chan struct{})
	entered = make(chan struct{}, 100)
	fsys.Add(faultfs.Rule{Kind: faultfs.Create, Path: ".log", Match: func(o faultfs.Op) bool { return strings.Contains(o.Name, futureSuffix) }, Entered: entered, Block: block, Times: 1})
	return entered, func() { close(block) }
}

// TestMoveTurns: a request for another directory, or for the one where the log is, ends the move.
func TestMoveTurns(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	_, s := moving(t, fsys)
	a := TopicPartition{"a", 0}
	entered, let := held(fsys)
	must(t, s.Move(a, "/d2"))
	<-entered
	if f := s.Status()[1].Futures; len(f) != 1 || f[0].ID != a || f[0].Lag != 3 {
		t.Fatalf("%+v", f)
	}
	must(t, s.Move(a, "/d2"))
	m := s.moves.get(a)
	cancel := m.cancel
	m.cancel = func() { cancel(); let() } // let go any earlier, and the move may have ended before it is asked to turn
	must(t, s.Move(a, "/d1"))
	if s.moves.get(a) != nil || len(s.Status()[1].Futures) != 0 {
		t.Fatal("it goes on")
	}
	entries, err := disk.List("/d2")
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), futureSuffix) {
			t.Errorf("%s is left", e.Name())
		}
	}
	must(t, s.Close())
}

// TestMoveTurnsTooLate asks for the way back when the move cannot be ended any more: the log goes there and back.
func TestMoveTurnsTooLate(t *testing.T) {
	fsys := faultfs.New(crashfs.New())
	_, s := moving(t, fsys)
	a := TopicPartition{"a", 0}
	entered, block := make(chan struct{}, 1), make(chan struct{})
	fsys.Add(faultfs.Rule{Kind: faultfs.Rename, Match: func(o faultfs.Op) bool { return o.To == "/d2/a-0" }, Entered: entered, Block: block, Times: 1})
	must(t, s.Move(a, "/d2"))
	<-entered
	m := s.moves.get(a)
	cancel := m.cancel
	m.cancel = func() { cancel(); close(block) }
	must(t, s.Move(a, "/d1"))
	if m := s.moves.get(a); m != nil {
		<-m.done
	}
	if got := spread(s); got != "a-0; b-0" {
		t.Fatal(got)
	}
	must(t, s.Close())
}

// TestMoveOfDeletedPartition: a deletion ends the move.
func TestMoveOfDeletedPartition(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	_, s := moving(t, fsys)
	entered, let := held(fsys)
	must(t, s.Move(TopicPartition{"a", 0}, "/d2"))
	<-entered
	m := s.moves.get(TopicPartition{"a", 0})
	cancel := m.cancel
	m.cancel = func() { cancel(); let() } // let go any earlier, and the move may have ended before
	must(t, s.Delete(TopicPartition{"a", 0}))
	if got := spread(s); got != "; b-0" {
		t.Fatal(got)
	}
	must(t, s.Close())
}

// TestMoveGoesOnAfterAStop begins the copy again.
func TestMoveGoesOnAfterAStop(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	o, s := moving(t, fsys)
	entered, let := held(fsys)
	must(t, s.Move(TopicPartition{"a", 0}, "/d2"))
	<-entered
	s.moves.get(TopicPartition{"a", 0}).cancelAfterStop(s)
	let()
	must(t, s.Close())
	s = mustOpenSet(t, o)
	if m := s.moves.get(TopicPartition{"a", 0}); m != nil {
		<-m.done
	}
	if got := spread(s); got != "; a-0 b-0" {
		t.Fatal(got)
	}
	must(t, s.Close())
}

// cancelAfterStop makes the move see the stop before it goes on.
func (m *move) cancelAfterStop(s *Set) {
	s.moves.stopping.Store(true)
	m.cancel()
}

// TestMoveCutAtEachCall cuts the power after each call of a move: the partition is there once, whole, and takes writes.
func TestMoveCutAtEachCall(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	o, s := moving(t, fsys)
	a := TopicPartition{"a", 0}
	c := cutAtEveryChange(fsys, disk, 4)
	moved(t, s, a, "/d2")
	fsys.Observe(nil)
	c.mu.Lock() // files of the old directory may be going yet
	disks := c.disks
	c.mu.Unlock()
	if len(disks) < 60 {
		t.Fatalf("only %d cuts", len(disks))
	}
	for i, cut := range disks {
		again := o
		again.FS = cut
		w := mustOpenSet(t, again)
		if m := w.moves.get(a); m != nil {
			<-m.done // it went on
		}
		p, ok := w.Get(a)
		if !ok || p.Log() == nil || p.Log().EndOffset() != 3 || len(w.Partitions()) != 2 {
			t.Fatalf("cut %d: %s", i, spread(w))
		}
		appendOne(t, p.Log())
		must(t, w.Close())
		w = mustOpenSet(t, again)
		if p, ok = w.Get(a); !ok || p.Log().EndOffset() != 4 || len(w.Partitions()) != 2 {
			t.Fatalf("cut %d, started again: %s", i, spread(w))
		}
		must(t, w.Close())
	}
	must(t, s.Close())
}

// TestMoveFaults fails each call of a move: the partition stays in use, in one place.
func TestMoveFaults(t *testing.T) {
	for _, path := range []string{"/d1", "/d2"} {
		for skip, calls := 0, 1; calls > skip; skip++ {
			disk := crashfs.New()
			fsys := faultfs.New(disk)
			o, s := moving(t, fsys)
			a := TopicPartition{"a", 0}
			calls = 0
			remove := fsys.Add(faultfs.Rule{Path: path, Err: syscall.EIO, Match: func(op faultfs.Op) bool {
				calls++
				return calls == skip+1
			}})
			err := s.Move(a, "/d2")
			if m := s.moves.get(a); m != nil {
				<-m.done
			}
			remove()
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			p, ok := s.Get(a)
			if !ok || len(s.Partitions()) != 2 {
				t.Fatalf("call %d of %s: %s", skip, path, spread(s))
			}
			end := int64(3)
			if p.Log().Err() == nil {
				appendOne(t, p.Log())
				must(t, s.Sync(t.Context()))
				end = p.Log().HighWatermark()
			}
			s.Abandon()
			s = mustOpenSet(t, o)
			if m := s.moves.get(a); m != nil {
				<-m.done
			}
			if p, ok := s.Get(a); !ok || p.Log() == nil || p.Log().EndOffset() < end || len(s.Partitions()) != 2 {
				t.Fatalf("call %d of %s: started again: %s", skip, path, spread(s))
			}
			must(t, s.Close())
		}
	}
}
