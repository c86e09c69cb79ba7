package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"gregor/broker/meta"
)

// Config configures a Controller.
type Config struct {
	// BrokerID is this broker's id, 0 or greater.
	BrokerID int32
	// ClusterID is that of the broker's data. A new cluster takes it; an older one must have it. "" takes what is there, or a new one.
	ClusterID string
	// Endpoints are what the broker registers with.
	Endpoints []Endpoint
	// Rack is broker.rack, "" for none.
	Rack string
	// Partitions and Replication are for topics that ask for the default (num.partitions, default.replication.factor); 0 means 1. A default
	// of more replicas than there are brokers means as many as there are.
	Partitions  int32
	Replication int16
	// CheckConfig checks a topic's own keys; nil accepts all. The error's text is shown to the user with INVALID_CONFIG.
	CheckConfig func(map[string]string) error
	// Now is the clock, nil for time.Now.
	Now func() time.Time
	// Logger is nil to discard.
	Logger *slog.Logger
}

// Endpoint is one address of a broker. An empty Protocol is PLAINTEXT.
type Endpoint = meta.Endpoint

// Controller is the holder of the controller's seat.
type Controller struct {
	tree      meta.Tree
	conf      Config
	logger    *slog.Logger
	clusterID string
	epoch     int32 // of the seat, written into every partition state
	seat      int32 // version of /controller_epoch under that epoch

	mu sync.Mutex // serialises changes
}

// Start makes the root paths and the cluster's id if they are missing, registers the broker, and takes the controller's seat. A registration
// that an earlier session of this broker left behind is waited for until the context ends. The tree stays the caller's; closing it ends the
// registration and the seat.
func Start(ctx context.Context, tree meta.Tree, conf Config) (*Controller, error) {
	c := &Controller{tree: tree, conf: conf, logger: conf.Logger}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.conf.Now == nil {
		c.conf.Now = time.Now
	}
	if c.conf.CheckConfig == nil {
		c.conf.CheckConfig = func(map[string]string) error { return nil }
	}
	c.conf.Partitions = max(c.conf.Partitions, 1)
	c.conf.Replication = max(c.conf.Replication, 1)
	if err := c.ensureRoots(ctx); err != nil {
		return nil, fmt.Errorf("making the root paths: %w", err)
	}
	if err := c.register(ctx); err != nil {
		return nil, fmt.Errorf("registering broker %d: %w", conf.BrokerID, err)
	}
	if err := c.elect(ctx); err != nil {
		return nil, fmt.Errorf("taking the controller's seat: %w", err)
	}
	return c, nil
}

// ClusterID is the cluster's id, 22 characters.
func (c *Controller) ClusterID() string { return c.clusterID }

// Epoch is the controller epoch; it grows by one with each Start.
func (c *Controller) Epoch() int32 { return c.epoch }

// ensureRoots makes what Kafka makes at its first start, and reads the cluster's id.
func (c *Controller) ensureRoots(ctx context.Context) error {
	data, _, err := c.tree.Get(ctx, meta.ClusterIDPath)
	if errors.Is(err, meta.ErrNoNode) {
		if err = c.createRoots(ctx); err == nil {
			data, _, err = c.tree.Get(ctx, meta.ClusterIDPath)
		}
	}
	if err != nil {
		return err
	}
	c.clusterID, err = meta.DecodeClusterID(data)
	if err == nil && c.conf.ClusterID != "" && c.conf.ClusterID != c.clusterID {
		return fmt.Errorf("meta.properties says cluster.id=%s, the metadata file is of cluster %s: one of them belongs elsewhere; if they belong together, "+
			"as after meta.properties was lost, set cluster.id=%s in the meta.properties of every log directory", c.conf.ClusterID, c.clusterID, c.clusterID)
	}
	return at(meta.ClusterIDPath, err)
}

