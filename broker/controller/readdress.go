package controller

import (
	"context"
	"fmt"
	"slices"

	"gregor/broker/meta"
)

// Readdress changes the addresses of this broker's registration. The time of its start stays, which others know it by.
func (c *Controller) Readdress(ctx context.Context, endpoints []Endpoint) error {
	path := meta.BrokerPath(c.conf.BrokerID)
	data, version, err := c.tree.Get(ctx, path)
	if err != nil {
		return fmt.Errorf("reading the registration of broker %d: %w", c.conf.BrokerID, err)
	}
	n, err := meta.DecodeBroker(data)
	if err != nil {
		return at(path, err)
	}
	n.Endpoints = slices.Clone(endpoints)
	for i := range n.Endpoints {
		if e := &n.Endpoints[i]; e.Protocol == "" {
			e.Protocol = "PLAINTEXT"
		}
	}
	if err := c.tree.Multi(ctx, meta.SetOp(path, n.Encode(), version)); err != nil {
		return fmt.Errorf("registering broker %d with other addresses: %w", c.conf.BrokerID, err)
	}
	return nil
}
