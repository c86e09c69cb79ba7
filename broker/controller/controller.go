package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	// MaxReplication is how many replicas a new partition may have, 0 for as many as there are brokers.
	MaxReplication int16
	// CheckConfig checks a topic's own keys; nil accepts all. The error's text is shown to the user with INVALID_CONFIG.
	CheckConfig func(map[string]string) error
	// KnownID is the id that a topic with so many partitions has in the logs, all zero for none; nil knows none. Kafka's tools before 2.8 write topics
	// without their ids, those that they add partitions to as well.
	KnownID func(name string, partitions int) [16]byte
	// Shared says that other brokers and tools change the tree too: a big change is then several steps, one after the other, since ZooKeeper takes
	// only so much at once; what a crash leaves of it is completed by Load.
	Shared bool
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
	isNew     bool                 // there was no cluster
	seat      atomic.Pointer[seat] // nil: another broker is the controller, or nobody

	mu sync.Mutex // serialises changes
}

// seat is the controller's, for one epoch.
type seat struct {
	epoch   int32 // written into every partition state
	version int32 // of /controller_epoch under that epoch
}

// Start is Open, Register and Elect for a tree that no other broker uses: what an earlier session left behind is waited for until the context ends.
func Start(ctx context.Context, tree meta.Tree, conf Config) (*Controller, error) {
	c, err := Open(ctx, tree, conf)
	if err != nil {
		return nil, err
	}
	if err := c.Register(ctx, conf.Endpoints); err != nil {
		return nil, err
	}
	if err := c.createWhenGone(ctx, meta.ControllerPath, func() error { return c.elect(ctx) }); err != nil {
		return nil, fmt.Errorf("taking the controller's seat: %w", err)
	}
	return c, nil
}

// Open makes the root paths and the cluster's id if they are missing. The tree stays the caller's; closing it ends the registration and the seat.
func Open(ctx context.Context, tree meta.Tree, conf Config) (*Controller, error) {
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
	if c.conf.KnownID == nil {
		c.conf.KnownID = func(string, int) [16]byte { return [16]byte{} }
	}
	c.conf.Partitions = max(c.conf.Partitions, 1)
	c.conf.Replication = max(c.conf.Replication, 1)
	if err := c.ensureRoots(ctx); err != nil {
		return nil, fmt.Errorf("making the root paths: %w", err)
	}
	return c, nil
}

// ClusterID is the cluster's id, 22 characters.
func (c *Controller) ClusterID() string { return c.clusterID }

// Epoch is the controller epoch of this broker's seat, which grows by one with each election; -1 when another has it.
func (c *Controller) Epoch() int32 {
	if s := c.seat.Load(); s != nil {
		return s.epoch
	}
	return -1
}

// Seated says whether this broker is the controller, as far as it knows.
func (c *Controller) Seated() bool { return c.seat.Load() != nil }

// Resign gives the seat up in memory: it was lost, or may have been.
func (c *Controller) Resign() { c.seat.Store(nil) }

// ensureRoots makes what Kafka makes at its first start, and reads the cluster's id.
func (c *Controller) ensureRoots(ctx context.Context) error {
	data, _, err := c.tree.Get(ctx, meta.ClusterIDPath)
	c.isNew = errors.Is(err, meta.ErrNoNode)
	if c.isNew || err == nil && c.conf.Shared { // which an older Kafka may have made
		if err = c.createRoots(ctx); err == nil {
			data, _, err = c.tree.Get(ctx, meta.ClusterIDPath)
		}
	}
	if err != nil {
		return err
	}
	c.clusterID, err = meta.DecodeClusterID(data)
	if err == nil && c.conf.ClusterID != "" && c.conf.ClusterID != c.clusterID {
		return fmt.Errorf("meta.properties says cluster.id=%s, the metadata is of cluster %s: one of them belongs elsewhere; if they belong together, "+
			"as after meta.properties was lost, set cluster.id=%s in the meta.properties of every log directory", c.conf.ClusterID, c.clusterID, c.clusterID)
	}
	return at(meta.ClusterIDPath, err)
}

