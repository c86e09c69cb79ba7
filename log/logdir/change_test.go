package logdir

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

func TestCreateRefuses(t *testing.T) {
	fsys := crashfs.New()
	d := mustOpen(t, fakeOptions(fsys))
	mustCreate(t, d, spec("a", 0))
	writeFile(t, fsys, filepath.Join(testDir, "b-0", "x"), "")
	cases := []struct {
		name string
		spec Spec
		want error
	}{
		{"there", spec("a", 0), ErrExists},
		{"directory there", spec("b", 0), ErrExists},
		{"negative", spec("a", -1), nil},
		{"no name", spec("", 0), nil},
		{"a path", spec("../x", 0), nil},
		{"a space", spec("a b", 0), nil},
		{"too long", spec(strings.Repeat("x", 254), 0), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.Create(spec("z", 0), c.spec)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error is %v, want %v", err, c.want)
			}
			if got := names(d); got != "a-0" {
				t.Errorf("partitions are %q", got)
			}
			if _, err := fsys.Stat(filepath.Join(testDir, "z-0")); err == nil {
				t.Error("the other partition was left behind")
			}
		})
	}
	mustCreate(t, d, spec("z", 0))
	_, err := d.Create(spec("y", 0), spec("y", 0))
	wantIs(t, err, ErrExists)
	mustCreate(t, d, spec("y", 0))
	must(t, d.Close())
	_, err = d.Create(spec("x", 0))
	wantIs(t, err, ErrClosed)
	wantIs(t, d.Delete(TopicPartition{"a", 0}), ErrClosed)
	wantIs(t, d.Checkpoint(), ErrClosed)
}

func TestCreateFailsAsAWhole(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.MkdirAll, faultfs.Create, faultfs.Write, faultfs.Sync, faultfs.SyncDir, faultfs.SyncAll} {
		t.Run(string(kind), func(t *testing.T) {
			disk := crashfs.New()
			f := faultfs.New(disk)
			o := serial(f)
			d := mustOpen(t, o)
			if kind == faultfs.Sync || kind == faultfs.SyncDir {
				f.Add(faultfs.Rule{Kind: faultfs.SyncAll, Err: vfs.ErrUnsupported})
			}
			remove := f.Add(faultfs.Rule{Kind: kind, Path: testDir, After: 1, Times: 1, Err: syscall.ENOSPC})
			if kind == faultfs.SyncAll {
				remove()
				remove = f.Add(faultfs.Rule{Kind: kind, Err: syscall.ENOSPC})
			}
			_, err := d.Create(spec("a", 0), spec("a", 1), spec("a", 2))
			wantIs(t, err, syscall.ENOSPC)
			remove()
			list, err := f.List(testDir)
			must(t, err)
			for _, e := range list {
				if e.IsDir() {
					t.Errorf("%s was left behind", e.Name())
				}
			}
			mustCreate(t, d, spec("a", 0), spec("a", 1), spec("a", 2))
			must(t, d.Close())
			if open := disk.OpenFiles(); len(open) != 0 {
				t.Errorf("left open: %v", open)
			}
		})
	}
}

func TestThousandPartitionsAreMadeWithFewSyncs(t *testing.T) {
	f := faultfs.New(crashfs.New())
	d := mustOpen(t, fakeOptions(f))
	var specs []Spec
	for i := range int32(1000) {
		specs = append(specs, spec("a", i))
	}
	f.Record()
	mustCreate(t, d, specs...)
	syncs := make(map[faultfs.Kind]int)
	for _, o := range f.Transcript() {
		syncs[o.Kind]++
	}
	// The first to arrive is synced alone while the others gather.
	if n := syncs[faultfs.Sync] + syncs[faultfs.SyncDir] + syncs[faultfs.SyncAll]; n > 50 {
		t.Errorf("%d syncs: %v", n, syncs)
	}
	must(t, d.Close())
	f.Record()
	d = mustOpen(t, fakeOptions(f))
	for _, o := range f.Transcript() {
		if o.Kind.Changes() && o.Kind != faultfs.Lock && o.Kind != faultfs.Remove && o.Kind != faultfs.SyncDir {
			t.Errorf("the start changed the disk: %s", o)
		}
	}
	if len(d.Partitions()) != 1000 {
		t.Errorf("%d partitions", len(d.Partitions()))
	}
	must(t, d.Close())
}

func TestStaleCheckpointEntries(t *testing.T) {
	disk := crashfs.New()
	d := mustOpen(t, fakeOptions(disk))
	mustCreate(t, d, spec("a", 0))
	l := fake(t, d, "a", 0)
	for range 10 {
		l.append(t)
	}
	l.mu.Lock()
	l.start = 5
	l.mu.Unlock()
	must(t, d.ownCommit.Flush(t.Context()))
	must(t, d.Checkpoint())
	must(t, d.Delete(TopicPartition{"a", 0}))
	mustCreate(t, d, spec("a", 0))
	d.Abandon()
	d = mustOpen(t, fakeOptions(disk))
	if o := fake(t, d, "a", 0).opts; o.RecoveryPoint != 0 || o.LogStart != -1 {
		t.Errorf("the new partition starts with recovery point %d, log start %d", o.RecoveryPoint, o.LogStart)
	}
	must(t, d.Close())
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := crashfs.New()
		o := fakeOptions(disk)
		d := mustOpen(t, o)
		mustCreate(t, d, spec("a", 0), spec("a", 1), spec("b", 0))
		a, b := fake(t, d, "a", 0), fake(t, d, "b", 0)
		b.renameErr = syscall.EACCES
		err := d.Delete(TopicPartition{"a", 0}, TopicPartition{"b", 0}, TopicPartition{"none", 0})
		wantIs(t, err, syscall.EACCES)
		wantIs(t, err, ErrNotFound)
		if got := names(d); got != "a-1 b-0" || !a.abandoned || b.closed {
			t.Errorf("partitions are %q, a given up %v, b closed %v", got, a.abandoned, b.closed)
		}
		if _, err := disk.Stat(a.dir); err != nil {
			t.Errorf("the files went before their time: %v", err)
		}
		mustCreate(t, d, spec("a", 0)) // the name is free at once
		time.Sleep(DefaultFileDeleteDelay - time.Second)
		if _, err := disk.Stat(a.dir); err != nil {
			t.Errorf("the files went before their time: %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := disk.Stat(a.dir); err == nil {
			t.Error("the files are still there")
		}
		must(t, d.Delete(TopicPartition{"a", 1}))
		must(t, d.Close()) // with a removal waiting
	})
}