// createRoots makes the missing root paths, the cluster's id last, so that its presence says that all are there.
func (c *Controller) createRoots(ctx context.Context) error {
	var ops []meta.Op
	_, _, err := c.tree.Get(ctx, meta.ControllerEpochPath)
	if errors.Is(err, meta.ErrNoNode) {
		ops = append(ops, meta.CreateOp(meta.ControllerEpochPath, meta.EncodeEpoch(0), meta.Persistent))
	} else if err != nil {
		return err
	}
	id := c.conf.ClusterID
	if id == "" {
		id = FormatID(NewID())
	}
	ops = append(ops, meta.CreateOp(meta.ClusterIDPath, meta.EncodeClusterID(id), meta.Persistent))
	err = meta.EnsureRoot(ctx, c.tree, ops...)
	if errors.Is(err, meta.ErrNodeExists) {
		return nil // another broker was quicker with some of them; it makes the rest
	}
	return err
}

// register makes the broker's ephemeral node.
func (c *Controller) register(ctx context.Context) error {
	op := meta.CreateOp(meta.BrokerPath(c.conf.BrokerID), c.registration(), meta.Ephemeral)
	return c.createWhenGone(ctx, meta.BrokerPath(c.conf.BrokerID), func() error { return c.tree.Multi(ctx, op) })
}

func (c *Controller) registration() []byte {
	n := meta.BrokerNode{Endpoints: slices.Clone(c.conf.Endpoints), Rack: c.conf.Rack, Timestamp: c.conf.Now().UnixMilli()}
	for i := range n.Endpoints {
		if e := &n.Endpoints[i]; e.Protocol == "" {
			e.Protocol = "PLAINTEXT"
		}
	}
	return n.Encode()
}

// elect takes the controller's seat and begins a new epoch, in one step.
func (c *Controller) elect(ctx context.Context) error {
	return c.createWhenGone(ctx, meta.ControllerPath, func() error {
		data, version, err := c.tree.Get(ctx, meta.ControllerEpochPath)
		if err != nil {
			return err
		}
		epoch, err := meta.DecodeEpoch(data)
		if err != nil {
			return at(meta.ControllerEpochPath, err)
		}
		seat := meta.ControllerNode{Broker: c.conf.BrokerID, Timestamp: c.conf.Now().UnixMilli()}
		err = c.tree.Multi(ctx,
			meta.SetOp(meta.ControllerEpochPath, meta.EncodeEpoch(epoch+1), version),
			meta.CreateOp(meta.ControllerPath, seat.Encode(), meta.Ephemeral))
		c.epoch, c.seat = epoch+1, version+1
		return err
	})
}

// createWhenGone calls create, and again after each change of the path, until it does not fail with ErrNodeExists any more.
func (c *Controller) createWhenGone(ctx context.Context, path string, create func() error) error {
	err := create()
	if !errors.Is(err, meta.ErrNodeExists) {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := c.tree.Watch(watching, path)
	if err != nil {
		return err
	}
	c.logger.Info("waiting for the end of an older session", "node", path)
	for {
		if err := create(); !errors.Is(err, meta.ErrNodeExists) {
			return err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("%w: another session holds %s: %w", ErrRegistered, path, ctx.Err())
		}
	}
}

// multi does ops under the seat: nothing happens when another broker took it.
func (c *Controller) multi(ctx context.Context, ops ...meta.Op) error {
	err := c.tree.Multi(ctx, append(ops, meta.CheckOp(meta.ControllerEpochPath, c.seat))...)
	if !errors.Is(err, meta.ErrBadVersion) {
		return err
	}
	if _, version, e := c.tree.Get(ctx, meta.ControllerEpochPath); e == nil && version != c.seat {
		return ErrNotController
	}
	return err
}

// brokers lists the live brokers.
func (c *Controller) brokers(ctx context.Context) ([]int32, error) {
	names, err := c.tree.Children(ctx, meta.BrokersPath)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, 0, len(names))
	for _, name := range names {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("metadata node %s/%s is not a broker id: %w", meta.BrokersPath, name, err)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// at names the node that an error is about.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("metadata node %s: %w", path, err)
}
