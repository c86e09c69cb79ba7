package logdir

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gregor/log"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// fakeLog is a log that counts: its file holds the end offset, 8 bytes for each record. It stands for a *log.Log where a test is
// about the directory.
type fakeLog struct {
	fsys      vfs.FS
	file      vfs.File
	committer interface{ Dirty(commit.Source) }
	opts      log.Options

	mu        sync.Mutex
	dir       string
	end       int64
	synced    int64
	start     int64
	closed    bool
	abandoned bool
	closeErr  error
	renameErr error
}

const fakeFile = "00000000000000000000.log"

func openFake(o log.Options) (store, error) {
	name := filepath.Join(o.Dir, fakeFile)
	f, err := o.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = o.FS.Create(name)
	}
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &fakeLog{fsys: o.FS, file: f, committer: o.Committer, opts: o, dir: o.Dir, end: size / 8, start: max(o.LogStart, 0)}
	l.synced = l.end
	return l, nil
}

func (l *fakeLog) append(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(l.end)), l.end*8); err != nil {
		t.Fatal(err)
	}
	l.end++
	l.committer.Dirty(l)
}

func (l *fakeLog) BeginSync() (commit.Target, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return commit.Target{Files: []commit.Syncer{l.file}, Offset: l.end}, l.end > l.synced && !l.closed
}

func (l *fakeLog) EndSync(t commit.Target, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.synced = t.Offset
	}
}

func (l *fakeLog) get(field *int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *field
}

func (l *fakeLog) StartOffset() int64   { return l.get(&l.start) }
func (l *fakeLog) CleanBelow() int64    { return 0 }
func (l *fakeLog) HighWatermark() int64 { return l.get(&l.synced) }
func (l *fakeLog) RecoveryPoint() int64 { return l.get(&l.synced) }

func (l *fakeLog) Rename(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renameErr != nil {
		return l.renameErr
	}
	if err := l.fsys.Rename(l.dir, dir); err != nil {
		return err
	}
	l.dir = dir
	return nil
}

func (l *fakeLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("closed twice")
	}
	l.closed = true
	err := l.file.Sync()
	if err == nil {
		l.synced = l.end
	}
	return errors.Join(l.closeErr, err, l.file.Close())
}

func (l *fakeLog) Abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed, l.abandoned = true, true
		_ = l.file.Close()
	}
}

// fake returns the fake log of a partition that must be there.
func fake(t *testing.T, d *Dir, topic string, partition int32) *fakeLog {
	t.Helper()
	p, ok := d.Get(TopicPartition{topic, partition})
	if !ok || p.store == nil {
		t.Fatalf("%s-%d is not there or offline", topic, partition)
	}
	return p.store.(*fakeLog)
}

const testDir = "/data"

func fakeOptions(fsys vfs.FS) Options {
	return Options{FS: fsys, Dir: testDir, BrokerID: 1, ClusterID: "abc", open: openFake}
}

func mustOpen(t *testing.T, o Options) *Dir {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Abandon) // nothing after Close
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func spec(topic string, partition int32) Spec {
	return Spec{TopicPartition: TopicPartition{topic, partition}, TopicID: [16]byte{1, byte(partition)}}
}

func mustCreate(t *testing.T, d *Dir, specs ...Spec) {
	t.Helper()
	_, err := d.Create(specs...)
	must(t, err)
}

func writeFile(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	must(t, fsys.MkdirAll(filepath.Dir(name)))
	must(t, writeNew(fsys, name, []byte(content)))
}

func readFile(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<20)
	must(t, err)
	return string(b)
}

// names returns the partitions of a directory in one string.
func names(d *Dir) string {
	var b strings.Builder
	for _, p := range d.Partitions() {
		b.WriteString(p.ID().String() + " ")
	}
	return strings.TrimSpace(b.String())
}
