package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// setOptions are for directories /d1, /d2, … with fake logs.
func setOptions(fsys vfs.FS, n int) SetOptions {
	o := SetOptions{Options: fakeOptions(fsys)}
	for i := range n {
		o.Dirs = append(o.Dirs, fmt.Sprint("/d", i+1))
	}
	return o
}

func mustOpenSet(t *testing.T, o SetOptions) *Set {
	t.Helper()
	s, err := OpenSet(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abandon)
	return s
}

// spread shows the partitions of each directory, "-" for one that is offline.
func spread(s *Set) string {
	var parts []string
	for _, m := range s.members {
		if m.dir == nil {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, names(m.dir))
	}
	return strings.Join(parts, "; ")
}

func TestSetPlacesEvenly(t *testing.T) {
	fsys := crashfs.New()
	s := mustOpenSet(t, setOptions(fsys, 3))
	create := func(specs ...Spec) {
		t.Helper()
		made, err := s.Create(specs...)
		must(t, err)
		for i, p := range made {
			if p.ID() != specs[i].TopicPartition || p.TopicID() != specs[i].TopicID {
				t.Fatalf("number %d is %s", i, p.ID())
			}
		}
	}
	create(spec("a", 0), spec("a", 1), spec("a", 2), spec("a", 3))
	if got := spread(s); got != "a-0 a-3; a-1; a-2" {
		t.Fatal(got)
	}
	must(t, s.Delete(TopicPartition{"a", 0}, TopicPartition{"a", 3}, TopicPartition{"a", 2}))
	create(spec("b", 0))
	create(spec("b", 1), spec("b", 2))
	if got := spread(s); got != "b-0 b-2; a-1; b-1" {
		t.Fatal(got)
	}
	if _, err := s.Create(spec("c", 0), spec("b", 1)); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	wantIs(t, s.Delete(TopicPartition{"x", 0}, TopicPartition{"b", 0}), ErrNotFound)
	if got := spread(s); got != "b-2; a-1; b-1" || len(s.Partitions()) != 3 {
		t.Fatal(got)
	}
	must(t, s.Close())
	s = mustOpenSet(t, setOptions(fsys, 3))
	if !s.WasClean() || spread(s) != "b-2; a-1; b-1" {
		t.Fatal(s.WasClean(), spread(s))
	}
	// One more is no unclean stop.
	must(t, s.Close())
	s = mustOpenSet(t, setOptions(fsys, 4))
	if !s.WasClean() || s.Offline() != nil {
		t.Fatal(s.WasClean(), s.Offline())
	}
	s.Abandon()
	if s = mustOpenSet(t, setOptions(fsys, 4)); s.WasClean() {
		t.Fatal("a kill is not seen")
	}
	must(t, s.Close())
	if open := fsys.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// TestSetGoesOnWithoutADirectory: one that cannot be used takes only its partitions away.
func TestSetGoesOnWithoutADirectory(t *testing.T) {
	for name, rule := range map[string]faultfs.Rule{
		"stat":     {Kind: faultfs.Stat, Path: "/d2", Err: syscall.EIO},
		"lock":     {Kind: faultfs.Lock, Path: "/d2", Err: syscall.EROFS},
		"identity": {Kind: faultfs.OpenRead, Path: "/d2/" + metaFile, Err: syscall.EIO},
		"list":     {Kind: faultfs.List, Path: "/d2", Err: syscall.EIO},
		"marker":   {Kind: faultfs.Remove, Path: "/d2/" + markerFile, Err: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashfs.New()
			fsys := faultfs.New(disk)
			s := mustOpenSet(t, setOptions(fsys, 3))
			_, err := s.Create(spec("a", 0), spec("a", 1), spec("a", 2))
			must(t, err)
			must(t, s.Close())
			remove := fsys.Add(rule)
			s = mustOpenSet(t, setOptions(fsys, 3))
			if got := spread(s); got != "a-0; -; a-2" || s.WasClean() {
				t.Fatal(got, s.WasClean())
			}
			if err := s.Offline(); err == nil || !strings.Contains(err.Error(), "/d2") {
				t.Fatalf("offline: %v", err)
			}
			if st := s.Status(); st[0].Err != nil || st[1].Err == nil || st[1].Path != "/d2" || len(st[2].Partitions) != 1 {
				t.Fatalf("%+v", st)
			}
			_, err = s.Create(spec("b", 0), spec("b", 1))
			must(t, err)
			must(t, s.Close())
			remove()
			s = mustOpenSet(t, setOptions(fsys, 3))
			if got := spread(s); got != "a-0 b-0; a-1; a-2 b-1" {
				t.Fatal(got)
			}
			must(t, s.Close())
			if open := disk.OpenFiles(); len(open) != 0 {
				t.Errorf("left open: %v", open)
			}
		})
	}
}

