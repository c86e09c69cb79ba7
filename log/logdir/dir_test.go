package logdir

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gregor/log"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

func TestDirectoryInUse(t *testing.T) {
	fsys := crashfs.New()
	d := mustOpen(t, fakeOptions(fsys))
	_, err := Open(fakeOptions(fsys))
	wantIs(t, err, ErrInUse)
	if !strings.Contains(err.Error(), testDir) {
		t.Errorf("%q does not name the directory", err)
	}
	must(t, d.Close())
	d = mustOpen(t, fakeOptions(fsys))
	must(t, d.Close())
	must(t, d.Close())
	if open := fsys.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestOpenErrors(t *testing.T) {
	cases := []struct {
		name  string
		setup func(t *testing.T, f *faultfs.FS)
		want  error
		says  string
	}{
		{"a file in its place", func(t *testing.T, f *faultfs.FS) { writeFile(t, f, testDir, "x") }, nil, testDir + " is a file"},
		{"not allowed to make it", func(t *testing.T, f *faultfs.FS) {
			f.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Err: syscall.EACCES})
		}, syscall.EACCES, testDir},
		{"read-only", func(t *testing.T, f *faultfs.FS) {
			f.Add(faultfs.Rule{Kind: faultfs.Lock, Err: syscall.EROFS})
		}, syscall.EROFS, "writable"},
		{"identity is garbage", func(t *testing.T, f *faultfs.FS) {
			writeFile(t, f, testDir+"/"+metaFile, "\x00\x00")
		}, nil, metaFile},
		{"marker cannot be removed", func(t *testing.T, f *faultfs.FS) {
			writeFile(t, f, testDir+"/"+markerFile, "{}")
			f.Add(faultfs.Rule{Kind: faultfs.Remove, Path: markerFile, Err: syscall.EACCES})
		}, syscall.EACCES, "marker"},
		{"disk fails", func(t *testing.T, f *faultfs.FS) {
			f.Add(faultfs.Rule{Kind: faultfs.SyncDir, Path: testDir, Err: syscall.EIO})
		}, syscall.EIO, testDir},
		{"checkpoint cannot be read", func(t *testing.T, f *faultfs.FS) {
			writeFile(t, f, testDir+"/"+checkpointNames()[logStarts], "0\n0\n")
			f.Add(faultfs.Rule{Kind: faultfs.OpenRead, Path: "log-start", Err: syscall.EACCES})
		}, syscall.EACCES, checkpointNames()[logStarts]},
		{"too many open files", func(t *testing.T, f *faultfs.FS) {
			writeFile(t, f, testDir+"/a-0/"+fakeFile, "")
			writeFile(t, f, testDir+"/a-1/"+fakeFile, "")
			f.Add(faultfs.Rule{Kind: faultfs.Open, Path: "a-1/", Err: syscall.EMFILE})
		}, syscall.EMFILE, "ulimit"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			disk := crashfs.New()
			f := faultfs.New(disk)
			tc.setup(t, f)
			_, err := Open(fakeOptions(f))
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error is %v, want %v with %q", err, tc.want, tc.says)
			}
			if open := disk.OpenFiles(); len(open) != 0 {
				t.Errorf("left open: %v", open)
			}
		})
	}
}

