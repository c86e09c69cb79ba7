package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gregor/broker/meta"
)

var errFault = errors.New("the tree failed")

// faultyTree fails one call, by its number. A failed Multi has changed nothing.
type faultyTree struct {
	meta.Tree
	calls  atomic.Int64
	failAt int64
}

func (f *faultyTree) fault() error {
	if f.calls.Add(1) == f.failAt {
		return errFault
	}
	return nil
}

func (f *faultyTree) Get(ctx context.Context, path string) ([]byte, int32, error) {
	if err := f.fault(); err != nil {
		return nil, 0, err
	}
	return f.Tree.Get(ctx, path)
}

func (f *faultyTree) Children(ctx context.Context, path string) ([]string, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Tree.Children(ctx, path)
}

func (f *faultyTree) Multi(ctx context.Context, ops ...meta.Op) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Tree.Multi(ctx, ops...)
}

// life is a sequence of changes that ends with topic "b" of three partitions, in epoch 1, with a key of its own.
func life(t *testing.T, tree meta.Tree) []func() error {
	var c *Controller
	ctx := t.Context()
	var topics []Topic
	return []func() error{
		func() (err error) { c, err = Start(ctx, tree, testConfig()); return err },
		func() error {
			res, err := c.CreateTopics(ctx, []NewTopic{auto("a", 1, 1), auto("b", 2, 1)}, false)
			if err != nil {
				return err
			}
			return errors.Join(res[0].Err, res[1].Err)
		},
		func() error { _, err := c.CreatePartitions(ctx, "b", 3, nil, false); return err },
		func() error { return c.AlterTopicConfig(ctx, "b", map[string]string{"flush.ms": "1"}) },
		func() error {
			return c.AlterBrokerConfig(ctx, ClusterDefault, map[string]string{"log.retention.ms": "2"})
		},
		func() error { return c.DeleteTopics(ctx, []string{"a"}) },
		func() error { return c.CompleteDelete(ctx, "a") },
		func() (err error) { topics, err = c.Load(ctx); return err },
		func() error { return c.BumpLeaderEpochs(ctx, topics) },
		func() error {
			first, _, err := c.AllocateProducerIDs(ctx)
			if err == nil && first != 0 {
				t.Errorf("a failed allocation took ids: %d", first)
			}
			return err
		},
	}
}

// Each call of the tree fails once, in turn: the step says so, and works when it is repeated.
func TestEachCallFailsOnce(t *testing.T) {
	for n := int64(1); ; n++ {
		tree := &faultyTree{Tree: openTree(t, treeFile(t)), failAt: n}
		failures := 0
		for i, step := range life(t, tree) {
			err := step()
			if err == nil {
				continue
			}
			failures++
			if !errors.Is(err, errFault) {
				t.Fatalf("call %d, step %d: %v", n, i, err)
			}
			if i == 0 {
				// The first session may have left its nodes; a new process has another.
				undoStart(t, tree.Tree)
			}
			if err := step(); err != nil {
				t.Fatalf("call %d, step %d again: %v", n, i, err)
			}
		}
		if tree.calls.Load() < n {
			t.Logf("%d calls", n-1)
			return
		}
		checkLife(t, tree.Tree, n, failures)
	}
}

func undoStart(t *testing.T, tree meta.Tree) {
	t.Helper()
	for _, path := range []string{meta.BrokerPath(1), meta.ControllerPath} {
		if err := tree.Multi(t.Context(), meta.DeleteOp(path, meta.AnyVersion)); err != nil && !errors.Is(err, meta.ErrNoNode) {
			t.Fatal(err)
		}
	}
}

func checkLife(t *testing.T, tree meta.Tree, n int64, failures int) {
	t.Helper()
	if failures != 1 {
		t.Errorf("call %d: %d steps failed, want the one that made it", n, failures)
	}
	undoStart(t, tree)
	c := startOn(t, tree)
	topics := c.mustLoad(t)
	if len(topics) != 1 || topics[0].Name != "b" || topics[0].Config["flush.ms"] != "1" || topics[0].Partitions[0].LeaderEpoch != 1 {
		t.Errorf("call %d: %+v", n, topics)
	}
	if own, err := c.BrokerConfig(t.Context(), ClusterDefault); err != nil || own["log.retention.ms"] != "2" {
		t.Errorf("call %d: broker keys %v, %v", n, own, err)
	}
	if first, _, err := c.AllocateProducerIDs(t.Context()); err != nil || first != 1000 {
		t.Errorf("call %d: next producer ids from %d, %v", n, first, err)
	}
}
