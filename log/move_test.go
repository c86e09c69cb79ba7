package log

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/commit"
	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

const (
	futureDir = "/other/topic-0.future"
	movedDir  = "/other/topic-0"
	leftDir   = "/data/topic-0.delete"
)

// promotion is what a log directory does at the end of a move.
func promotion(fsys vfs.FS) func() (string, error) {
	return func() (string, error) {
		err := fsys.Rename(futureDir, movedDir)
		if err == nil {
			err = fsys.SyncDir("/other")
		}
		if err == nil {
			err = fsys.Rename(testDir, leftDir)
		}
		if err == nil {
			err = fsys.SyncDir("/data")
		}
		return movedDir, err
	}
}

// movable makes a log of several segments, and the directory to move it to.
func movable(t *testing.T, fsys vfs.FS) (Options, *Log, *crashModel) {
	t.Helper()
	o := options(fsys)
	o.Config = Config{SegmentBytes: 700, IndexIntervalBytes: 100}
	must(t, fsys.MkdirAll(futureDir))
	must(t, fsys.SyncDir("/"))
	must(t, fsys.SyncDir("/other"))
	l := mustOpen(t, o)
	m := &crashModel{t: t, rng: rng(5), o: o, l: l, written: make(map[int64][]byte), seq: make(map[int64]int32), txns: make(map[int64]*txnProducer), clock: newClock()}
	for range 25 {
		m.append()
	}
	must(t, l.Flush())
	return o, l, m
}

func TestMove(t *testing.T) {
	mem := newFS(t)
	o, l, m := movable(t, mem)
	told := &toldSources{}
	l.flush.source, l.flush.dirty = newSource(l, told), false
	m.append()
	must(t, l.AdvanceStart(7))
	reading, err := l.Read(l.StartOffset(), 1<<20, ToHighWatermark, true)
	must(t, err)
	before := content(t, &reading)
	mv := l.NewMove(futureDir)
	sealed := fileName((*l.list.Load())[1].base, logExt)
	written := time.UnixMilli(1_600_000_000_000)
	must(t, mem.SetModTime(filepath.Join(testDir, sealed), written))
	for range 3 {
		must(t, mv.Copy(t.Context()))
		m.append()
	}
	if info, err := mem.Stat(filepath.Join(futureDir, sealed)); err != nil || !info.ModTime().Equal(written) {
		t.Fatalf("the copy is as of %v, %v", info.ModTime(), err)
	}
	if bytes, offset := mv.Progress(); bytes == 0 || bytes >= l.Size() || offset == 0 || offset > l.EndOffset() {
		t.Fatalf("copied %d bytes, up to offset %d", bytes, offset)
	}
	next := &toldSources{}
	must(t, mv.Finish(t.Context(), next, promotion(mem)))
	if l.Dir() != movedDir || l.RecoveryPoint() != l.EndOffset() || l.HighWatermark() != l.EndOffset() {
		t.Fatalf("in %s, recovery point %d, high watermark %d, end %d", l.Dir(), l.RecoveryPoint(), l.HighWatermark(), l.EndOffset())
	}
	if string(content(t, &reading)) != string(before) {
		t.Fatal("a slice of the old place changed")
	}
	reading.Release()
	m.check(l)
	for range 10 {
		m.append()
	}
	if _, ok := told.sources[0].BeginSync(); ok {
		t.Fatal("the committer of the old disk is given bytes on the new one")
	}
	target, ok := next.sources[0].BeginSync()
	if !ok || target.Offset != l.EndOffset() {
		t.Fatalf("the new one is given %+v", target)
	}
	next.sources[0].EndSync(target, syncAll(target.Files))
	m.check(l)
	must(t, l.AdvanceStart(l.EndOffset()-5))
	must(t, l.Close())
	l.handles.Close()
	if open := mem.OpenFiles(); len(open) > 0 {
		t.Fatalf("left open: %v", open)
	}
	o.Dir = movedDir
	again := reopened(o, l, true)
	lines := &logLines{}
	again.Logger = lines.logger()
	l = mustOpen(t, again)
	m.check(l)
	if lines.has("level=WARN") {
		t.Errorf("warned: %s", lines.buf.String())
	}
	must(t, l.Close())
}