func TestWhatIsInTheDirectory(t *testing.T) {
	fsys := crashfs.New()
	id := strings.Repeat("a1", 16)
	for _, name := range []string{"a-0", "a-b-1", "a-00", "lost+found", "a-0." + id + "-delete", "c-1." + id + "-future", "c-2." + id + "-stray"} {
		writeFile(t, fsys, filepath.Join(testDir, name, fakeFile), "12345678")
	}
	writeFile(t, fsys, filepath.Join(testDir, "file-7"), "")
	writeFile(t, fsys, filepath.Join(testDir, "a-0", topicIDFile), string(formatTopicID([16]byte{9})))
	writeFile(t, fsys, filepath.Join(testDir, "a-b-1", topicIDFile), "\x00\x00")
	writeFile(t, fsys, filepath.Join(testDir, checkpointNames()[recoveryPoints]), "0\n2\na 0 1\ngone 0 7\n")
	writeFile(t, fsys, filepath.Join(testDir, checkpointNames()[highWatermarks]), "0\n1\na 0 1\n")
	writeFile(t, fsys, filepath.Join(testDir, checkpointNames()[logStarts]), "0\n1\na 0")
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		o := fakeOptions(fsys)
		o.Logger = slog.New(slog.NewTextHandler(&out, nil))
		o.Config = func(topic string) log.Config { return log.Config{SegmentBytes: int64(len(topic))} }
		d := mustOpen(t, o)
		synctest.Wait() // the deleted directory is removed
		if got := names(d); got != "a-0 a-b-1" {
			t.Errorf("partitions are %q", got)
		}
		a, _ := d.Get(TopicPartition{"a", 0})
		if a.TopicID() != [16]byte{9} || a.CheckpointedHighWatermark() != 1 || a.Log() != nil {
			t.Errorf("a-0 is %+v", a)
		}
		if l := fake(t, d, "a", 0); l.opts.RecoveryPoint != 1 || l.opts.LogStart != -1 || l.opts.Config.SegmentBytes != 1 || l.opts.Clean {
			t.Errorf("a-0 was opened with %+v", l.opts)
		}
		b, _ := d.Get(TopicPartition{"a-b", 1})
		if b.TopicID() != [16]byte{} {
			t.Errorf("a-b-1 has the id %v", b.TopicID())
		}
		must(t, d.SetTopicID(b, [16]byte{8}))
		if b, _ = d.Get(b.ID()); b.TopicID() != [16]byte{8} {
			t.Errorf("a-b-1 has the id %v", b.TopicID())
		}
		must(t, d.Close())
	})
	for _, name := range []string{"a-00", "lost+found", "c-1." + id + "-future", "c-2." + id + "-stray", "file-7"} {
		if _, err := fsys.Stat(filepath.Join(testDir, name)); err != nil {
			t.Errorf("%s is gone", name)
		}
		if strings.Contains(out.String(), name) == (name == "file-7") {
			t.Errorf("%s in the report: want it unless it is a file\n%s", name, out.String())
		}
	}
	if _, err := fsys.Stat(filepath.Join(testDir, "a-0."+id+"-delete")); err == nil {
		t.Error("the deleted directory is still there")
	}
	if got := readFile(t, fsys, filepath.Join(testDir, checkpointNames()[recoveryPoints])); got != "0\n2\na 0 1\na-b 1 1\n" {
		t.Errorf("recovery points are %q", got)
	}
}

func TestOfflinePartition(t *testing.T) {
	disk := crashfs.New()
	f := faultfs.New(disk)
	d := mustOpen(t, fakeOptions(f))
	mustCreate(t, d, spec("a", 0), spec("a", 1))
	fake(t, d, "a", 1).append(t)
	must(t, d.Close())
	remove := f.Add(faultfs.Rule{Kind: faultfs.Open, Path: "a-1/", Err: syscall.EIO})
	d = mustOpen(t, fakeOptions(f))
	p, ok := d.Get(TopicPartition{"a", 1})
	if !ok || p.Log() != nil || !errors.Is(p.Err(), syscall.EIO) {
		t.Fatalf("the damaged partition is %+v", p)
	}
	fake(t, d, "a", 0).append(t)
	must(t, d.Close())
	remove()
	d = mustOpen(t, fakeOptions(f))
	if d.WasClean() {
		t.Error("a partition that was never checked counts as closed well")
	}
	if l := fake(t, d, "a", 1); l.opts.RecoveryPoint != 1 {
		t.Errorf("its recovery point is %d, want 1 as before", l.opts.RecoveryPoint)
	}
	f.Add(faultfs.Rule{Kind: faultfs.Open, Path: "a-1/", Err: syscall.EIO})
	must(t, d.Close())
	d = mustOpen(t, fakeOptions(f))
	must(t, d.Delete(TopicPartition{"a", 1})) // without a log, too
	if got := names(d); got != "a-0" {
		t.Errorf("partitions are %q", got)
	}
	must(t, d.Close())
}

