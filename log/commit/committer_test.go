package commit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gregor/log/vfs"
)

// fakeFS has only SyncAll, which takes a while of fake time.
type fakeFS struct {
	vfs.FS
	took  time.Duration
	err   error
	calls int
	block chan struct{}
}

func (f *fakeFS) SyncAll(string) error {
	f.calls++
	if f.block != nil {
		<-f.block
	}
	time.Sleep(f.took) // in a synctest bubble
	return f.err
}

// fakeFile counts syncs and how many run at once.
type fakeFile struct {
	took    time.Duration
	err     error
	syncs   atomic.Int32
	running *atomic.Int32
	most    *atomic.Int32
}

func (f *fakeFile) Sync() error {
	f.syncs.Add(1)
	if f.running != nil {
		n := f.running.Add(1)
		for old := f.most.Load(); n > old && !f.most.CompareAndSwap(old, n); old = f.most.Load() {
		}
		defer f.running.Add(-1)
	}
	time.Sleep(f.took) // in a synctest bubble
	return f.err
}

// fakeSource is a log whose end moves by write and whose durable end by EndSync.
type fakeSource struct {
	mu      sync.Mutex
	files   []Syncer
	written int64
	durable int64
	errs    []error
	ends    int
}

func (s *fakeSource) write(c *Committer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	c.Dirty(s)
}

func (s *fakeSource) BeginSync() (Target, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Target{Files: s.files, Offset: s.written}, s.written > s.durable
}

func (s *fakeSource) EndSync(t Target, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends++
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	s.durable = t.Offset
}

func (s *fakeSource) state() (written, durable int64, ends int, errs []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, s.durable, s.ends, s.errs
}

func sources(n int, file func(i int) *fakeFile) []*fakeSource {
	all := make([]*fakeSource, n)
	for i := range all {
		all[i] = &fakeSource{files: []Syncer{file(i)}}
	}
	return all
}

func flush(t *testing.T, c *Committer) {
	t.Helper()
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestKindOfSync(t *testing.T) {
	cases := []struct {
		name      string
		sources   int
		fsErr     error
		wantAll   int
		wantFiles uint64
	}{
		{"one file", 1, nil, 0, 1},
		{"at the threshold", syncAllFrom, nil, 1, 0},
		{"many", 1000, nil, 1, 0},
		{"no syncfs", 1000, vfs.ErrUnsupported, 1, 1000},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fsys := &fakeFS{err: tc.fsErr}
			c := New(fsys, "d", nil)
			defer c.Close()
			all := sources(tc.sources, func(int) *fakeFile { return &fakeFile{} })
			markTogether(c, all)
			flush(t, c)
			for i, s := range all {
				if written, durable, ends, errs := s.state(); written != durable || ends != 1 || errs != nil {
					t.Fatalf("source %d: written %d, durable %d, %d ends, errors %v", i, written, durable, ends, errs)
				}
			}
			st := c.Stats()
			if fsys.calls != tc.wantAll || st.File.Count != tc.wantFiles || st.Rounds != 1 || st.Sources != uint64(tc.sources) {
				t.Errorf("%d syncfs calls, stats %+v", fsys.calls, st)
			}
		})
	}
}

// markTogether makes all sources dirty within one round: a first one holds the goroutine in BeginSync meanwhile.
func markTogether(c *Committer, all []*fakeSource) {
	gate := &gateSource{entered: make(chan struct{}), open: make(chan struct{})}
	c.Dirty(gate)
	<-gate.entered
	for _, s := range all {
		s.write(c)
	}
	close(gate.open)
}

// gateSource never has anything to sync, but takes its time to say so.
type gateSource struct{ entered, open chan struct{} }

func (g *gateSource) BeginSync() (Target, bool) {
	close(g.entered)
	<-g.open
	return Target{}, false
}

func (g *gateSource) EndSync(Target, error) { panic("nothing was begun") }

func TestLaterWritesShareTheNextSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&fakeFS{}, "d", nil)
		defer c.Close()
		s := &fakeSource{files: []Syncer{&fakeFile{took: time.Second}}}
		s.write(c)
		synctest.Wait() // the sync of the first write runs
		for range 100 {
			s.write(c)
		}
		time.Sleep(time.Second + time.Millisecond)
		if _, durable, ends, _ := s.state(); durable != 1 || ends != 1 {
			t.Fatalf("after the first sync: durable %d, %d ends; want 1, 1", durable, ends)
		}
		time.Sleep(time.Second)
		if _, durable, ends, _ := s.state(); durable != 101 || ends != 2 {
			t.Fatalf("after the second sync: durable %d, %d ends; want 101, 2", durable, ends)
		}
	})
}

