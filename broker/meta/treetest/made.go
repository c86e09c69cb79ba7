package treetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gregor/broker/meta"
)

// born: a node that is made later has a greater number, made again too; setting data changes nothing.
func born(t *testing.T, tree meta.Tree) {
	number := func(path string) int64 {
		t.Helper()
		n, err := tree.Born(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var last int64
	for _, op := range []meta.Op{
		meta.CreateOp("/a", nil, meta.Persistent), meta.CreateOp("/a/e", nil, meta.Ephemeral), meta.CreateOp("/b", nil, meta.Persistent),
		meta.CreateOp("/e", []byte("x"), meta.Ephemeral),
	} {
		must(t, tree, op)
		n := number(op.Path())
		if n <= last {
			t.Errorf("%s has %d, not more than %d", op.Path(), n, last)
		}
		last = n
	}
	for _, path := range []string{"/a", "/e"} {
		before := number(path)
		must(t, tree, meta.SetOp(path, []byte("y"), 0))
		if n := number(path); n != before {
			t.Errorf("setting %s changed %d to %d", path, before, n)
		}
	}
	must(t, tree, meta.DeleteOp("/e", 1))
	must(t, tree, meta.CreateOp("/e", nil, meta.Ephemeral))
	if n := number("/e"); n <= last {
		t.Errorf("made again it has %d, not more than %d", n, last)
	}
	if _, err := tree.Born(t.Context(), "/x"); !errors.Is(err, meta.ErrNoNode) {
		t.Errorf("no node: %v", err)
	}
	if _, err := tree.Born(t.Context(), "x/"); !errors.Is(err, meta.ErrBadPath) {
		t.Errorf("no path: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Born(ended, "/a"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// sequential nodes have the prefix and ten digits, in the order in which they were made, and are never made in the place of another.
func sequential(t *testing.T, tree meta.Tree) {
	must(t, tree, meta.CreateOp("/a", nil, meta.Persistent), meta.CreateOp("/b", nil, meta.Persistent))
	events, err := tree.Watch(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1", "2", "3"} {
		must(t, tree, meta.SequentialOp("/a/n_", []byte(text)))
	}
	<-events
	must(t, tree, meta.SequentialOp("/b/n_", []byte("elsewhere")), meta.SequentialOp("/b/", []byte("no prefix")))
	names, err := tree.Children(t.Context(), "/a")
	if err != nil || len(names) != 3 {
		t.Fatalf("%q, %v", names, err)
	}
	var texts []string
	for _, name := range names {
		if len(name) != len("n_0000000000") || name[:2] != "n_" {
			t.Errorf("name %q", name)
		}
		data, version, err := tree.Get(t.Context(), "/a/"+name)
		if err != nil || version != 0 {
			t.Errorf("%s: version %d, %v", name, version, err)
		}
		texts = append(texts, string(data))
	}
	if !slices.Equal(texts, []string{"1", "2", "3"}) {
		t.Errorf("in the order of their names they hold %q", texts)
	}
	if names, err := tree.Children(t.Context(), "/b"); err != nil || len(names) != 2 || len(names[0]) != 10 || len(names[1]) != 12 {
		t.Errorf("%q, %v", names, err)
	}
	must(t, tree, meta.DeleteOp("/a/"+names[2], 0)) // its number is not given again
	must(t, tree, meta.SequentialOp("/a/n_", []byte("4")))
	if now, err := tree.Children(t.Context(), "/a"); err != nil || len(now) != 3 || now[2] <= names[2] {
		t.Errorf("after %q: %q, %v", names, now, err)
	}
	sequentialRefused(t, tree)
}

func sequentialRefused(t *testing.T, tree meta.Tree) {
	must(t, tree, meta.CreateOp("/e", nil, meta.Ephemeral))
	for _, tc := range []struct {
		op   meta.Op
		want error
	}{
		{meta.SequentialOp("/x/n_", nil), meta.ErrNoNode}, {meta.SequentialOp("/e/n_", nil), meta.ErrBadPath},
		{meta.SequentialOp("n_", nil), meta.ErrBadPath}, {meta.SequentialOp("//n_", nil), meta.ErrBadPath},
	} {
		if err := tree.Multi(t.Context(), tc.op); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.op.Path(), err, tc.want)
		}
	}
	if err := tree.Multi(t.Context(), meta.SequentialOp("/b/m_", nil), meta.CheckOp("/b", 7)); !errors.Is(err, meta.ErrBadVersion) {
		t.Errorf("a Multi that fails: %v", err)
	}
	if names, err := tree.Children(t.Context(), "/b"); err != nil || len(names) != 2 {
		t.Errorf("a Multi that failed left %q, %v", names, err)
	}
	must(t, tree, meta.SequentialOp("/e", nil)) // the ephemeral node of that name is another
}