// TestSetFatalErrors end the start.
func TestSetFatalErrors(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	s := mustOpenSet(t, setOptions(fsys, 2))
	if _, err := OpenSet(setOptions(fsys, 1)); !errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
	other := setOptions(fsys, 1)
	other.Dirs = []string{"/other", "/d2"}
	if _, err := OpenSet(other); !errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
	must(t, s.Close())
	other.Dirs, other.ClusterID = []string{"/another", "/d2"}, "xyz"
	if _, err := OpenSet(other); !errors.Is(err, ErrIdentity) {
		t.Fatal(err)
	}
	remove := fsys.Add(faultfs.Rule{Kind: faultfs.List, Path: "/d1", Err: syscall.EIO})
	if _, err := OpenSet(setOptions(fsys, 2)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the first fails: %v", err)
	}
	remove()
	failing := setOptions(fsys, 2)
	failing.Locked = func(*Set) error { return errors.New("no") }
	if _, err := OpenSet(failing); err == nil {
		t.Fatal("Locked failed")
	}
	if open := disk.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// TestSetDiskNotMounted: a directory that was in use and comes back empty is not begun anew as long as its partitions are expected.
func TestSetDiskNotMounted(t *testing.T) {
	disk := crashfs.New()
	o := setOptions(disk, 2)
	s := mustOpenSet(t, o)
	_, err := s.Create(spec("a", 0), spec("a", 1))
	must(t, err)
	must(t, s.Close())
	must(t, disk.Rename("/d2", "/elsewhere"))
	o.Expected = func() []TopicPartition { return []TopicPartition{{"a", 0}, {"a", 1}} }
	for range 2 {
		s = mustOpenSet(t, o)
		if err := s.Offline(); spread(s) != "a-0; -" || err == nil || !strings.Contains(err.Error(), "mounted") || !strings.Contains(err.Error(), "a-1") {
			t.Fatal(spread(s), err)
		}
		must(t, s.Close())
	}
	must(t, disk.RemoveAll("/d2"))
	must(t, disk.Rename("/elsewhere", "/d2"))
	s = mustOpenSet(t, o)
	if spread(s) != "a-0; a-1" || s.Offline() != nil {
		t.Fatal(spread(s), s.Offline())
	}
	must(t, s.Close())
	// A third one is new, and nothing is missing.
	o.Dirs = append(o.Dirs, "/d3")
	s = mustOpenSet(t, o)
	if spread(s) != "a-0; a-1; " {
		t.Fatal(spread(s))
	}
	must(t, s.Close())
}

// TestSetCreateFallsBack makes partitions in another directory when one fails, and none when all do.
func TestSetCreateFallsBack(t *testing.T) {
	disk := crashfs.New()
	fsys := faultfs.New(disk)
	s := mustOpenSet(t, setOptions(fsys, 3))
	remove := fsys.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Path: "/d2", Err: syscall.ENOSPC})
	_, err := s.Create(spec("a", 0), spec("a", 1), spec("a", 2))
	must(t, err)
	if got := spread(s); got != "a-0 a-1; ; a-2" && got != "a-0; ; a-1 a-2" {
		t.Fatal(got)
	}
	also := fsys.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Path: "/d1", Err: syscall.EIO})
	third := fsys.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Path: "/d3", After: 1, Err: syscall.EIO})
	before := spread(s)
	if _, err := s.Create(spec("b", 0), spec("b", 1), spec("b", 2)); !errors.Is(err, syscall.EIO) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if got := spread(s); got != before {
		t.Fatal(got)
	}
	remove()
	also()
	third()
	_, err = s.Create(spec("b", 0))
	must(t, err)
	must(t, s.Close())
}

// TestSetTwins leaves one partition in two directories: the newer stays.
func TestSetTwins(t *testing.T) {
	for _, newer := range []string{"/d1", "/d2"} {
		disk := crashfs.New()
		o := setOptions(disk, 2)
		o.open = nil
		s := mustOpenSet(t, o)
		for i, d := range s.live() {
			made, err := d.Create(spec("a", 0))
			must(t, err)
			n := 2
			if o.Dirs[i] == newer {
				n = 3
			}
			for range n {
				appendOne(t, made[0].Log())
			}
		}
		must(t, s.Close())
		s = mustOpenSet(t, o)
		if p, ok := s.Get(TopicPartition{"a", 0}); !ok || p.Log().EndOffset() != 3 || len(s.Partitions()) != 1 {
			t.Fatalf("%s is newer: %s", newer, spread(s))
		}
		must(t, s.Close())
		s = mustOpenSet(t, o)
		if p, ok := s.Get(TopicPartition{"a", 0}); !ok || p.Log().EndOffset() != 3 || len(s.Partitions()) != 1 {
			t.Fatalf("%s is newer, started again: %s", newer, spread(s))
		}
		must(t, s.Close())
	}
}

