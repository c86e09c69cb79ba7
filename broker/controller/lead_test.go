package controller

import (
	"errors"
	"fmt"
	"testing"

	"gregor/broker/meta"
)

// TestElectLeaders follows one topic while brokers leave and come.
func TestElectLeaders(t *testing.T) {
	tree := openTree(t, treeFile(t))
	c := startOn(t, tree)
	ctx := t.Context()
	for _, id := range []int32{2, 3} {
		must(t, tree.Multi(ctx, meta.CreateOp(meta.BrokerPath(id), meta.BrokerNode{}.Encode(), meta.Ephemeral)))
	}
	res, err := c.CreateTopics(ctx, []NewTopic{{Name: "t", Partitions: -1, Replication: -1, Assignment: []Assignment{
		{0, []int32{1, 2}}, {1, []int32{2, 3}}, {2, []int32{3, 2}},
	}}}, false)
	must(t, err)
	must(t, res[0].Err)
	for _, step := range []struct {
		live    []int32
		changed string
		want    string
	}{
		{[]int32{1, 2, 3}, "[]", "1/0[1 2] 2/0[2 3] 3/0[3 2]"},
		{[]int32{1, 3}, "[1]", "1/0[1 2] 3/1[3] 3/0[3 2]"},
		{[]int32{1}, "[1 2]", "1/0[1 2] -1/2[3] -1/1[3 2]"},
		{[]int32{1}, "[]", "1/0[1 2] -1/2[3] -1/1[3 2]"},
		{[]int32{1, 2}, "[2]", "1/0[1 2] -1/2[3] 2/2[2]"},
		{[]int32{1, 2, 3}, "[1]", "1/0[1 2] 3/3[3] 2/2[2]"},
	} {
		topics, err := c.Load(ctx)
		must(t, err)
		changes, err := c.ElectLeaders(ctx, topics, step.live)
		must(t, err)
		changed := "[]"
		if len(changes) > 0 {
			changed = fmt.Sprint(changes[0].Partitions)
		}
		again, err := c.Load(ctx)
		must(t, err)
		if got := leaders(&topics[0]); got != step.want || changed != step.changed || leaders(&again[0]) != step.want {
			t.Errorf("live %v: %s changed %s, in the tree %s; want %s changed %s", step.live, got, changed, leaders(&again[0]), step.want, step.changed)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func leaders(t *Topic) (s string) {
	for i, p := range t.Partitions {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%d/%d%v", p.Leader, p.LeaderEpoch, p.ISR)
	}
	return s
}

// TestElectTwice: a second broker does not get a seat that is taken, and nobody changes anything without one.
func TestElectTwice(t *testing.T) {
	tree := openTree(t, treeFile(t))
	one := startOn(t, tree)
	two, err := Open(t.Context(), tree, Config{BrokerID: 2, Shared: true})
	must(t, err)
	must(t, two.Register(t.Context(), nil))
	if holder, err := two.Elect(t.Context()); err != nil || holder != 1 || two.Seated() || two.Epoch() != -1 {
		t.Fatalf("the seat has %d, %v; epoch %d", holder, err, two.Epoch())
	}
	if _, err := two.CreateTopic(t.Context(), "t", 1, 1, nil); !errors.Is(err, ErrNotController) {
		t.Errorf("topic without a seat: %v", err)
	}
	must(t, tree.Multi(t.Context(), meta.DeleteOp(meta.ControllerPath, meta.AnyVersion)))
	if holder, err := two.Elect(t.Context()); err != nil || holder != 2 || two.Epoch() != one.Epoch()+1 {
		t.Fatalf("the seat has %d, %v; epoch %d", holder, err, two.Epoch())
	}
	if _, err := one.CreateTopic(t.Context(), "t", 1, 1, nil); !errors.Is(err, ErrNotController) || one.Seated() {
		t.Errorf("topic by the former controller: %v", err)
	}
	// A node of an attempt whose answer was lost does not keep the seat empty.
	two.Resign()
	if holder, err := two.Elect(t.Context()); err != nil || holder != 2 || !two.Seated() {
		t.Fatalf("the seat has %d, %v", holder, err)
	}
}
