package crashfs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gregor/log/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, f *FS, name, content string, sync bool) {
	t.Helper()
	h, err := f.Create(name)
	must(t, err)
	defer h.Close()
	_, err = h.WriteAt([]byte(content), 0)
	must(t, err)
	if sync {
		must(t, h.Sync())
	}
}

// read returns a file's content, or "-" if there is none.
func read(t *testing.T, f *FS, name string) string {
	t.Helper()
	if _, err := f.Stat(name); err != nil {
		return "-"
	}
	b, err := vfs.ReadFile(f, name, 1<<30)
	must(t, err)
	return string(b)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// outcomes returns every distinct value of show over many cuts.
func outcomes(f *FS, show func(*FS) string) map[string]int {
	seen := make(map[string]int)
	for seed := range uint64(300) {
		seen[show(f.CrashClone(newRand(seed), Random()))]++
	}
	return seen
}

func wantOutcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if got[w] == 0 {
			t.Errorf("never saw %q", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("saw %v, want only %q", got, want)
	}
}

func TestWhatSurvives(t *testing.T) {
	cases := []struct {
		name string
		run  func(t *testing.T, f *FS)
		want []string
	}{
		{"nothing synced", func(t *testing.T, f *FS) { put(t, f, "d/a", "x", false) }, []string{"-", "", "x", "\x00"}},
		{"content synced, name not", func(t *testing.T, f *FS) { put(t, f, "d/a", "x", true) }, []string{"-", "x"}},
		{"name synced, content not", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", false)
			must(t, f.SyncDir("d"))
		}, []string{"", "x", "\x00"}},
		{"both synced", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", true)
			must(t, f.SyncDir("d"))
		}, []string{"x"}},
		{"all synced", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", false)
			must(t, f.SyncAll("d"))
		}, []string{"x"}},
		{"replaced by a synced file", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "old", true)
			must(t, f.SyncDir("d"))
			put(t, f, "d/a.tmp", "new", true)
			must(t, f.Rename("d/a.tmp", "d/a"))
		}, []string{"old", "new"}},
		{"replaced by a file that was not synced", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "old", true)
			must(t, f.SyncDir("d"))
			put(t, f, "d/a.tmp", "n", false)
			must(t, f.Rename("d/a.tmp", "d/a"))
		}, []string{"old", "n", "", "\x00"}},
		{"moved", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", true)
			must(t, f.SyncDir("d"))
			must(t, f.MkdirAll("e"))
			must(t, f.SyncDir(""))
			must(t, f.Rename("d/a", "e/a"))
			must(t, f.SyncDir("e"))
		}, []string{"-"}},
		{"removed", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", true)
			must(t, f.SyncDir("d"))
			must(t, f.Remove("d/a"))
		}, []string{"-", "x"}},
		{"made again", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "x", true)
			must(t, f.SyncDir("d"))
			must(t, f.Remove("d/a"))
			put(t, f, "d/a", "y", true)
		}, []string{"-", "x", "y"}},
		{"truncated", func(t *testing.T, f *FS) {
			put(t, f, "d/a", "abc", true)
			must(t, f.SyncDir("d"))
			h, err := f.Open("d/a")
			must(t, err)
			defer h.Close()
			must(t, h.Truncate(1))
		}, []string{"abc", "a"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f := New()
			must(t, f.MkdirAll("d"))
			must(t, f.SyncDir(""))
			tc.run(t, f)
			wantOutcomes(t, outcomes(f, func(c *FS) string { return read(t, c, "d/a") }), tc.want...)
			if len(f.OpenFiles()) != 0 {
				t.Errorf("open: %v", f.OpenFiles())
			}
		})
	}
}

func TestARenameIsOneChange(t *testing.T) {
	f := New()
	put(t, f, "a", "x", true)
	must(t, f.SyncDir(""))
	must(t, f.Rename("a", "b"))
	wantOutcomes(t, outcomes(f, func(c *FS) string { return read(t, c, "a") + read(t, c, "b") }), "x-", "-x")
}

func TestEmptiedDirectoryKeepsWhatMovedOut(t *testing.T) {
	f := New()
	must(t, f.MkdirAll("d"))
	put(t, f, "d/a", "x", true)
	must(t, f.SyncAll(""))
	must(t, f.Rename("d/a", "a"))
	must(t, f.Remove("d"))
	for got := range outcomes(f, func(c *FS) string { return read(t, c, "a") + read(t, c, "d/a") }) {
		if !strings.Contains(got, "x") {
			t.Errorf("the file is gone under both names: %q", got)
		}
	}
}