// createRoots makes the missing root paths, the cluster's id last, so that its presence says that all are there.
func (c *Controller) createRoots(ctx context.Context) error {
	id := c.conf.ClusterID
	if id == "" {
		id = FormatID(NewID())
	}
	for {
		var ops []meta.Op
		roots := []meta.Op{
			meta.CreateOp(meta.ControllerEpochPath, meta.EncodeEpoch(0), meta.Persistent),
			meta.CreateOp(meta.ClusterIDPath, meta.EncodeClusterID(id), meta.Persistent),
		}
		if c.conf.Shared && c.isNew { // as Kafka does from 2.7 on; in a cluster of an older one it would be wrong
			roots = append(roots, meta.CreateOp(meta.FeaturePath, meta.FeatureNode{Version: 2, Enabled: true}.Encode(), meta.Persistent))
		}
		for _, op := range roots {
			_, _, err := c.tree.Get(ctx, op.Path())
			if errors.Is(err, meta.ErrNoNode) {
				ops = append(ops, op)
			} else if err != nil {
				return err
			}
		}
		err := meta.EnsureRoot(ctx, c.tree, ops...)
		if !errors.Is(err, meta.ErrNodeExists) { // another broker was quicker with some of them
			return err
		}
	}
}

// Register makes the broker's ephemeral node. One that an earlier session of this broker left behind is waited for until the context ends; then, or
// when another broker has the id, the error says by whom it is taken.
func (c *Controller) Register(ctx context.Context, endpoints []Endpoint) error {
	path := meta.BrokerPath(c.conf.BrokerID)
	op := meta.CreateOp(path, c.registration(endpoints), meta.Ephemeral)
	err := c.SameCluster(ctx)
	if err == nil {
		err = c.createWhenGone(ctx, path, func() error { return c.tree.Multi(ctx, op) })
	}
	if err != nil {
		return fmt.Errorf("registering broker %d: %w", c.conf.BrokerID, err)
	}
	return nil
}

func (c *Controller) registration(endpoints []Endpoint) []byte {
	n := meta.BrokerNode{Endpoints: slices.Clone(endpoints), Rack: c.conf.Rack, Timestamp: c.conf.Now().UnixMilli()}
	for i := range n.Endpoints {
		if e := &n.Endpoints[i]; e.Protocol == "" {
			e.Protocol = "PLAINTEXT"
		}
	}
	return n.Encode()
}

// Elect takes the controller's seat if nobody has it. It returns who has it then: -1 when it became free again meanwhile. Watch ControllerPath to
// hear of the next election.
func (c *Controller) Elect(ctx context.Context) (controller int32, err error) {
	for range retries {
		err = c.elect(ctx)
		if err == nil {
			return c.conf.BrokerID, nil
		}
		if !errors.Is(err, meta.ErrNodeExists) && !errors.Is(err, meta.ErrBadVersion) {
			return noController, fmt.Errorf("taking the controller's seat: %w", err)
		}
		controller, err = c.Holder(ctx)
		if err != nil || controller != c.conf.BrokerID {
			return controller, err
		}
		// Of an earlier session of this broker, or of an attempt whose answer was lost: nobody acts on it.
		err = c.tree.Multi(ctx, meta.DeleteOp(meta.ControllerPath, meta.AnyVersion))
		if err != nil && !errors.Is(err, meta.ErrNoNode) {
			return noController, fmt.Errorf("giving back the controller's seat: %w", err)
		}
	}
	return noController, nil
}

// noController stands for nobody.
const noController = -1

// Holder is the broker that has the controller's seat in the tree, -1 for none.
func (c *Controller) Holder(ctx context.Context) (int32, error) {
	data, _, err := c.tree.Get(ctx, meta.ControllerPath)
	if errors.Is(err, meta.ErrNoNode) {
		return noController, nil
	}
	if err != nil {
		return noController, err
	}
	n, err := meta.DecodeController(data)
	return n.Broker, at(meta.ControllerPath, err)
}

// elect takes the controller's seat and begins a new epoch, in one step.
func (c *Controller) elect(ctx context.Context) error {
	data, version, err := c.tree.Get(ctx, meta.ControllerEpochPath)
	if err != nil {
		return err
	}
	epoch, err := meta.DecodeEpoch(data)
	if err != nil {
		return at(meta.ControllerEpochPath, err)
	}
	node := meta.ControllerNode{Broker: c.conf.BrokerID, Timestamp: c.conf.Now().UnixMilli()}
	err = c.tree.Multi(ctx,
		meta.SetOp(meta.ControllerEpochPath, meta.EncodeEpoch(epoch+1), version),
		meta.CreateOp(meta.ControllerPath, node.Encode(), meta.Ephemeral))
	if err == nil {
		c.seat.Store(&seat{epoch + 1, version + 1})
	}
	return err
}

