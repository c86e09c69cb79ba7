package controller

import (
	"context"
	"errors"
	"fmt"

	"gregor/broker/meta"
)

// DeleteTopics marks topics for deletion, all in one step; an error says that none was marked. From then on Load shows them as Deleting, also
// after a crash, until CompleteDelete. Topics that do not exist or are marked already are passed over.
func (c *Controller) DeleteTopics(ctx context.Context, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ops []meta.Op
	for _, name := range names {
		_, _, err := c.tree.Get(ctx, meta.TopicPath(name))
		if errors.Is(err, meta.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		_, _, err = c.tree.Get(ctx, meta.DeleteTopicPath(name))
		if errors.Is(err, meta.ErrNoNode) {
			ops = append(ops, meta.CreateOp(meta.DeleteTopicPath(name), nil, meta.Persistent))
		} else if err != nil {
			return err
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := c.multi(ctx, ops...); err != nil {
		return fmt.Errorf("marking %d topics for deletion: %w", len(names), err)
	}
	return nil
}

// CompleteDelete removes all that the tree has of topics whose replicas are gone, in one step for all. It may be repeated.
func (c *Controller) CompleteDelete(ctx context.Context, names ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ops []meta.Op
	for _, name := range names {
		paths, err := c.existing(ctx, &Topic{Name: name})
		if err != nil {
			return err
		}
		for i := len(paths) - 1; i >= 0; i-- {
			ops = append(ops, meta.DeleteOp(paths[i], meta.AnyVersion))
		}
		for _, path := range []string{meta.TopicPath(name), meta.TopicConfigPath(name), meta.DeleteTopicPath(name)} {
			_, _, err := c.tree.Get(ctx, path)
			if err == nil {
				ops = append(ops, meta.DeleteOp(path, meta.AnyVersion))
			} else if !errors.Is(err, meta.ErrNoNode) {
				return err
			}
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := c.multi(ctx, ops...); err != nil {
		return fmt.Errorf("removing %d topics from the metadata: %w", len(names), err)
	}
	return nil
}
