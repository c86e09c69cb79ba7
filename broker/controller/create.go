package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gregor/broker/meta"
)

// retries is how often a change is planned anew when someone else changed the tree in between.
const retries = 3

// CreateResult is what became of one NewTopic.
type CreateResult struct {
	// Topic is what was made, or would be made when only asked; it belongs to the caller.
	Topic Topic
	// Err is an *Error; the other topics of the request are not affected.
	Err error
}

// CreateTopics makes topics, all good ones of a request in one step. Results are in the order of the request, which has no name twice. With
// validateOnly nothing is written. An error of its own says that nothing was made.
func (c *Controller) CreateTopics(ctx context.Context, topics []NewTopic, validateOnly bool) ([]CreateResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for range retries {
		var plans []plan
		if plans, err = c.plan(ctx, topics); err != nil {
			return nil, err
		}
		if !validateOnly {
			err = c.write(ctx, plans)
		}
		if err == nil {
			return results(plans), nil
		}
		if !errors.Is(err, meta.ErrNodeExists) {
			break
		}
	}
	return nil, fmt.Errorf("creating %d topics: %w", len(topics), err)
}

// CreateTopic makes one topic with the given own keys, -1 standing for default numbers.
func (c *Controller) CreateTopic(ctx context.Context, name string, partitions int32, replication int16, own map[string]string) (Topic, error) {
	res, err := c.CreateTopics(ctx, []NewTopic{{Name: name, Partitions: partitions, Replication: replication, Config: given(own)}}, false)
	if err != nil {
		return Topic{}, err
	}
	return res[0].Topic, res[0].Err
}

func (c *Controller) plan(ctx context.Context, topics []NewTopic) ([]plan, error) {
	names, err := c.tree.Children(ctx, meta.TopicsPath)
	if err != nil {
		return nil, err
	}
	cl := &cluster{topics: make(map[string]struct{}, len(names)), conf: &c.conf}
	for _, n := range names {
		cl.topics[n] = struct{}{}
	}
	if cl.brokers, err = c.brokers(ctx); err != nil {
		return nil, err
	}
	if n := len(cl.brokers); n > 1 {
		cl.start = rand.IntN(n)
	}
	return planTopics(cl, topics), nil
}

// write makes the planned topics in one step.
func (c *Controller) write(ctx context.Context, plans []plan) error {
	var ops []meta.Op
	for i := range plans {
		if plans[i].err != nil {
			continue
		}
		t := &plans[i].topic
		config, err := c.configOp(ctx, t)
		if err != nil {
			return err
		}
		ops = append(ops, config,
			meta.CreateOp(meta.TopicPath(t.Name), encodeTopic(t), meta.Persistent),
			meta.CreateOp(meta.PartitionsPath(t.Name), nil, meta.Persistent))
		ops = c.appendPartitions(ops, t, 0)
	}
	if len(ops) == 0 {
		return nil
	}
	return c.multi(ctx, ops...)
}

// configOp writes the own keys of a new topic over whatever an older topic of that name may have left.
func (c *Controller) configOp(ctx context.Context, t *Topic) (meta.Op, error) {
	path := meta.TopicConfigPath(t.Name)
	_, version, err := c.tree.Get(ctx, path)
	if errors.Is(err, meta.ErrNoNode) {
		return meta.CreateOp(path, meta.EncodeConfig(t.Config), meta.Persistent), nil
	}
	return meta.SetOp(path, meta.EncodeConfig(t.Config), version), err
}

// appendPartitions appends what makes the partitions of t from number first on.
func (c *Controller) appendPartitions(ops []meta.Op, t *Topic, first int) []meta.Op {
	for p := first; p < len(t.Partitions); p++ {
		t.Partitions[p].ControllerEpoch = c.Epoch()
		ops = append(ops,
			meta.CreateOp(meta.PartitionPath(t.Name, int32(p)), nil, meta.Persistent),
			meta.CreateOp(meta.PartitionStatePath(t.Name, int32(p)), c.encodeState(&t.Partitions[p]), meta.Persistent))
	}
	return ops
}

func results(plans []plan) []CreateResult {
	out := make([]CreateResult, len(plans))
	for i := range plans {
		out[i] = CreateResult{plans[i].topic, plans[i].err}
	}
	return out
}
