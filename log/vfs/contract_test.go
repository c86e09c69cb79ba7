package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// fileSystems are the implementations that must behave alike.
func fileSystems(t *testing.T) map[string]func() (vfs.FS, string) {
	return map[string]func() (vfs.FS, string){
		"os":      func() (vfs.FS, string) { return vfs.OS(), t.TempDir() },
		"crashfs": func() (vfs.FS, string) { return crashfs.New(), "/data" },
		"faultfs": func() (vfs.FS, string) { return faultfs.New(crashfs.New()), "/data" },
	}
}

func TestContract(t *testing.T) {
	cases := map[string]func(t *testing.T, fsys vfs.FS, dir string){
		"create is exclusive": createExclusive,
		"read and write":      readWrite,
		"truncate":            truncate,
		"rename replaces":     renameReplaces,
		"removed stays open":  removedStaysOpen,
		"directories":         directories,
		"missing names":       missingNames,
		"lock":                lock,
		"closed file":         closedFile,
		"read file limit":     readFileLimit,
	}
	for name, make := range fileSystems(t) {
		for what, test := range cases {
			t.Run(name+"/"+what, func(t *testing.T) {
				fsys, dir := make()
				dir = filepath.Join(dir, "sub")
				must(t, fsys.MkdirAll(dir))
				test(t, fsys, dir)
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	n, err := f.WriteAt([]byte(content), 0)
	must(t, err)
	if n != len(content) {
		t.Fatalf("wrote %d of %d bytes", n, len(content))
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func wantContent(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	got, err := vfs.ReadFile(fsys, name, 1<<20)
	must(t, err)
	if string(got) != want {
		t.Fatalf("%s holds %q, want %q", name, got, want)
	}
}

func wantIs(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func createExclusive(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	write(t, fsys, name, "x")
	_, err := fsys.Create(name)
	wantIs(t, err, fs.ErrExist)
}

func readWrite(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := write(t, fsys, name, "hello")
	_, err := f.WriteAt([]byte("XY"), 8)
	must(t, err)
	wantContent(t, fsys, name, "hello\x00\x00\x00XY")
	size, err := f.Size()
	must(t, err)
	if size != 10 {
		t.Fatalf("size is %d, want 10", size)
	}
	b := make([]byte, 4)
	n, err := f.ReadAt(b, 8)
	if n != 2 || err != io.EOF {
		t.Fatalf("read at the end gave %d, %v; want 2, EOF", n, err)
	}
	if n, err = f.ReadAt(b, 100); n != 0 || err != io.EOF {
		t.Fatalf("read past the end gave %d, %v; want 0, EOF", n, err)
	}
	must(t, f.Sync())
	must(t, fsys.SyncDir(dir))
	ro, err := fsys.OpenRead(name)
	must(t, err)
	defer ro.Close()
	if _, err = ro.WriteAt(b, 0); err == nil {
		t.Fatal("a file opened for reading took a write")
	}
}

func truncate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := write(t, fsys, name, "hello")
	must(t, f.Truncate(2))
	wantContent(t, fsys, name, "he")
	must(t, f.Truncate(4))
	wantContent(t, fsys, name, "he\x00\x00")
	if err := f.Preallocate(1 << 16); err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		t.Fatal(err)
	}
	wantContent(t, fsys, name, "he\x00\x00")
}

func renameReplaces(t *testing.T, fsys vfs.FS, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, fsys, a, "new")
	write(t, fsys, b, "old")
	must(t, fsys.Rename(a, b))
	wantContent(t, fsys, b, "new")
	_, err := fsys.Stat(a)
	wantIs(t, err, fs.ErrNotExist)
	d, e := filepath.Join(dir, "d"), filepath.Join(dir, "e")
	must(t, fsys.MkdirAll(d))
	write(t, fsys, filepath.Join(d, "x"), "in")
	must(t, fsys.Rename(d, e))
	wantContent(t, fsys, filepath.Join(e, "x"), "in")
}

func removedStaysOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := write(t, fsys, name, "hello")
	must(t, fsys.Remove(name))
	b := make([]byte, 5)
	_, err := f.ReadAt(b, 0)
	must(t, err)
	if string(b) != "hello" {
		t.Fatalf("the removed file reads %q", b)
	}
	must(t, f.Sync())
	write(t, fsys, name, "other")
	wantContent(t, fsys, name, "other")
}

func directories(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(filepath.Join(dir, "b", "c")))
	must(t, fsys.MkdirAll(filepath.Join(dir, "b", "c")))
	write(t, fsys, filepath.Join(dir, "a"), "12")
	list, err := fsys.List(dir)
	must(t, err)
	if len(list) != 2 || list[0].Name() != "a" || list[0].IsDir() || list[1].Name() != "b" || !list[1].IsDir() {
		t.Fatalf("list is %v", list)
	}
	info, err := list[0].Info()
	must(t, err)
	if info.Size() != 2 {
		t.Fatalf("size is %d, want 2", info.Size())
	}
	if err := fsys.Remove(filepath.Join(dir, "b")); err == nil {
		t.Fatal("a directory with entries was removed")
	}
	must(t, fsys.RemoveAll(filepath.Join(dir, "b")))
	must(t, fsys.RemoveAll(filepath.Join(dir, "b")))
	_, err = fsys.Stat(filepath.Join(dir, "b", "c"))
	wantIs(t, err, fs.ErrNotExist)
	if err := fsys.MkdirAll(filepath.Join(dir, "a", "x")); err == nil {
		t.Fatal("a directory was made below a file")
	}
	if err := fsys.SyncAll(dir); err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		t.Fatal(err)
	}
	u, err := fsys.Usage(dir)
	must(t, err)
	if u.Total <= 0 || u.Free < 0 || u.Free > u.Total {
		t.Fatalf("usage is %+v", u)
	}
}

func missingNames(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "none")
	_, err := fsys.Open(name)
	wantIs(t, err, fs.ErrNotExist)
	_, err = fsys.OpenRead(name)
	wantIs(t, err, fs.ErrNotExist)
	_, err = fsys.Create(filepath.Join(name, "x"))
	wantIs(t, err, fs.ErrNotExist)
	_, err = fsys.List(name)
	wantIs(t, err, fs.ErrNotExist)
	wantIs(t, fsys.Remove(name), fs.ErrNotExist)
	wantIs(t, fsys.Rename(name, name+"2"), fs.ErrNotExist)
	wantIs(t, fsys.SyncDir(name), fs.ErrNotExist)
}

func lock(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, ".lock")
	l, err := fsys.Lock(name)
	must(t, err)
	_, err = fsys.Lock(name)
	wantIs(t, err, vfs.ErrLocked)
	must(t, l.Close())
	l, err = fsys.Lock(name)
	must(t, err)
	must(t, l.Close())
}

func closedFile(t *testing.T, fsys vfs.FS, dir string) {
	f := write(t, fsys, filepath.Join(dir, "a"), "x")
	must(t, f.Close())
	_, err := f.WriteAt([]byte("y"), 0)
	wantIs(t, err, fs.ErrClosed)
	_, err = f.ReadAt(make([]byte, 1), 0)
	wantIs(t, err, fs.ErrClosed)
	wantIs(t, f.Close(), fs.ErrClosed)
	if f.Sync() == nil {
		t.Fatal("a closed file was synced")
	}
}

func readFileLimit(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	write(t, fsys, name, "12345")
	if _, err := vfs.ReadFile(fsys, name, 4); err == nil {
		t.Fatal("a file above the limit was read")
	}
	wantContent(t, fsys, name, "12345")
}
