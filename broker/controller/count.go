package controller

import (
	"context"
	"errors"

	"gregor/broker/meta"
)

// PartitionCount is how many partitions a topic has, 0 when there is no such topic or it is being deleted.
func (c *Controller) PartitionCount(ctx context.Context, name string) (int, error) {
	data, _, err := c.tree.Get(ctx, meta.TopicPath(name))
	if errors.Is(err, meta.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, _, err = c.tree.Get(ctx, meta.DeleteTopicPath(name))
	if !errors.Is(err, meta.ErrNoNode) {
		return 0, err
	}
	t, err := decodeTopic(name, data)
	return len(t.Partitions), err
}
