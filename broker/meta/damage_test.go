package meta

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fill makes a file with some hundred nodes and returns its bytes.
func fill(t testing.TB, path string, topics int) []byte {
	t.Helper()
	l, err := OpenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := EnsureRoot(ctx, l); err != nil {
		t.Fatal(err)
	}
	for first := 0; first < topics; first += 50 {
		var ops []Op
		for i := first; i < min(first+50, topics); i++ {
			name := fmt.Sprintf("topic-%d", i)
			ops = append(ops, CreateOp(TopicPath(name), TopicNode{Replicas: Replicas{0: {1}}}.Encode(), Persistent), CreateOp(PartitionsPath(name), nil, Persistent),
				CreateOp(PartitionPath(name, 0), nil, Persistent), CreateOp(PartitionStatePath(name, 0), PartitionState{Leader: 1, ISR: []int32{1}}.Encode(), Persistent),
				CreateOp(TopicConfigPath(name), EncodeConfig(nil), Persistent))
		}
		if err := l.Multi(ctx, ops...); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	used := len(bytes.TrimRight(b, "\x00")) // what follows is the reserve
	return b[:min(len(b), (used+page-1)/page*page)]
}

// openDamaged opens a changed file: either it opens and can be read through, or the error names the file and what to do.
func openDamaged(t *testing.T, path, what string) (opened bool) {
	t.Helper()
	l, err := OpenLocal(path)
	if err != nil {
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: error %v", what, err)
		}
		return false
	}
	names, err := l.Children(t.Context(), "/")
	for _, name := range names {
		if _, _, err := l.Get(t.Context(), "/"+name); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrBadPath) {
			t.Errorf("%s: read %s: %v", what, name, err)
		}
	}
	if err != nil && !errors.Is(err, ErrDamaged) {
		t.Errorf("%s: list: %v", what, err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("%s: close: %v", what, err)
	}
	return true
}

func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	good := fill(t, filepath.Join(dir, "good"), 100)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, size := range []int{1, 100, 4095, 4096, 8191, 8192, 12288, 16384, 20480, len(good) / 2} {
		if what := fmt.Sprintf("cut to %d bytes", size); openDamaged(t, write(fmt.Sprint("cut", size), good[:size]), what) {
			t.Errorf("%s was opened", what)
		}
	}
	if openDamaged(t, write("text", []byte(strings.Repeat("this is no metadata file\n", 2000))), "text") {
		t.Error("text was opened")
	}
	if openDamaged(t, write("zeros", make([]byte, len(good))), "zeros") {
		t.Error("zeros were opened")
	}
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 150 {
		b := append([]byte(nil), good...)
		at := r.IntN(len(b))
		for range 1 + r.IntN(64) {
			b[min(at+r.IntN(64), len(b)-1)] = byte(r.Uint32())
		}
		if !openDamaged(t, write(fmt.Sprint("flip", i), b), fmt.Sprintf("bytes from %d changed", at)) {
			refused++
		}
	}
	t.Logf("%d of 150 changed files were refused; the others had the change in unused pages or in data", refused)
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenLocal(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory was opened: %v", err)
	}
	missing := filepath.Join(dir, "missing", FileName)
	if _, err := OpenLocal(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing directory: %v", err)
	}
}

func BenchmarkOpenNew(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		l, err := OpenLocal(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkOpenThousandTopics(b *testing.B) {
	path := filepath.Join(b.TempDir(), FileName)
	fill(b, path, 1000)
	for b.Loop() {
		l, err := OpenLocal(path)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
