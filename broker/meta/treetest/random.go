package treetest

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"gregor/broker/meta"
)

// node is one of the model.
type node struct {
	version int32
	data    []byte
}

// model is the tree as it should be.
type model map[string]node

func (m model) do(op *meta.Op) bool {
	n, ok := m[op.Path()]
	if op.Kind() == meta.OpCreate {
		if _, hasParent := m[path.Dir(op.Path())]; ok || !hasParent {
			return false
		}
		m[op.Path()] = node{data: op.Data()}
		return true
	}
	if !ok || op.Version() != meta.AnyVersion && op.Version() != n.version {
		return false
	}
	switch op.Kind() {
	case meta.OpSet:
		m[op.Path()] = node{version: n.version + 1, data: op.Data()}
	case meta.OpDelete:
		if len(m.children(op.Path())) > 0 {
			return false
		}
		delete(m, op.Path())
	}
	return true
}

func (m model) children(of string) []string {
	names := []string{}
	for p := range m {
		if p != "/" && path.Dir(p) == of {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

func randomOp(r *rand.Rand) meta.Op {
	p := ""
	for range 1 + r.IntN(3) {
		p += "/" + string(rune('a'+r.IntN(3)))
	}
	data := make([]byte, r.IntN(3000))
	version := int32(r.IntN(3)) - 1
	switch r.IntN(6) {
	case 0, 1, 2:
		return meta.CreateOp(p, data, meta.Persistent)
	case 3:
		return meta.SetOp(p, data, version)
	case 4:
		return meta.DeleteOp(p, version)
	}
	return meta.CheckOp(p, version)
}

// random changes agree with a model.
func random(t *testing.T, tree meta.Tree) {
	r := rand.New(rand.NewPCG(3, 4))
	want := model{"/": node{}}
	done := 0
	for i := range 300 {
		next, ok := maps.Clone(want), true
		var ops []meta.Op
		for range 1 + r.IntN(2) {
			op := randomOp(r)
			ops = append(ops, op)
			ok = ok && next.do(&op)
		}
		err := tree.Multi(t.Context(), ops...)
		if ok != (err == nil) {
			t.Fatalf("%d: %+v: %v, the model says %v", i, ops, err, ok)
		}
		if ok {
			want = next
			done++
		}
	}
	if done < 30 {
		t.Errorf("only %d changes were made", done)
	}
	for p, n := range want {
		if data, version, err := tree.Get(t.Context(), p); p != "/" && (err != nil || version != n.version || string(data) != string(n.data)) {
			t.Errorf("%s: %d bytes, version %d, %v; want %d, %d", p, len(data), version, err, len(n.data), n.version)
		}
		if got, err := tree.Children(t.Context(), p); err != nil || !slices.Equal(got, want.children(p)) {
			t.Errorf("children of %s: %q, %v, want %q", p, got, err, want.children(p))
		}
	}
}