func TestCloseErrorLeavesNoMarker(t *testing.T) {
	fsys := crashfs.New()
	d := mustOpen(t, fakeOptions(fsys))
	mustCreate(t, d, spec("a", 0), spec("b", 0))
	fake(t, d, "a", 0).closeErr = syscall.EIO
	b := fake(t, d, "b", 0)
	wantIs(t, d.Close(), syscall.EIO)
	if !b.closed || b.abandoned {
		t.Error("the other log was not closed")
	}
	d = mustOpen(t, fakeOptions(fsys))
	if d.WasClean() {
		t.Error("the next start believes in a clean stop")
	}
	must(t, d.Close())
	if open := fsys.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// TestCreateFailsAsAWhole fails each call in turn.
// TestStaleCheckpointEntries: a partition made under the name of an earlier one does not get its offsets, even after a crash.
func TestBackgroundCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faultfs.New(crashfs.New())
		o := fakeOptions(f)
		o.CheckpointInterval = 10 * time.Second
		d := mustOpen(t, o)
		mustCreate(t, d, spec("a", 0))
		path := filepath.Join(testDir, checkpointNames()[recoveryPoints])
		l := fake(t, d, "a", 0)
		for range 3 {
			l.append(t)
		}
		time.Sleep(9 * time.Second)
		if _, err := f.Stat(path); err == nil {
			t.Error("a checkpoint before its time")
		}
		remove := f.Add(faultfs.Rule{Kind: faultfs.Rename, Err: syscall.EIO})
		time.Sleep(2 * time.Second)
		remove()
		time.Sleep(10 * time.Second)
		if got := readFile(t, f, path); got != "0\n1\na 0 3\n" {
			t.Errorf("the checkpoint is %q", got)
		}
		f.Record()
		time.Sleep(time.Hour)
		if ops := f.Transcript(); len(ops) != 0 {
			t.Errorf("idle, but %v", ops)
		}
		l.mu.Lock()
		l.start = 2
		l.mu.Unlock()
		d.Touch()
		d.Touch()
		time.Sleep(11 * time.Second)
		if got := readFile(t, f, filepath.Join(testDir, checkpointNames()[logStarts])); got != "0\n1\na 0 2\n" {
			t.Errorf("the checkpoint is %q", got)
		}
		var renamed int
		for _, op := range f.Transcript() {
			if op.Kind == faultfs.Rename {
				renamed++
			}
		}
		if renamed != 1 {
			t.Errorf("%d files were written, one changed", renamed)
		}
		must(t, d.Close())
	})
}

func TestMarkerContent(t *testing.T) {
	fsys := crashfs.New()
	o := fakeOptions(fsys)
	o.BrokerEpoch = 12
	d := mustOpen(t, o)
	must(t, d.Close())
	if got := readFile(t, fsys, filepath.Join(testDir, markerFile)); got != `{"version":0,"brokerEpoch":12}` {
		t.Errorf("the marker is %q", got)
	}
}

// TestTranscriptOfAStop is the order in which a clean stop must reach the disk.
func TestTranscriptOfAStop(t *testing.T) {
	f := faultfs.New(crashfs.New())
	d := mustOpen(t, serial(f))
	mustCreate(t, d, spec("a", 0))
	fake(t, d, "a", 0).append(t)
	must(t, d.ownCommit.Flush(t.Context()))
	f.Record()
	must(t, d.Close())
	var got strings.Builder
	for _, o := range f.Transcript() {
		if o.Kind.Changes() {
			fmt.Fprintln(&got, o)
		}
	}
	want := `sync /data/a-0/00000000000000000000.log
syncall /data
create /data/recovery-point-offset-checkpoint.tmp
write /data/recovery-point-offset-checkpoint.tmp 0+10
sync /data/recovery-point-offset-checkpoint.tmp
rename /data/recovery-point-offset-checkpoint.tmp /data/recovery-point-offset-checkpoint
create /data/replication-offset-checkpoint.tmp
write /data/replication-offset-checkpoint.tmp 0+10
sync /data/replication-offset-checkpoint.tmp
rename /data/replication-offset-checkpoint.tmp /data/replication-offset-checkpoint
syncdir /data
create /data/.kafka_cleanshutdown
write /data/.kafka_cleanshutdown 0+29
sync /data/.kafka_cleanshutdown
syncdir /data
`
	if got.String() != want {
		t.Errorf("got:\n%swant:\n%s", got.String(), want)
	}
}

func TestLockedComesBeforeTheLogs(t *testing.T) {
	fsys := crashfs.New()
	d := mustOpen(t, fakeOptions(fsys))
	mustCreate(t, d, spec("a", 0))
	must(t, d.Close())
	refuse := errors.New("no")
	opened := false
	o := fakeOptions(fsys)
	o.open = func(lo log.Options) (store, error) {
		opened = true
		return openFake(lo)
	}
	o.Locked = func(d *Dir) error {
		if d.ClusterID() != "abc" || d.BrokerID() != 1 || d.Path() != testDir || opened {
			t.Errorf("cluster %s, broker %d, path %s, logs opened %v", d.ClusterID(), d.BrokerID(), d.Path(), opened)
		}
		_, err := Open(fakeOptions(fsys))
		wantIs(t, err, ErrInUse)
		return refuse
	}
	_, err := Open(o)
	wantIs(t, err, refuse)
	if opened || len(fsys.OpenFiles()) != 0 {
		t.Errorf("after the refusal: logs opened %v, files open %v", opened, fsys.OpenFiles())
	}
	d = mustOpen(t, fakeOptions(fsys))
	if !d.WasClean() {
		t.Error("the refused start cost the clean stop")
	}
	must(t, d.Close())
}
