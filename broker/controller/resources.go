package controller

import (
	"context"
	"errors"
	"fmt"

	"gregor/broker/meta"
	"gregor/broker/quota"
)

// ResourceKind is a kind of things that have a configuration and need not exist otherwise, named as its parent in the tree.
type ResourceKind string

// Kinds of resources. Kafka's own schema has neither, since its ZooKeeper mode ended before them: the paths follow its others.
const (
	Groups        ResourceKind = "groups"
	ClientMetrics ResourceKind = "client-metrics"
)

func (k ResourceKind) path() string { return "/config/" + string(k) }

func (k ResourceKind) node(name string) string { return k.path() + "/" + quota.Sanitize(name) }

// Resources returns the keys of all resources of a kind that have any, by name.
func (c *Controller) Resources(ctx context.Context, kind ResourceKind) (map[string]map[string]string, error) {
	nodes, err := c.children(ctx, kind.path())
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]string, len(nodes))
	for _, node := range nodes {
		path := kind.path() + "/" + node
		name, err := quota.Desanitize(node)
		if err != nil {
			return nil, at(path, err)
		}
		own, _, err := c.readConfig(ctx, path)
		if c.unreadable("settings are left out, they cannot be read", err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(own) > 0 {
			all[name] = own
		}
	}
	return all, nil
}

// AlterResource replaces the keys of one resource as a whole; without any it is forgotten. The keys are not checked.
func (c *Controller) AlterResource(ctx context.Context, kind ResourceKind, name string, own map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := kind.node(name)
	if len(own) == 0 {
		_, version, err := c.tree.Get(ctx, path)
		if errors.Is(err, meta.ErrNoNode) {
			return nil
		}
		if err == nil {
			err = c.change(ctx, append(c.notice(path), meta.DeleteOp(path, version))...)
		}
		if err != nil {
			return fmt.Errorf("deleting configuration %s: %w", path, err)
		}
		return nil
	}
	if err := c.makeParents(ctx, path); err != nil {
		return err
	}
	return c.writeConfig(ctx, path, own)
}
