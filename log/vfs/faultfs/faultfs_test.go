package faultfs

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, f *FS, name string) vfs.File {
	t.Helper()
	h, err := f.Create(name)
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestRules(t *testing.T) {
	// Each case writes to x.log three times and syncs y.index once; want is which of the four calls fail.
	cases := []struct {
		name string
		rule Rule
		want string
	}{
		{"kind", Rule{Kind: Write, Err: syscall.ENOSPC}, "xxx."},
		{"another kind", Rule{Kind: Truncate, Err: syscall.EIO}, "...."},
		{"any", Rule{Err: syscall.EIO}, "xxxx"},
		{"after", Rule{Kind: Write, After: 1, Err: syscall.EIO}, ".xx."},
		{"once", Rule{Kind: Write, After: 1, Times: 1, Err: syscall.EIO}, ".x.."},
		{"substring", Rule{Path: "x.l", Err: syscall.EIO}, "xxx."},
		{"pattern of the base name", Rule{Path: "*.index", Err: syscall.EACCES}, "...x"},
		{"pattern of the whole name", Rule{Path: "d/?.log", Err: syscall.EIO}, "xxx."},
		{"pattern of another directory", Rule{Path: "e/*", Err: syscall.EIO}, "...."},
		{"function", Rule{Match: func(o Op) bool { return o.Off == 2 }, Err: syscall.EIO}, "..x."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f := New(crashfs.New())
			must(t, f.MkdirAll("d"))
			log, index := create(t, f, "d/x.log"), create(t, f, "d/y.index")
			remove := f.Add(tc.rule)
			var got strings.Builder
			try := func(err error) {
				if err == nil {
					got.WriteByte('.')
					return
				}
				var pathErr *fs.PathError
				if !errors.Is(err, tc.rule.Err) || !errors.As(err, &pathErr) {
					t.Errorf("error is %v", err)
				}
				got.WriteByte('x')
			}
			for i := range 3 {
				_, err := log.WriteAt([]byte{1}, int64(i))
				try(err)
			}
			try(index.Sync())
			if got.String() != tc.want {
				t.Errorf("failed calls %s, want %s", got.String(), tc.want)
			}
			remove()
			must(t, log.Sync())
		})
	}
}

func TestShortWrite(t *testing.T) {
	f := New(crashfs.New())
	h := create(t, f, "a")
	f.Add(Rule{Kind: Write, Err: syscall.ENOSPC, Short: 3})
	n, err := h.WriteAt([]byte("hello"), 0)
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d, %v; want 3, ENOSPC", n, err)
	}
	got, err := vfs.ReadFile(f, "a", 100)
	must(t, err)
	if string(got) != "hel" {
		t.Fatalf("the file holds %q", got)
	}
}

func TestBlock(t *testing.T) {
	f := New(crashfs.New())
	h := create(t, f, "a")
	block, entered, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	f.Add(Rule{Kind: Sync, Block: block, Entered: entered})
	go func() { ended <- h.Sync() }()
	<-entered
	select {
	case <-ended:
		t.Fatal("the sync did not block")
	default:
	}
	_, err := h.WriteAt([]byte("x"), 0) // others go on
	must(t, err)
	close(block)
	must(t, <-ended)
}

func TestTranscriptAndObserver(t *testing.T) {
	disk := crashfs.New()
	f := New(disk)
	must(t, f.MkdirAll("d"))
	f.Record()
	var seen int
	f.Observe(func(o Op) {
		seen++
		if _, err := disk.Stat("d/b"); o.Kind == Rename && err == nil {
			t.Error("the observer saw the rename after it was done")
		}
	})
	h := create(t, f, "d/a")
	_, err := h.WriteAt([]byte("abc"), 5)
	must(t, err)
	must(t, h.Truncate(2))
	must(t, h.Sync())
	must(t, f.Rename("d/a", "d/b"))
	must(t, f.SyncDir("d"))
	f.Add(Rule{Err: syscall.EIO})
	if f.SyncAll("d") == nil {
		t.Fatal("SyncAll did not fail")
	}
	want := "create d/a\nwrite d/a 5+3\ntruncate d/a 2\nsync d/a\nrename d/a d/b\nsyncdir d\nsyncall d"
	ops := f.Transcript()
	lines := make([]string, len(ops))
	for i, o := range ops {
		lines[i] = o.String()
		if !o.Kind.Changes() {
			t.Errorf("%s changes the disk", o)
		}
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("transcript:\n%s\nwant:\n%s", got, want)
	}
	if seen != len(ops) {
		t.Errorf("the observer saw %d calls of %d", seen, len(ops))
	}
	f.Record()
	if len(f.Transcript()) != 0 {
		t.Error("Record did not begin anew")
	}
}

func TestRenameMatchesBothNamesAndCloseCloses(t *testing.T) {
	disk := crashfs.New()
	f := New(disk)
	h := create(t, f, "a.tmp")
	f.Add(Rule{Kind: Rename, Path: "target", Err: syscall.EACCES})
	if err := f.Rename("a.tmp", "target"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("rename: %v", err)
	}
	f.Add(Rule{Kind: Close, Err: syscall.EIO})
	if err := h.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	if open := disk.OpenFiles(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

func TestDescriptorIsPassedOn(t *testing.T) {
	onDisk, err := New(vfs.OS()).Create(t.TempDir() + "/a")
	must(t, err)
	defer onDisk.Close()
	if _, ok := onDisk.(vfs.Descriptor); !ok {
		t.Error("a file of the OS lost its descriptor")
	}
	if _, ok := create(t, New(crashfs.New()), "a").(vfs.Descriptor); ok {
		t.Error("a file in memory has a descriptor")
	}
}
