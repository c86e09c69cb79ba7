package metamove

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"gregor/broker/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) meta.Tree {
	t.Helper()
	tree, err := meta.OpenLocal(filepath.Join(t.TempDir(), meta.FileName))
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	return tree
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, tree meta.Tree, nodes ...string) {
	t.Helper()
	for _, n := range nodes {
		path, data, _ := strings.Cut(n, "=")
		kind := meta.Persistent
		if strings.HasPrefix(path, "!") {
			path, kind = path[1:], meta.Ephemeral
		}
		must(t, tree.Multi(t.Context(), meta.CreateOp(path, []byte(data), kind)))
	}
}

// cluster is a tree with something of everything.
func cluster(t *testing.T) meta.Tree {
	t.Helper()
	tree := plainCluster(t)
	put(t, tree, "/gregor", "/gregor/features={}")
	return tree
}

// plainCluster is one without nodes of our own.
func plainCluster(t *testing.T) meta.Tree {
	t.Helper()
	tree := open(t)
	must(t, meta.EnsureRoot(t.Context(), tree,
		meta.CreateOp(meta.ControllerEpochPath, meta.EncodeEpoch(7), meta.Persistent),
		meta.CreateOp(meta.ClusterIDPath, meta.EncodeClusterID("abcdefghijklmnopqrstuv"), meta.Persistent)))
	put(t, tree, "!/brokers/ids/1=x", "!/controller=x", "/brokers/topics/a=A", "/brokers/topics/a/partitions", "/brokers/topics/a/partitions/0", "/brokers/topics/a/partitions/0/state=S",
		"/config/topics/a=C", "/config/users/\u00fc=\x00\xff", "/config/changes/config_change_0000000001=x", "/admin/delete_topics/a",
		"/consumers/g", "/consumers/g/ids", "/consumers/g/ids/c=x", "/consumers/g/owners", "/consumers/g/owners/a", "/consumers/g/owners/a/0=x", "/consumers/g/offsets", "/consumers/g/offsets/a", "/consumers/g/offsets/a/0=5")
	return tree
}

func text(nodes []Node) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s=%q\n", n.Path, n.Data)
	}
	return b.String()
}

func nodesOf(t *testing.T, tree meta.Tree) []Node {
	t.Helper()
	nodes, err := Read(t.Context(), tree)
	must(t, err)
	return nodes
}

func TestReadLeavesSessionsOut(t *testing.T) {
	got := text(nodesOf(t, cluster(t)))
	for _, path := range []string{"/brokers/ids/1=", "/controller=", "/consumers/g/ids/c", "/consumers/g/owners/a", "config_change_"} {
		if strings.Contains(got, path) {
			t.Errorf("%s is moved", path)
		}
	}
	for _, n := range []string{"/config/users/\u00fc=\"\\x00\\xff\"\n", "/consumers/g/offsets/a/0=\"5\"\n", "/admin/delete_topics/a=", "/gregor/features=\"{}\"\n", "/brokers/topics/a/partitions/0/state=\"S\"\n", "/brokers/ids=\"\"\n"} {
		if !strings.Contains(got, n) {
			t.Errorf("%s is not moved", n)
		}
	}
}

// TestMove goes there and, after changes, back, in one step and in several.
func TestMove(t *testing.T) {
	for _, oneStep := range []bool{true, false} {
		move(t, plainCluster(t), open(t), oneStep)
		a, b := cluster(t), open(t)
		move(t, a, b, oneStep)
		if got, want := text(nodesOf(t, b)), text(nodesOf(t, a)); got != want {
			t.Fatalf("moved\n%s\nis\n%s", want, got)
		}
		if to, err := Moved(t.Context(), a); err != nil || to != "there" {
			t.Errorf("marked %q, %v", to, err)
		}
		put(t, b, "/brokers/topics/b=B", "/config/topics/b=C")
		must(t, b.Multi(t.Context(), meta.DeleteOp("/brokers/topics/a/partitions/0/state", meta.AnyVersion), meta.SetOp("/config/topics/a", []byte("new"), meta.AnyVersion)))
		want := text(nodesOf(t, b))
		p := move(t, b, a, oneStep)
		if got := text(nodesOf(t, a)); got != want || p.Changes() != 4 || p.Topics != 2 {
			t.Errorf("moved back\n%s\nis\n%s; %+v", want, got, p)
		}
		if to, err := Moved(t.Context(), a); err != nil || to != "" {
			t.Errorf("still marked %q, %v", to, err)
		}
	}
}