// toldSources is a committer that only notes who is dirty.
type toldSources struct{ sources []commit.Source }

func (c *toldSources) Dirty(s commit.Source) { c.sources = append(c.sources, s) }

// TestMoveWhileItChanges truncates, deletes and appends between the passes of the copy.
func TestMoveWhileItChanges(t *testing.T) {
	for seed := range uint64(15) {
		mem := newFS(t)
		_, l, m := movable(t, mem)
		m.rng, m.low = rng(seed), 1<<62
		mv := l.NewMove(futureDir)
		for range 12 {
			switch m.rng.IntN(8) {
			case 0:
				must(t, l.AdvanceStart(l.StartOffset()+m.rng.Int64N(l.HighWatermark()-l.StartOffset()+1)))
			case 1, 2:
				m.truncate()
			case 3:
				must(t, l.Flush())
			case 4:
				must(t, mv.Copy(t.Context()))
			default:
				m.append()
			}
		}
		must(t, mv.Finish(t.Context(), nil, promotion(mem)))
		m.check(l)
		for range 5 {
			m.append()
		}
		must(t, l.Flush())
		m.o.Dir = movedDir
		again := reopened(m.o, l, false)
		again.FS = mem.CrashClone(rng(seed), crashfs.LoseAll())
		l.Abandon()
		got := mustOpen(t, again)
		if got.EndOffset() != l.EndOffset() || got.StartOffset() != l.StartOffset() {
			t.Fatalf("seed %d: [%d,%d), want [%d,%d)", seed, got.StartOffset(), got.EndOffset(), l.StartOffset(), l.EndOffset())
		}
		m.check(got)
		got.Abandon()
	}
}

// TestMoveCutAtEachCall cuts the power after each call: the log is in one of the two places or whole in both, with all that was durable.
func TestMoveCutAtEachCall(t *testing.T) {
	mem := newFS(t)
	seam := faultfs.New(mem)
	_, l, m := movable(t, seam)
	type cut struct {
		disk   *crashfs.FS
		surely int64
	}
	var cuts []cut
	high := l.HighWatermark()
	seam.Observe(func(op faultfs.Op) {
		if !op.Kind.Changes() {
			return
		}
		for seed := range uint64(2) {
			cuts = append(cuts, cut{mem.CrashClone(rng(seed), crashfs.Random()), high})
		}
		cuts = append(cuts, cut{mem.CrashClone(rng(1), crashfs.LoseAll()), high}, cut{mem.CrashClone(rng(1), crashfs.KeepAll()), high})
	})
	mv := l.NewMove(futureDir)
	must(t, mv.Copy(t.Context()))
	m.append()
	must(t, mv.Finish(t.Context(), nil, promotion(seam)))
	for range 3 {
		m.append()
		must(t, l.Flush())
		high = l.HighWatermark()
	}
	seam.Observe(nil)
	for i, c := range cuts {
		best := int64(-1)
		for _, dir := range []string{testDir, movedDir} {
			if _, err := c.disk.Stat(dir); err != nil {
				continue
			}
			o := m.o
			o.FS, o.Dir = c.disk, dir
			got := mustOpen(t, o)
			m.check(got)
			best = max(best, got.EndOffset())
			got.Abandon()
		}
		if best < c.surely {
			t.Fatalf("cut %d: the best log ends at %d, consumers saw %d", i, best, c.surely)
		}
	}
	if len(cuts) < 150 {
		t.Fatalf("only %d cuts", len(cuts))
	}
	l.Abandon()
}