func TestSyncAllErrorReachesEverySourceAndEndsSyncfs(t *testing.T) {
	fsys := &fakeFS{err: syscall.EIO}
	c := New(fsys, "d", nil)
	defer c.Close()
	all := sources(5, func(int) *fakeFile { return &fakeFile{} })
	markTogether(c, all)
	flush(t, c)
	for i, s := range all {
		if _, durable, _, errs := s.state(); durable != 0 || len(errs) != 1 || !errors.Is(errs[0], syscall.EIO) {
			t.Errorf("source %d: durable %d, errors %v", i, durable, errs)
		}
	}
	fsys.err = nil
	markTogether(c, all)
	flush(t, c)
	if st := c.Stats(); fsys.calls != 1 || st.File.Count != 5 || st.All.Errors != 1 {
		t.Errorf("syncfs was trusted again: %d calls, %+v", fsys.calls, st)
	}
}

func TestFileErrorReachesItsSourceOnly(t *testing.T) {
	c := New(&fakeFS{err: vfs.ErrUnsupported}, "d", nil)
	defer c.Close()
	all := sources(40, func(i int) *fakeFile {
		f := &fakeFile{}
		if i == 7 {
			f.err = syscall.EIO
		}
		return f
	})
	never := &fakeFile{}
	all[7].files = append(all[7].files, never)
	markTogether(c, all)
	flush(t, c)
	for i, s := range all {
		_, durable, ends, errs := s.state()
		if bad := i == 7; bad != (len(errs) == 1) || bad != (durable == 0) || ends != 1 {
			t.Errorf("source %d: durable %d, %d ends, errors %v", i, durable, ends, errs)
		}
	}
	if never.syncs.Load() != 0 {
		t.Error("a file after the failed one was synced")
	}
}

func TestParallelFileSyncsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&fakeFS{err: vfs.ErrUnsupported}, "d", nil)
		defer c.Close()
		var running, most atomic.Int32
		all := sources(100, func(int) *fakeFile { return &fakeFile{took: time.Millisecond, running: &running, most: &most} })
		markTogether(c, all)
		flush(t, c)
		if most.Load() != maxParallel {
			t.Errorf("%d syncs at once, want %d", most.Load(), maxParallel)
		}
	})
}

func TestForeignWriterMakesSyncfsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := &fakeFS{took: 100 * time.Millisecond}
		c := New(fsys, "d", nil)
		defer c.Close()
		all := sources(3, func(int) *fakeFile { return &fakeFile{took: 150 * time.Microsecond} })
		rounds := func(n int) {
			for range n {
				markTogether(c, all)
				flush(t, c)
			}
		}
		rounds(10)
		if st := c.Stats(); fsys.calls != 1 || st.Avoided != 1 || st.File.Count != 27 {
			t.Fatalf("%d syncfs calls, %+v; want 1, then only files", fsys.calls, st)
		}
		many := sources(4000, func(int) *fakeFile { return &fakeFile{took: 150 * time.Microsecond} })
		markTogether(c, many)
		flush(t, c)
		if fsys.calls != 2 {
			t.Fatalf("%d syncfs calls; want 2: so many files are slower than the slow syncfs", fsys.calls)
		}
		time.Sleep(slowPause * 100 * time.Millisecond)
		fsys.took = time.Millisecond
		rounds(10)
		if fsys.calls != 12 {
			t.Fatalf("%d syncfs calls after the pause, want 12", fsys.calls)
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&fakeFS{}, "d", nil)
		flush(t, c) // nothing dirty
		f := &fakeFile{took: time.Hour}
		s := &fakeSource{files: []Syncer{f}}
		s.write(c)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("flush under a slow sync: %v", err)
		}
		s.write(c) // the running sync does not cover this one
		flush(t, c)
		if written, durable, _, _ := s.state(); durable != written {
			t.Fatalf("durable %d of %d after Flush", durable, written)
		}
		s.write(c)
		c.Close()
		c.Close()
		if written, durable, _, _ := s.state(); durable != written {
			t.Fatalf("durable %d of %d after Close", durable, written)
		}
		s.write(c)
		flush(t, c)
		if _, _, ends, _ := s.state(); ends != 3 {
			t.Fatalf("%d syncs, want 3: none after Close", ends)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	c := New(&fakeFS{}, "d", nil)
	all := sources(8, func(int) *fakeFile { return &fakeFile{} })
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			for i := range 2000 {
				s.write(c)
				if i%100 == 0 {
					if err := c.Flush(context.Background()); err != nil {
						t.Error(err)
					}
					if written, durable, _, _ := s.state(); durable != written {
						t.Errorf("durable %d of %d", durable, written)
					}
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	for i, s := range all {
		if written, durable, _, _ := s.state(); durable != written {
			t.Errorf("source %d: durable %d of %d", i, durable, written)
		}
	}
}

func TestDirtyDoesNotAllocate(t *testing.T) {
	c := New(&fakeFS{}, "d", nil)
	defer c.Close()
	s := &fakeSource{files: []Syncer{&fakeFile{}}}
	gate := &gateSource{entered: make(chan struct{}), open: make(chan struct{})}
	c.Dirty(gate)
	<-gate.entered
	n := testing.AllocsPerRun(1000, func() { c.Dirty(s) })
	close(gate.open)
	if n != 0 {
		t.Errorf("Dirty allocates %v times", n)
	}
}