func move(t *testing.T, from, to meta.Tree, oneStep bool) *Plan {
	t.Helper()
	p, err := NewPlan(t.Context(), nodesOf(t, from), to)
	must(t, err)
	must(t, p.Write(t.Context(), to, oneStep))
	must(t, Mark(t.Context(), from, "there"))
	again, err := NewPlan(t.Context(), nodesOf(t, from), to)
	must(t, err)
	if again.Changes() != 0 || again.Unmark {
		t.Errorf("a second time would change %+v", again)
	}
	return p
}

func TestConflicts(t *testing.T) {
	a, b := cluster(t), cluster(t)
	must(t, b.Multi(t.Context(), meta.SetOp("/config/topics/a", []byte("other"), meta.AnyVersion)))
	if _, err := NewPlan(t.Context(), nodesOf(t, a), b); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "/config/topics/a") {
		t.Errorf("another configuration: %v", err)
	}
	if _, err := NewPlan(t.Context(), nodesOf(t, open(t)), b); !errors.Is(err, ErrNoCluster) {
		t.Errorf("an empty source: %v", err)
	}
	other := open(t)
	put(t, other, "/cluster", "/cluster/id="+string(meta.EncodeClusterID("another")))
	must(t, Mark(t.Context(), other, "away"))
	if _, err := NewPlan(t.Context(), nodesOf(t, a), other); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "another") {
		t.Errorf("another cluster that was moved: %v", err)
	}
	// Numbers that grow are no conflict.
	c := cluster(t)
	must(t, c.Multi(t.Context(), meta.SetOp(meta.ControllerEpochPath, meta.EncodeEpoch(3), meta.AnyVersion)))
	if p, err := NewPlan(t.Context(), nodesOf(t, a), c); err != nil || len(p.Set) != 1 {
		t.Errorf("an older controller epoch: %+v, %v", p, err)
	}
	must(t, c.Multi(t.Context(), meta.SetOp(meta.ControllerEpochPath, meta.EncodeEpoch(9), meta.AnyVersion)))
	if p, err := NewPlan(t.Context(), nodesOf(t, a), c); err != nil || p.Changes() != 0 {
		t.Errorf("a newer controller epoch: %+v, %v", p, err)
	}
}

// failing fails after some steps, as when the machine dies.
type failing struct {
	meta.Tree
	left int
}

var errCut = errors.New("cut")

func (f *failing) Multi(ctx context.Context, ops ...meta.Op) error {
	if f.left--; f.left < 0 {
		return errCut
	}
	return f.Tree.Multi(ctx, ops...)
}

// TestCutShort: half a move is no cluster, and the next one ends it.
func TestCutShort(t *testing.T) {
	a := cluster(t)
	for i := range 3 * stepOps {
		put(t, a, fmt.Sprintf("/config/clients/%d=%d", i, i))
	}
	for steps := 0; ; steps++ {
		b := open(t)
		p, err := NewPlan(t.Context(), nodesOf(t, a), b)
		must(t, err)
		err = p.Write(t.Context(), &failing{b, steps}, false)
		if err == nil {
			if steps < 4 {
				t.Errorf("done in %d steps", steps)
			}
			return
		}
		if _, _, e := b.Get(t.Context(), meta.ClusterIDPath); !errors.Is(err, errCut) || !errors.Is(e, meta.ErrNoNode) {
			t.Fatalf("after %d steps: %v; the cluster's id: %v", steps, err, e)
		}
		move(t, a, b, false)
		if got, want := text(nodesOf(t, b)), text(nodesOf(t, a)); got != want {
			t.Fatalf("after a cut at %d steps\n%s\nis\n%s", steps, want, got)
		}
	}
}