func TestPartialPages(t *testing.T) {
	f := New()
	put(t, f, "a", strings.Repeat("o", 2*pageSize+100), true)
	must(t, f.SyncDir(""))
	h, err := f.Open("a")
	must(t, err)
	defer h.Close()
	_, err = h.WriteAt(bytes.Repeat([]byte("n"), 3*pageSize), 2*pageSize+100)
	must(t, err)
	var short, zeros, all, none, holes bool
	for got := range outcomes(f, func(c *FS) string { return read(t, c, "a") }) {
		old, rest := got[:2*pageSize+100], got[2*pageSize+100:]
		if strings.Trim(old, "o") != "" || strings.Trim(rest, "n\x00") != "" {
			t.Fatalf("bytes that were never written, or synced ones changed")
		}
		none = none || rest == ""
		all = all || rest == strings.Repeat("n", 3*pageSize)
		short = short || rest != "" && len(rest) < 3*pageSize
		zeros = zeros || rest == strings.Repeat("\x00", 3*pageSize)
		holes = holes || strings.Contains(rest, "\x00n")
	}
	if !short || !zeros || !all || !none || !holes {
		t.Errorf("short %v, zeros %v, all %v, none %v, holes %v: want all of them", short, zeros, all, none, holes)
	}
}

func TestCloneIsIndependentAndRepeatable(t *testing.T) {
	f := New()
	for i := range 20 {
		put(t, f, fmt.Sprint("f", i), strings.Repeat("x", 5000), i%2 == 0)
	}
	dump := func(c *FS) string {
		list, err := c.List("")
		must(t, err)
		var b strings.Builder
		for _, e := range list {
			fmt.Fprintf(&b, "%s=%s;", e.Name(), read(t, c, e.Name()))
		}
		return b.String()
	}
	one, two := f.CrashClone(newRand(7), Random()), f.CrashClone(newRand(7), Random())
	if dump(one) != dump(two) {
		t.Error("equal seeds gave different disks")
	}
	if kept := f.CrashClone(newRand(1), KeepAll()); dump(kept) != dump(f) {
		t.Error("KeepAll lost something")
	}
	if lost := f.CrashClone(newRand(1), LoseAll()); dump(lost) != "" {
		t.Error("LoseAll kept something")
	}
	before := dump(one)
	h, err := f.Open("f0")
	must(t, err)
	defer h.Close()
	_, err = h.WriteAt([]byte("changed"), 0)
	must(t, err)
	if dump(one) != before {
		t.Error("a write showed in a clone")
	}
}

// TestSyncedBytesAlwaysSurvive does random operations on one file beside a plain byte slice, syncs now and then, and cuts.
func TestSyncedBytesAlwaysSurvive(t *testing.T) {
	for seed := range uint64(50) {
		rng := newRand(seed)
		f := New()
		h, err := f.Create("a")
		must(t, err)
		must(t, f.SyncDir(""))
		var now, synced []byte
		for range 60 {
			switch rng.IntN(4) {
			case 0:
				must(t, h.Sync())
				synced = bytes.Clone(now)
			case 1:
				size := rng.IntN(5 * pageSize)
				must(t, h.Truncate(int64(size)))
				now = append(now, make([]byte, max(0, size-len(now)))...)[:size]
			default:
				p := bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, 1+rng.IntN(2*pageSize))
				off := rng.IntN(len(now) + 100)
				_, err := h.WriteAt(p, int64(off))
				must(t, err)
				now = append(now, make([]byte, max(0, off+len(p)-len(now)))...)
				copy(now[off:], p)
			}
			if got := read(t, f, "a"); got != string(now) {
				t.Fatalf("seed %d: the file is not what was written", seed)
			}
			if got := read(t, f.CrashClone(rng, LoseAll()), "a"); got != string(synced) {
				t.Fatalf("seed %d: after a cut the file is not what was synced", seed)
			}
			if got := read(t, f.CrashClone(rng, KeepAll()), "a"); got != string(now) {
				t.Fatalf("seed %d: a kept disk lost something", seed)
			}
			read(t, f.CrashClone(rng, Random()), "a")
		}
		must(t, h.Close())
	}
}

func TestLocksAndHandlesEndWithTheCut(t *testing.T) {
	f := New()
	l, err := f.Lock("l")
	must(t, err)
	h, err := f.Create("a")
	must(t, err)
	if got := fmt.Sprint(f.OpenFiles()); got != "[a l]" {
		t.Errorf("open files are %s", got)
	}
	c := f.CrashClone(newRand(1), KeepAll())
	if got := c.OpenFiles(); len(got) != 0 {
		t.Errorf("after the cut %v are open", got)
	}
	l2, err := c.Lock("l")
	must(t, err)
	must(t, l2.Close())
	must(t, h.Close())
	must(t, l.Close())
	must(t, l.Close())
	if got := f.OpenFiles(); len(got) != 0 {
		t.Errorf("at the end %v are open", got)
	}
}

func BenchmarkAppendSync(b *testing.B) {
	f := New()
	h, err := f.Create("a")
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	data := make([]byte, 1000)
	off := int64(0)
	for b.Loop() {
		if _, err := h.WriteAt(data, off); err != nil {
			b.Fatal(err)
		}
		off = (off + 1000) % (1 << 20)
		if err := h.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCrashClone(b *testing.B) {
	f := New()
	for i := range 1000 {
		dir := fmt.Sprint("t-", i)
		if err := f.MkdirAll(dir); err != nil {
			b.Fatal(err)
		}
		h, err := f.Create(dir + "/0.log")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.WriteAt(make([]byte, 8000), 0); err != nil {
			b.Fatal(err)
		}
		h.Close()
	}
	rng := newRand(1)
	for b.Loop() {
		f.CrashClone(rng, Random())
	}
}
