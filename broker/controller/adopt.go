package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gregor/broker/meta"
)

// Adoption is what a tree begins with when the data was there before it.
type Adoption struct {
	// ClusterID is that of the data, "" for a new one.
	ClusterID string
	// Topics need a name, an id, keys and of each partition the leader epoch to begin with; the broker becomes the only replica of all.
	Topics []Topic
	// Entities are users, clients and addresses with their settings.
	Entities []Entity
	// NextProducerID is the first producer id that was never given out.
	NextProducerID int64
}

// IsNew reports if nothing was ever written to the tree: Start makes the root paths then, or Adopt.
func IsNew(ctx context.Context, tree meta.Tree) (bool, error) {
	_, _, err := tree.Get(ctx, meta.ClusterIDPath)
	if errors.Is(err, meta.ErrNoNode) {
		return true, nil
	}
	return false, err
}

// Adopt fills a new tree in one step: after a crash it is as new as before, or whole. Start goes on from there.
func Adopt(ctx context.Context, tree meta.Tree, broker int32, a Adoption) error {
	c := &Controller{tree: tree, conf: Config{BrokerID: broker}}
	ops := []meta.Op{meta.CreateOp(meta.ControllerEpochPath, meta.EncodeEpoch(0), meta.Persistent)}
	for i := range a.Topics {
		t := a.Topics[i]
		t.Partitions = make([]Partition, len(a.Topics[i].Partitions))
		for n := range t.Partitions {
			epoch := a.Topics[i].Partitions[n].LeaderEpoch
			t.Partitions[n] = Partition{Replicas: []int32{broker}, ISR: []int32{broker}, Leader: broker, LeaderEpoch: epoch}
		}
		ops = append(ops,
			meta.CreateOp(meta.TopicConfigPath(t.Name), meta.EncodeConfig(t.Config), meta.Persistent),
			meta.CreateOp(meta.TopicPath(t.Name), encodeTopic(&t), meta.Persistent),
			meta.CreateOp(meta.PartitionsPath(t.Name), nil, meta.Persistent))
		ops = c.appendPartitions(ops, &t, 0)
	}
	ops = append(ops, entityOps(a.Entities)...)
	if a.NextProducerID > math.MaxInt64-producerIDBlock {
		return fmt.Errorf("producer ids are used up: the next one is %d", a.NextProducerID)
	}
	if n := a.NextProducerID; n > 0 {
		last := meta.ProducerIDBlock{Broker: broker, Start: max(n-producerIDBlock, 0), End: n - 1}
		ops = append(ops, meta.SetOp(meta.ProducerIDBlockPath, last.Encode(), meta.AnyVersion))
	}
	id := a.ClusterID
	if id == "" {
		id = FormatID(NewID())
	}
	ops = append(ops, meta.CreateOp(meta.ClusterIDPath, meta.EncodeClusterID(id), meta.Persistent))
	if err := meta.EnsureRoot(ctx, tree, ops...); err != nil {
		return fmt.Errorf("writing %d topics that were found: %w", len(a.Topics), err)
	}
	return nil
}

// entityOps makes the nodes of entities, each with what is above it.
func entityOps(all []Entity) (ops []meta.Op) {
	own := make(map[string][]byte, len(all))
	paths := map[string]struct{}{}
	for _, e := range all {
		own[e.Path] = meta.EncodeConfig(e.Keys)
		for path := e.Path; strings.Count(path, "/") > 2; path = path[:strings.LastIndexByte(path, '/')] { // /config/users is there
			paths[path] = struct{}{}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) { // parents first
		ops = append(ops, meta.CreateOp(path, own[path], meta.Persistent))
	}
	return ops
}

// ReadTopics reads the topics of a tree without taking the controller's seat: for tools, while no broker runs. Nothing is changed.
// Topics that are marked for deletion are left out.
func ReadTopics(ctx context.Context, tree meta.Tree) ([]Topic, error) {
	c := &Controller{tree: tree}
	names, err := tree.Children(ctx, meta.TopicsPath)
	if err != nil {
		return nil, err
	}
	deleting, err := tree.Children(ctx, meta.DeleteTopicsPath)
	if err != nil {
		return nil, err
	}
	var topics []Topic
	for _, name := range names {
		if slices.Contains(deleting, name) {
			continue
		}
		t, err := c.loadTopic(ctx, name)
		if err != nil {
			return nil, err
		}
		for p := range t.Partitions {
			if err := c.loadState(ctx, &t, p); err != nil && !errors.Is(err, meta.ErrNoNode) {
				return nil, err
			}
		}
		topics = append(topics, t)
	}
	return topics, nil
}

// ReadEntities reads the users, clients and addresses of a tree that have settings, as ReadTopics does the topics.
func ReadEntities(ctx context.Context, tree meta.Tree) ([]Entity, error) {
	c := &Controller{tree: tree}
	return c.Entities(ctx)
}
