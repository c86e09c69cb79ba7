package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gregor/broker/meta"
)

// Entity is a user, client or address that has settings of its own: quotas, and of users their SCRAM credentials.
type Entity struct {
	Path string // /config/users/U, /config/users/U/clients/C, /config/clients/C or /config/ips/I, with names as the tree has them
	Keys map[string]string
}

// Entities returns all that have settings.
func (c *Controller) Entities(ctx context.Context) ([]Entity, error) {
	var all []Entity
	for _, parent := range []string{"/config/users", "/config/clients", "/config/ips"} {
		names, err := c.children(ctx, parent)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			path := parent + "/" + name
			if all, err = c.entity(ctx, all, path); err != nil {
				return nil, err
			}
			clients, err := c.children(ctx, path+"/clients")
			if err != nil {
				return nil, err
			}
			for _, client := range clients {
				if all, err = c.entity(ctx, all, path+"/clients/"+client); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// children of a node that may not be there.
func (c *Controller) children(ctx context.Context, path string) ([]string, error) {
	names, err := c.tree.Children(ctx, path)
	if errors.Is(err, meta.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// entity appends what path has, if that is anything.
func (c *Controller) entity(ctx context.Context, all []Entity, path string) ([]Entity, error) {
	keys, _, err := c.readConfig(ctx, path)
	if c.unreadable("settings are left out, they cannot be read", err) {
		return all, nil
	}
	if err != nil || len(keys) == 0 {
		return all, err
	}
	return append(all, Entity{path, keys}), nil
}

// EntityConfig returns the settings of the entity at path, none if it has none.
func (c *Controller) EntityConfig(ctx context.Context, path string) (map[string]string, error) {
	keys, _, err := c.readConfig(ctx, path)
	return keys, err
}

// AlterEntity changes the settings of the entity at path and returns all that it has then. The keys are not checked. A nil value removes a key.
func (c *Controller) AlterEntity(ctx context.Context, path string, change map[string]*string) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, _, err := c.readConfig(ctx, path)
	if err != nil {
		return nil, err
	}
	for name, value := range change {
		if value == nil {
			delete(keys, name)
		} else {
			keys[name] = *value
		}
	}
	if err := c.makeParents(ctx, path); err != nil {
		return nil, err
	}
	return keys, c.writeConfig(ctx, path, keys)
}

// makeParents makes the nodes above path that are missing, empty as Kafka does.
func (c *Controller) makeParents(ctx context.Context, path string) error {
	var ops []meta.Op
	for i := 1; ; i++ {
		next := strings.IndexByte(path[i:], '/')
		if next < 0 {
			break
		}
		i += next
		_, _, err := c.tree.Get(ctx, path[:i])
		switch {
		case errors.Is(err, meta.ErrNoNode):
			ops = append(ops, meta.CreateOp(path[:i], nil, meta.Persistent))
		case err != nil:
			return err
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := c.change(ctx, ops...); err != nil {
		return fmt.Errorf("making the nodes above %s: %w", path, err)
	}
	return nil
}