// holding says who has a registration, for an error.
func (c *Controller) holding(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	data, _, err := c.tree.Get(ctx, path)
	if err != nil {
		return ""
	}
	if n, err := meta.DecodeBroker(data); err == nil && len(n.Endpoints) > 0 {
		return fmt.Sprintf(", a broker at %s that started at %s", n.Endpoints[0], time.UnixMilli(n.Timestamp).UTC().Format(time.RFC3339))
	}
	return ""
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
			return fmt.Errorf("%w: another session holds %s%s: %w", ErrRegistered, path, c.holding(path), ctx.Err())
		}
	}
}

// maxShared is how many ops a step on a shared tree has: ZooKeeper takes 1 MiB (jute.maxbuffer), an op of ours is some hundred bytes.
const maxShared = 1000

// multi does ops under the seat: nothing happens when another broker took it.
func (c *Controller) multi(ctx context.Context, ops ...meta.Op) error {
	if c.conf.Shared {
		for len(ops) > maxShared {
			if err := c.step(ctx, ops[:maxShared:maxShared]); err != nil {
				return err
			}
			ops = ops[maxShared:]
		}
	}
	return c.step(ctx, ops)
}

func (c *Controller) step(ctx context.Context, ops []meta.Op) error {
	seat := c.seat.Load()
	if seat == nil {
		return ErrNotController
	}
	err := c.tree.Multi(ctx, append(ops, meta.CheckOp(meta.ControllerEpochPath, seat.version))...)
	if !errors.Is(err, meta.ErrBadVersion) {
		return err
	}
	if _, version, e := c.tree.Get(ctx, meta.ControllerEpochPath); e == nil && version != seat.version {
		c.seat.CompareAndSwap(seat, nil)
		return ErrNotController
	}
	return err
}

// change does ops that need no seat: configurations in a shared tree, which any broker may change, as in Kafka.
func (c *Controller) change(ctx context.Context, ops ...meta.Op) error {
	if c.conf.Shared {
		return c.tree.Multi(ctx, ops...)
	}
	return c.multi(ctx, ops...)
}

// notice is what tells the other brokers of a shared tree that a configuration has changed.
func (c *Controller) notice(path string) []meta.Op {
	entity, ok := strings.CutPrefix(path, "/config/")
	if !c.conf.Shared || !ok {
		return nil
	}
	return []meta.Op{meta.SequentialOp(meta.ConfigChangePrefix, meta.ConfigChange{Entity: entity}.Encode())}
}

// Brokers returns what is registered by those that live.
func (c *Controller) Brokers(ctx context.Context) (map[int32]meta.BrokerNode, error) {
	names, err := c.tree.Children(ctx, meta.BrokersPath)
	if err != nil {
		return nil, err
	}
	live := make(map[int32]meta.BrokerNode, len(names))
	for _, name := range names {
		number, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			err = at(meta.BrokersPath+"/"+name, fmt.Errorf("%w: its name is not a broker id", meta.ErrBadNode))
			if c.unreadable(brokerLeftOut, err) {
				continue
			}
			return nil, err
		}
		id := int32(number)
		data, _, err := c.tree.Get(ctx, meta.BrokerPath(id))
		if errors.Is(err, meta.ErrNoNode) {
			continue // left meanwhile
		}
		if err != nil {
			return nil, err
		}
		node, err := meta.DecodeBroker(data)
		if err == nil {
			live[id] = node
		} else if err = at(meta.BrokerPath(id), err); !c.unreadable(brokerLeftOut, err) {
			return nil, err
		}
	}
	return live, nil
}

const brokerLeftOut = "broker is left out, its registration cannot be read"

// brokers lists the live brokers.
func (c *Controller) brokers(ctx context.Context) ([]int32, error) {
	live, err := c.Brokers(ctx)
	return slices.Sorted(maps.Keys(live)), err
}

// at names the node that an error is about.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("metadata node %s: %w", path, err)
}
