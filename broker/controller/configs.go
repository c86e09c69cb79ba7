package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gregor/broker/meta"
)

// ClusterDefault is the name of the configuration that all brokers share.
const ClusterDefault = "<default>"

// BrokerName is the name of one broker's configuration.
func BrokerName(id int32) string { return strconv.Itoa(int(id)) }

func brokerConfigPath(name string) string { return "/config/brokers/" + name }

// AlterTopicConfig replaces a topic's own keys as a whole. Whoever changes single keys computes the set under a lock of its own. The keys are
// not checked. A topic that does not exist is an *Error.
func (c *Controller) AlterTopicConfig(ctx context.Context, name string, own map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, err := c.tree.Get(ctx, meta.TopicPath(name))
	if errors.Is(err, meta.ErrNoNode) {
		return unknownTopic()
	}
	if err != nil {
		return err
	}
	return c.writeConfig(ctx, meta.TopicConfigPath(name), own)
}

// TopicConfig returns a topic's own keys.
func (c *Controller) TopicConfig(ctx context.Context, name string) (map[string]string, error) {
	own, _, err := c.readConfig(ctx, meta.TopicConfigPath(name))
	return own, err
}

// AlterBrokerConfig replaces the dynamic keys of one broker (BrokerName) or of all (ClusterDefault) as a whole. The keys are not checked.
func (c *Controller) AlterBrokerConfig(ctx context.Context, name string, own map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeConfig(ctx, brokerConfigPath(name), own)
}

// BrokerConfig returns the dynamic keys of one broker (BrokerName) or of all (ClusterDefault).
func (c *Controller) BrokerConfig(ctx context.Context, name string) (map[string]string, error) {
	own, _, err := c.readConfig(ctx, brokerConfigPath(name))
	return own, err
}

// writeConfig needs mu.
func (c *Controller) writeConfig(ctx context.Context, path string, own map[string]string) error {
	_, version, err := c.readConfig(ctx, path)
	if err != nil {
		return err
	}
	op := meta.SetOp(path, meta.EncodeConfig(own), version)
	if version < 0 {
		op = meta.CreateOp(path, meta.EncodeConfig(own), meta.Persistent)
	}
	if err := c.change(ctx, append(c.notice(path), op)...); err != nil {
		return fmt.Errorf("writing configuration %s: %w", path, err)
	}
	return nil
}
