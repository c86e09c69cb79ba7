package controller

import (
	"context"
	"fmt"
	"slices"

	"gregor/broker/meta"
)

// ElectLeaders gives each partition the leader that it should have while only the given brokers live, changes the given topics accordingly and returns
// what changed. A partition keeps a leader that lives. Else the first live
// replica that is in sync leads, or nobody; the in-sync replicas then stay as they were, so that the next leader is one of them. Each change begins a new
// leader epoch.
func (c *Controller) ElectLeaders(ctx context.Context, topics []Topic, live []int32) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changes []Change
	var ops []meta.Op
	for i := range topics {
		t := &topics[i]
		change := Change{Topic: t}
		for n := range t.Partitions {
			next, ok := elected(&t.Partitions[n], live)
			if !ok {
				continue
			}
			ops = append(ops, meta.SetOp(meta.PartitionStatePath(t.Name, int32(n)), c.encodeState(&next), t.Partitions[n].Version))
			change.Partitions = append(change.Partitions, int32(n))
		}
		if change.Partitions != nil {
			changes = append(changes, change)
		}
	}
	if len(ops) == 0 {
		return nil, nil
	}
	if err := c.multi(ctx, ops...); err != nil {
		return nil, fmt.Errorf("changing the leaders of %d partitions: %w", len(ops), err)
	}
	for i := range changes {
		for _, n := range changes[i].Partitions {
			p := &changes[i].Topic.Partitions[n]
			*p, _ = elected(p, live)
			p.Version, p.ControllerEpoch = p.Version+1, c.Epoch()
		}
	}
	return changes, nil
}

// Change is some partitions of a topic that have changed.
type Change struct {
	Topic      *Topic
	Partitions []int32
}

// elected is a partition with its next leader; ok is false when that is the one it has.
func elected(p *Partition, live []int32) (next Partition, ok bool) {
	if p.LeaderEpoch < 0 || slices.Contains(live, p.Leader) && slices.Contains(p.Replicas, p.Leader) {
		return *p, false
	}
	next = *p
	next.Leader = -1
	for _, id := range p.Replicas {
		if slices.Contains(live, id) && slices.Contains(p.ISR, id) {
			next.Leader = id
			next.ISR = slices.DeleteFunc(slices.Clone(p.ISR), func(id int32) bool { return !slices.Contains(live, id) })
			break
		}
	}
	if next.Leader == p.Leader {
		return *p, false // nobody still
	}
	next.LeaderEpoch++
	return next, true
}
