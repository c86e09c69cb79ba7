package treetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gregor/broker/meta"
)

// large: a node may have most of a MiB; what a tree cannot take is an error, and no more than that.
func large(t *testing.T, tree meta.Tree) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 60_000) // 960,000 bytes
	must(t, tree, meta.CreateOp("/big", big, meta.Persistent))
	if data, _, err := tree.Get(t.Context(), "/big"); err != nil || !bytes.Equal(data, big) {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	events, err := tree.Watch(t.Context(), "/big")
	if err != nil {
		t.Fatal(err)
	}
	err = tree.Multi(t.Context(), meta.CreateOp("/a", big, meta.Persistent), meta.CreateOp("/b", big, meta.Persistent))
	if err != nil && !errors.Is(err, meta.ErrTooLarge) {
		t.Fatalf("too large: %v", err)
	}
	if _, _, a := tree.Get(t.Context(), "/a"); (err == nil) != (a == nil) {
		t.Errorf("after %v: %v", err, a)
	}
	must(t, tree, meta.SetOp("/big", []byte("small"), 0))
	select {
	case <-events:
	case <-time.After(patience):
		t.Error("the connection did not survive: no event")
	}
}

// names: what Kafka's users, clients and groups may be called. Not beyond the Basic Multilingual Plane: ZooKeeper refuses that, and Kafka writes such names as %F0%9F…
func names(t *testing.T, tree meta.Tree) {
	want := []string{"<default>", "%C3%BC", "a b", "\u00fc", "\u4e2d\u6587", "user@REALM", "CN=x,O=y", "..a", "quote\"s'", "back\\slash"}
	slices.Sort(want)
	must(t, tree, meta.CreateOp("/n", nil, meta.Persistent))
	for _, name := range want {
		must(t, tree, meta.CreateOp("/n/"+name, []byte(name), meta.Persistent))
	}
	got, err := tree.Children(t.Context(), "/n")
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
	for _, name := range want {
		if data, _, err := tree.Get(t.Context(), "/n/"+name); err != nil || string(data) != name {
			t.Errorf("%q is %q, %v", name, data, err)
		}
	}
}

// many: thousands of topics below one node, made and removed by the hundred.
func many(t *testing.T, tree meta.Tree) {
	const topics, step = 3000, 200
	must(t, tree, meta.CreateOp("/t", nil, meta.Persistent))
	for first := 0; first < topics; first += step {
		var ops []meta.Op
		for n := first; n < first+step; n++ {
			ops = append(ops, meta.CreateOp(fmt.Sprintf("/t/topic-%05d", n), []byte("x"), meta.Persistent), meta.CreateOp(fmt.Sprintf("/t/topic-%05d/partitions", n), nil, meta.Persistent))
		}
		must(t, tree, ops...)
	}
	got, err := tree.Children(t.Context(), "/t")
	if err != nil || len(got) != topics || got[0] != "topic-00000" || got[topics-1] != "topic-02999" {
		t.Fatalf("%d children, %v", len(got), err)
	}
	var ops []meta.Op
	for n := range step {
		ops = append(ops, meta.DeleteOp(fmt.Sprintf("/t/topic-%05d/partitions", n), 0), meta.DeleteOp(fmt.Sprintf("/t/topic-%05d", n), 0))
	}
	must(t, tree, ops...)
	if got, err := tree.Children(t.Context(), "/t"); err != nil || len(got) != topics-step {
		t.Fatalf("%d children left, %v", len(got), err)
	}
}