// TestMoveFaults fails each call of the file system: the log goes on where it was, or is offline, and nothing is lost.
func TestMoveFaults(t *testing.T) {
	for skip, calls := 0, 1; calls > skip; skip++ {
		mem := newFS(t)
		seam := faultfs.New(mem)
		_, l, m := movable(t, seam)
		calls = 0
		remove := seam.Add(faultfs.Rule{Err: syscall.EIO, Match: func(op faultfs.Op) bool {
			calls++
			return calls == skip+1
		}})
		mv := l.NewMove(futureDir)
		promoted := false
		err := mv.Copy(t.Context())
		if err == nil {
			err = mv.Finish(t.Context(), nil, func() (string, error) {
				dir, err := promotion(mem)()
				promoted = err == nil
				return dir, err
			})
		}
		remove()
		if promoted != (err == nil) || err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("call %d: promoted %v, %v", skip, promoted, err)
		}
		if l.Err() == nil {
			m.append()
			must(t, l.Flush())
		}
		m.check(l)
		end := l.HighWatermark()
		l.Abandon()
		l.handles.Close()
		if open := mem.OpenFiles(); len(open) > 0 {
			t.Fatalf("call %d: left open: %v", skip, open)
		}
		o := m.o
		o.FS, o.Dir = mem.CrashClone(rng(1), crashfs.LoseAll()), l.Dir()
		got := mustOpen(t, o)
		if got.EndOffset() < end {
			t.Fatalf("call %d: ends at %d, want %d", skip, got.EndOffset(), end)
		}
		m.check(got)
		got.Abandon()
	}
}

func TestMoveIsCancelled(t *testing.T) {
	mem := newFS(t)
	_, l, m := movable(t, mem)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mv := l.NewMove(futureDir)
	if err := mv.Copy(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := mv.Finish(ctx, nil, promotion(mem)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m.append()
	m.check(l)
	must(t, l.Close())
	if err := l.NewMove(futureDir).Copy(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// TestMoveUnderLoad moves a log forth and back on the real file system while it is written and read.
func TestMoveUnderLoad(t *testing.T) {
	base := t.TempDir()
	fsys := vfs.OS()
	committer := commit.New(fsys, base, nil)
	defer committer.Close()
	o := Options{FS: fsys, Dir: filepath.Join(base, "a"), LogStart: -1, Committer: committer, Config: Config{SegmentBytes: 200_000}}
	l := mustOpen(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	wrote := make(chan struct{}, 1)
	working.Go(func() {
		defer close(wrote)
		for i := 0; i < 1_000 && ctx.Err() == nil; i++ {
			if _, err := appendTo(l, batchOf(t, 3, 100, 1000, batch.Options{}), 0); err != nil {
				t.Error(err)
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	})
	working.Go(func() {
		for ctx.Err() == nil {
			s, err := l.Read(0, 1<<20, ToHighWatermark, true)
			if err != nil {
				t.Error(err)
				return
			}
			if b := make([]byte, s.Size); s.Size > 0 {
				if _, err := s.File.ReadAt(b, s.Pos); err != nil {
					t.Error(err)
				}
			}
			s.Release()
		}
	})
	for i := range 5 {
		<-wrote // the writer may come late
		from, to := l.Dir(), filepath.Join(base, fmt.Sprint("copy", i))
		must(t, fsys.MkdirAll(to))
		mv := l.NewMove(to)
		must(t, mv.Copy(ctx))
		must(t, mv.Finish(ctx, committer, func() (string, error) { return to, fsys.Rename(from, from+"-gone") }))
	}
	cancel()
	working.Wait()
	must(t, l.Close())
	l.handles.Close()
	o.Dir = l.Dir()
	again := reopened(o, l, true)
	end := l.EndOffset()
	l = mustOpen(t, again)
	defer l.Abandon()
	offset := int64(0)
	for _, b := range readAll(t, l, 0, ToLogEnd) {
		e, err := batch.ReadEntry(b)
		must(t, err)
		if e.BaseOffset != offset {
			t.Fatalf("offset %d follows %d", e.BaseOffset, offset)
		}
		offset = e.LastOffset + 1
	}
	if offset != end || end == 0 {
		t.Fatalf("read up to %d of %d", offset, end)
	}
}
