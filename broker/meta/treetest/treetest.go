package treetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gregor/broker/meta"
)

// patience is how long an event may take to come.
const patience = 10 * time.Second

// Run runs all of them. open returns an empty tree, another one each time, that ends with the test.
func Run(t *testing.T, open func(*testing.T) meta.Tree) {
	for name, test := range map[string]func(*testing.T, meta.Tree){
		"Errors": errorsOf, "MultiSeesItself": multiSeesItself, "Data": data, "Watch": watch, "WatchEnds": watchEnds,
		"Random": random, "Concurrent": concurrent, "Born": born, "Sequential": sequential, "Large": large, "Names": names, "Many": many,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func must(t *testing.T, tree meta.Tree, ops ...meta.Op) {
	t.Helper()
	if err := tree.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
}

func errorsOf(t *testing.T, tree meta.Tree) {
	must(t, tree, meta.CreateOp("/a", []byte("1"), meta.Persistent), meta.CreateOp("/a/b", nil, meta.Persistent), meta.CreateOp("/e", []byte("2"), meta.Ephemeral))
	for _, tc := range []struct {
		ops  []meta.Op
		want error
		text string
	}{
		{[]meta.Op{meta.CreateOp("/a", nil, meta.Persistent)}, meta.ErrNodeExists, "create /a"},
		{[]meta.Op{meta.CreateOp("/e", nil, meta.Persistent)}, meta.ErrNodeExists, "create /e"},
		{[]meta.Op{meta.CreateOp("/x/y", nil, meta.Persistent)}, meta.ErrNoNode, "/x"},
		{[]meta.Op{meta.CreateOp("/e/y", nil, meta.Persistent)}, meta.ErrBadPath, "/e/y"},
		{[]meta.Op{meta.SetOp("/x", nil, meta.AnyVersion)}, meta.ErrNoNode, "set /x"},
		{[]meta.Op{meta.SetOp("/a", nil, 1)}, meta.ErrBadVersion, "set /a"},
		{[]meta.Op{meta.SetOp("/e", nil, 1)}, meta.ErrBadVersion, "set /e"},
		{[]meta.Op{meta.DeleteOp("/a", 0)}, meta.ErrNotEmpty, "delete /a"},
		{[]meta.Op{meta.DeleteOp("/a/b", 3)}, meta.ErrBadVersion, "delete /a/b"},
		{[]meta.Op{meta.DeleteOp("/x", meta.AnyVersion)}, meta.ErrNoNode, "delete /x"},
		{[]meta.Op{meta.CheckOp("/a", 5)}, meta.ErrBadVersion, "check /a"},
		{[]meta.Op{meta.CheckOp("/x", meta.AnyVersion)}, meta.ErrNoNode, "check /x"},
		{[]meta.Op{meta.CreateOp("/n", nil, meta.Persistent), meta.CreateOp("/m", nil, meta.Ephemeral), meta.CheckOp("/a", 5)}, meta.ErrBadVersion, "op 2, check /a"},
	} {
		err := tree.Multi(t.Context(), tc.ops...)
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: error %v, want %v", tc.text, err, tc.want)
		}
	}
	for _, path := range []string{"", "a", "/a/", "//a", "/a//b", "/a\x00"} {
		if err := tree.Multi(t.Context(), meta.CreateOp(path, nil, meta.Persistent)); !errors.Is(err, meta.ErrBadPath) {
			t.Errorf("create %q: %v", path, err)
		}
		if _, _, err := tree.Get(t.Context(), path); !errors.Is(err, meta.ErrBadPath) {
			t.Errorf("get %q: %v", path, err)
		}
		if _, err := tree.Watch(t.Context(), path); !errors.Is(err, meta.ErrBadPath) {
			t.Errorf("watch %q: %v", path, err)
		}
	}
	if err := tree.Multi(t.Context(), meta.DeleteOp("/", meta.AnyVersion)); !errors.Is(err, meta.ErrBadPath) {
		t.Errorf("the root was deleted: %v", err)
	}
	if names, err := tree.Children(t.Context(), "/"); err != nil || !slices.Equal(names, []string{"a", "e"}) {
		t.Errorf("a Multi that failed left %q, %v", names, err)
	}
	for _, path := range []string{"/x", "/a/b/c"} {
		if _, err := tree.Children(t.Context(), path); !errors.Is(err, meta.ErrNoNode) {
			t.Errorf("children of %s: %v", path, err)
		}
		if _, _, err := tree.Get(t.Context(), path); !errors.Is(err, meta.ErrNoNode) {
			t.Errorf("get %s: %v", path, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tree.Multi(ended, meta.CreateOp("/z", nil, meta.Persistent)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// multiSeesItself: the steps of a Multi see those before them.
func multiSeesItself(t *testing.T, tree meta.Tree) {
	must(t, tree,
		meta.CreateOp("/a", []byte("1"), meta.Persistent), meta.SetOp("/a", []byte("2"), 0), meta.CheckOp("/a", 1),
		meta.CreateOp("/a/e", nil, meta.Ephemeral), meta.SetOp("/a/e", []byte("3"), 0), meta.DeleteOp("/a/e", 1),
		meta.CreateOp("/a/e", nil, meta.Persistent), meta.DeleteOp("/a/e", 0), meta.DeleteOp("/a", 1), meta.CreateOp("/a", []byte("4"), meta.Persistent))
	if data, version, err := tree.Get(t.Context(), "/a"); string(data) != "4" || version != 0 || err != nil {
		t.Errorf("got %q, %d, %v", data, version, err)
	}
	must(t, tree, meta.CreateOp("/a/e", []byte("e"), meta.Ephemeral))
	if err := tree.Multi(t.Context(), meta.DeleteOp("/a", meta.AnyVersion)); !errors.Is(err, meta.ErrNotEmpty) {
		t.Errorf("a node with an ephemeral child was deleted: %v", err)
	}
	must(t, tree, meta.DeleteOp("/a/e", 0), meta.DeleteOp("/a", meta.AnyVersion))
}

// data belongs to the caller, and nodes without any are empty.
func data(t *testing.T, tree meta.Tree) {
	given := []byte("data")
	must(t, tree, meta.CreateOp("/a", given, meta.Persistent), meta.CreateOp("/empty", nil, meta.Persistent))
	given[0] = 'x'
	got, _, err := tree.Get(t.Context(), "/a")
	if err != nil || string(got) != "data" {
		t.Fatalf("%q, %v", got, err)
	}
	got[0] = 'y'
	if got, _, err := tree.Get(t.Context(), "/a"); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
	if got, version, err := tree.Get(t.Context(), "/empty"); err != nil || len(got) != 0 || version != 0 {
		t.Errorf("empty: %q, %d, %v", got, version, err)
	}
}

// watch: each kind of change gives an event, and what is read after it is not older than the change.
func watch(t *testing.T, tree meta.Tree) {
	events, err := tree.Watch(t.Context(), "/a") // does not exist yet
	if err != nil {
		t.Fatal(err)
	}
	other, err := tree.Watch(t.Context(), "/other")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		op   meta.Op
		seen func() bool
	}{
		{meta.CreateOp("/a", nil, meta.Persistent), func() bool { _, _, err := tree.Get(t.Context(), "/a"); return err == nil }},
		{meta.SetOp("/a", []byte("1"), 0), func() bool { _, v, _ := tree.Get(t.Context(), "/a"); return v == 1 }},
		{meta.CreateOp("/a/e", nil, meta.Ephemeral), func() bool { n, _ := tree.Children(t.Context(), "/a"); return len(n) == 1 }},
		{meta.SetOp("/a", []byte("2"), 1), func() bool { _, v, _ := tree.Get(t.Context(), "/a"); return v == 2 }},
		{meta.DeleteOp("/a/e", 0), func() bool { n, _ := tree.Children(t.Context(), "/a"); return len(n) == 0 }},
		{meta.DeleteOp("/a", 2), func() bool { _, _, err := tree.Get(t.Context(), "/a"); return errors.Is(err, meta.ErrNoNode) }},
		{meta.CreateOp("/a", []byte("again"), meta.Ephemeral), func() bool { _, v, err := tree.Get(t.Context(), "/a"); return err == nil && v == 0 }},
	} {
		must(t, tree, step.op)
		what := fmt.Sprintf("%s %s", step.op.Kind(), step.op.Path())
		for seen := false; !seen; {
			select {
			case e := <-events:
				if e.Path != "/a" {
					t.Errorf("%s: event for %q", what, e.Path)
				}
				seen = step.seen()
			case <-time.After(patience):
				t.Fatalf("%s: no event", what)
			}
		}
	}
	select {
	case e := <-other:
		t.Errorf("event for a node that did not change: %v", e)
	default:
	}
}

// watchEnds: with the context, and with the tree.
func watchEnds(t *testing.T, tree meta.Tree) {
	ctx, cancel := context.WithCancel(t.Context())
	one, err := tree.Watch(ctx, "/a")
	if err != nil {
		t.Fatal(err)
	}
	two, err := tree.Watch(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	closed := func(what string, events <-chan meta.Event) {
		t.Helper()
		for limit := time.After(patience); ; {
			select {
			case _, open := <-events:
				if !open {
					return
				}
			case <-limit:
				t.Fatalf("%s: the channel is open", what)
			}
		}
	}
	cancel()
	closed("context", one)
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	closed("tree", two)
	if _, _, err := tree.Get(t.Context(), "/"); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("get after Close: %v", err)
	}
	if _, err := tree.Watch(t.Context(), "/"); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("watch after Close: %v", err)
	}
	if err := tree.Multi(t.Context(), meta.CreateOp("/b", nil, meta.Persistent)); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("create after Close: %v", err)
	}
}

// concurrent writers with versions lose nothing.
func concurrent(t *testing.T, tree meta.Tree) {
	must(t, tree, meta.CreateOp("/counter", nil, meta.Persistent), meta.CreateOp("/e", nil, meta.Ephemeral))
	const writers, each = 4, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				if err := count(t.Context(), tree, byte(w)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, path := range []string{"/counter", "/e"} {
		if _, version, err := tree.Get(t.Context(), path); err != nil || version != writers*each {
			t.Errorf("%s has version %d, %v, want %d", path, version, err, writers*each)
		}
	}
}

// count sets both nodes once.
func count(ctx context.Context, tree meta.Tree, w byte) error {
	for {
		_, version, err := tree.Get(ctx, "/counter")
		if err != nil {
			return err
		}
		err = tree.Multi(ctx, meta.SetOp("/counter", []byte{w}, version), meta.SetOp("/e", nil, version))
		if !errors.Is(err, meta.ErrBadVersion) {
			return err
		}
	}
}
