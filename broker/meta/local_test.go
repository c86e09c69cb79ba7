package meta

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, path string) *Local {
	t.Helper()
	l, err := OpenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func newTree(t *testing.T) *Local {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), FileName))
}

func must(t *testing.T, tree Tree, ops ...Op) {
	t.Helper()
	if err := tree.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
}

func TestRoot(t *testing.T) {
	l := newTree(t)
	data, version, err := l.Get(t.Context(), "/")
	if err != nil || version != 0 || len(data) != 0 {
		t.Errorf("root: %q, %d, %v", data, version, err)
	}
	names, err := l.Children(t.Context(), "/")
	if err != nil || names == nil || len(names) != 0 {
		t.Errorf("children of the root: %q, %v", names, err)
	}
	must(t, l, SetOp("/", []byte("x"), 0))
	if data, version, err := l.Get(t.Context(), "/"); err != nil || version != 1 || string(data) != "x" {
		t.Errorf("root: %q, %d, %v", data, version, err)
	}
	if err := l.Multi(t.Context(), DeleteOp("/", AnyVersion)); !errors.Is(err, ErrBadPath) {
		t.Errorf("the root was deleted: %v", err)
	}
}

// TestLongPath: what the file cannot take as a key is refused. The other errors are those of treetest.
func TestLongPath(t *testing.T) {
	l := newTree(t)
	if err := l.Multi(t.Context(), CreateOp("/"+strings.Repeat("x", maxPath), nil, Persistent)); !errors.Is(err, ErrBadPath) {
		t.Errorf("create: %v", err)
	}
}

func TestEphemeralNodesEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	l := open(t, path)
	must(t, l, CreateOp("/ids", nil, Persistent), CreateOp("/ids/1", []byte("one"), Ephemeral), CreateOp("/ids/2", nil, Persistent))
	if names, err := l.Children(t.Context(), "/ids"); err != nil || !slices.Equal(names, []string{"1", "2"}) {
		t.Errorf("children %q, %v", names, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, _, err := l.Get(t.Context(), "/ids"); !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	if err := l.Multi(t.Context(), CreateOp("/x", nil, Persistent)); !errors.Is(err, ErrClosed) {
		t.Errorf("Multi after Close: %v", err)
	}
	if _, err := l.Watch(t.Context(), "/x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Watch after Close: %v", err)
	}
	l = open(t, path)
	if names, err := l.Children(t.Context(), "/ids"); err != nil || !slices.Equal(names, []string{"2"}) {
		t.Errorf("children after a reopen %q, %v", names, err)
	}
}