// device tells crashfs's directories apart.
type device struct{ vfs.FS }

func (d device) Device(dir string) (uint64, error) {
	if dir == "/d3" {
		return 2, nil
	}
	return 1, nil
}

// TestSetCommitters: directories of one device share a committer.
func TestSetCommitters(t *testing.T) {
	s := mustOpenSet(t, setOptions(device{crashfs.New()}, 3))
	seen := map[Committer][]string{}
	for _, d := range s.live() {
		seen[d.committer] = append(seen[d.committer], d.Path())
	}
	got := fmt.Sprint(slices.SortedFunc(maps.Values(seen), slices.Compare[[]string]))
	if got != "[[/d1 /d2] [/d3]]" || len(s.committers) != 2 {
		t.Fatal(got)
	}
	must(t, s.Close())
	if s = mustOpenSet(t, setOptions(crashfs.New(), 3)); len(s.committers) != 3 {
		t.Fatalf("%d committers where nothing is known", len(s.committers))
	}
	must(t, s.Close())
}

// TestSetRandomFaults opens and fills sets on a disk that fails at random: nothing is left open, and what was made is found again.
func TestSetRandomFaults(t *testing.T) {
	for seed := range uint64(200) {
		disk := crashfs.New()
		fsys := faultfs.New(disk)
		rng := rand.New(rand.NewPCG(seed, 1))
		made := map[TopicPartition]bool{}
		for round := range int32(4) {
			remove := fsys.Add(faultfs.Rule{Path: fmt.Sprint("/d", 1+rng.IntN(3)), After: rng.IntN(40), Times: 1 + rng.IntN(5), Err: syscall.EIO})
			s, err := OpenSet(setOptions(fsys, 3))
			if err == nil {
				specs := []Spec{spec("a", 3*round), spec("a", 3*round+1), spec("a", 3*round+2)}
				if _, err := s.Create(specs...); err == nil {
					for _, sp := range specs {
						made[sp.TopicPartition] = true
					}
				}
				_ = s.Close()
			}
			remove()
			if open := disk.OpenFiles(); len(open) != 0 {
				t.Fatalf("seed %d: left open: %v", seed, open)
			}
		}
		s := mustOpenSet(t, setOptions(fsys, 3))
		for tp := range made {
			if _, ok := s.Get(tp); !ok {
				t.Fatalf("seed %d: %s is gone: %s", seed, tp, spread(s))
			}
		}
		must(t, s.Close())
	}
}

// TestSetTwinsThatDiffer: a directory that was not in log.dirs for a while comes back, and its partition was begun anew meanwhile: neither log is deleted.
func TestSetTwinsThatDiffer(t *testing.T) {
	for _, other := range []int{1, 2, 3, 4} {
		disk := crashfs.New()
		o := setOptions(disk, 2)
		o.open = nil
		var out bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&out, nil))
		s := mustOpenSet(t, o)
		for i, d := range s.live() {
			made, err := d.Create(spec("a", 0))
			must(t, err)
			for n := range []int{3, other}[i] {
				appendValue(t, made[0].Log(), fmt.Sprint(o.Dirs[i], n))
			}
		}
		must(t, s.Close())
		want := max(3, int64(other))
		for range 2 {
			s = mustOpenSet(t, o)
			if p, ok := s.Get(TopicPartition{"a", 0}); !ok || p.Log().EndOffset() != want || len(s.Partitions()) != 1 {
				t.Fatalf("%d records in the other: %s", other, spread(s))
			}
			must(t, s.Close())
			if !strings.Contains(out.String(), "left alone") || strings.Contains(out.String(), "is deleted") {
				t.Fatal(out.String())
			}
		}
		for i, n := range []int{3, other} { // both are whole
			d := mustOpenSet(t, SetOptions{Options: o.Options, Dirs: o.Dirs[i : i+1]})
			if p, ok := d.Get(TopicPartition{"a", 0}); !ok || p.Log().EndOffset() != int64(n) {
				t.Fatalf("%s: %s", o.Dirs[i], spread(d))
			}
			must(t, d.Close())
		}
	}
}