func TestWatch(t *testing.T) {
	l := newTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	root, err := l.Watch(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Watch(ctx, "/a") // does not exist yet
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Watch(t.Context(), "/other")
	if err != nil {
		t.Fatal(err)
	}
	seen := func(what string, want bool, c <-chan Event, path string) {
		t.Helper()
		select {
		case e, open := <-c:
			if !want || !open || e.Path != path {
				t.Errorf("%s: event %v, %v", what, e, open)
			}
		default:
			if want {
				t.Errorf("%s: no event for %s", what, path)
			}
		}
	}
	must(t, l, CreateOp("/a", nil, Persistent))
	seen("create", true, root, "/")
	seen("create", true, a, "/a")
	must(t, l, SetOp("/a", []byte("1"), 0))
	must(t, l, SetOp("/a", []byte("2"), 1))
	seen("set", false, root, "/")
	seen("set", true, a, "/a")
	seen("merged", false, a, "/a")
	must(t, l, CreateOp("/a/e", nil, Ephemeral))
	seen("child", true, a, "/a")
	if err := l.Multi(t.Context(), SetOp("/a", nil, AnyVersion), CheckOp("/a", 77)); err == nil {
		t.Error("no error")
	}
	seen("failed", false, a, "/a")
	must(t, l, DeleteOp("/a/e", 0), DeleteOp("/a", 2))
	seen("delete", true, root, "/")
	seen("delete", true, a, "/a")
	seen("other", false, other, "/other")
	cancel()
	if _, open := <-a; open {
		t.Error("event after the context ended")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open := <-other; open {
		t.Error("event after Close")
	}
}

func TestOneUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	open(t, path)
	if _, err := OpenLocal(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second open: %v", err)
	}
}

// model is the tree as it should be.
type model map[string]node

func (m model) clone() model {
	c := model{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (m model) do(op Op) bool {
	n, ok := m[op.path]
	parent, _ := split(op.path)
	if op.kind == OpCreate {
		if _, hasParent := m[parent]; ok || !hasParent {
			return false
		}
		m[op.path] = node{data: op.data}
		return true
	}
	if !ok || op.version != AnyVersion && op.version != n.version {
		return false
	}
	switch op.kind {
	case OpSet:
		m[op.path] = node{version: n.version + 1, data: op.data}
	case OpDelete:
		for p := range m {
			if up, _ := split(p); up == op.path && p != "/" {
				return false
			}
		}
		delete(m, op.path)
	}
	return true
}

func randomOp(r *rand.Rand) Op {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + string(rune('a'+r.IntN(3)))
	}
	data := make([]byte, r.IntN(3000))
	version := int32(r.IntN(3)) - 1
	switch r.IntN(6) {
	case 0, 1, 2:
		return CreateOp(path, data, Persistent)
	case 3:
		return SetOp(path, data, version)
	case 4:
		return DeleteOp(path, version)
	}
	return CheckOp(path, version)
}

// Random changes agree with a model, at once and in a copy of the file as it is when Multi returns, which is what a kill would leave.
func TestRandomAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	l := open(t, path)
	want := model{"/": node{}}
	done := 0
	for i := range 400 {
		next, ok := want.clone(), true
		var ops []Op
		for range 1 + r.IntN(2) {
			op := randomOp(r)
			ops = append(ops, op)
			ok = ok && next.do(op)
		}
		err := l.Multi(t.Context(), ops...)
		if ok != (err == nil) {
			t.Fatalf("%d: %+v: %v, the model says %v", i, ops, err, ok)
		}
		if ok {
			want = next
			done++
		}
		if i%40 == 0 {
			compareWith(t, l, want)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			killed := filepath.Join(dir, fmt.Sprint("killed", i))
			if err := os.WriteFile(killed, b, 0o600); err != nil {
				t.Fatal(err)
			}
			compareWith(t, open(t, killed), want)
		}
	}
	if done < 50 {
		t.Errorf("only %d changes were made", done)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	compareWith(t, open(t, path), want)
}

func compareWith(t *testing.T, l *Local, want model) {
	t.Helper()
	for path, n := range want {
		data, version, err := l.Get(t.Context(), path)
		if err != nil || version != n.version || string(data) != string(n.data) {
			t.Fatalf("%s: %d bytes, version %d, %v; want %d, %d", path, len(data), version, err, len(n.data), n.version)
		}
		var names []string
		for p := range want {
			if parent, name := split(p); parent == path && name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if got, err := l.Children(t.Context(), path); err != nil || !slices.Equal(got, names) {
			t.Fatalf("children of %s: %q, %v, want %q", path, got, err, names)
		}
	}
}

func TestConcurrent(t *testing.T) {
	l := newTree(t)
	must(t, l, CreateOp("/counter", nil, Persistent), CreateOp("/e", nil, Ephemeral))
	events, err := l.Watch(t.Context(), "/counter")
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				for {
					_, version, err := l.Get(t.Context(), "/counter")
					if err != nil {
						t.Error(err)
						return
					}
					err = l.Multi(t.Context(), SetOp("/counter", []byte{byte(w)}, version), SetOp("/e", nil, version))
					if err == nil {
						break
					}
					if !errors.Is(err, ErrBadVersion) {
						t.Error(err)
						return
					}
				}
				if _, err := l.Children(t.Context(), "/"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, path := range []string{"/counter", "/e"} {
		if _, version, err := l.Get(t.Context(), path); err != nil || version != writers*each {
			t.Errorf("%s has version %d, %v, want %d", path, version, err, writers*each)
		}
	}
	if len(events) != 1 {
		t.Errorf("%d events wait, want 1", len(events))
	}
}

func TestEnsureRoot(t *testing.T) {
	l := newTree(t)
	if err := EnsureRoot(t.Context(), l, CreateOp(ClusterIDPath, EncodeClusterID("x"), Persistent)); err != nil {
		t.Fatal(err)
	}
	if err := EnsureRoot(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	names, err := l.Children(t.Context(), "/")
	want := []string{"admin", "brokers", "cluster", "config", "consumers", "isr_change_notification", "latest_producer_id_block", "log_dir_event_notification"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	must(t, l, CreateOp(TopicPath("t"), nil, Persistent), CreateOp(PartitionsPath("t"), nil, Persistent), CreateOp(PartitionPath("t", 3), nil, Persistent),
		CreateOp(PartitionStatePath("t", 3), nil, Persistent), CreateOp(TopicConfigPath("t"), nil, Persistent), CreateOp(BrokerPath(1), nil, Ephemeral),
		CreateOp(BrokerConfigPath(1), nil, Persistent), CreateOp(DefaultBrokerConfigPath, nil, Persistent), CreateOp(DeleteTopicPath("t"), nil, Persistent),
		CreateOp(ControllerPath, nil, Ephemeral), CreateOp(ControllerEpochPath, nil, Persistent))
	if _, _, err := l.Get(t.Context(), "/brokers/topics/t/partitions/3/state"); err != nil {
		t.Error(err)
	}
}
