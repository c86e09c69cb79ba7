package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gregor/broker/meta"
)

// readers is how many nodes Load reads at a time: enough to use the cores, or the time that a server in the network takes.
const readers = 64

// Load returns all topics, sorted by name, also those that are marked for deletion. Partitions that have no state, because Kafka's old tools
// wrote only the topic's assignment, and topics without an id get theirs first.
func (c *Controller) Load(ctx context.Context) ([]Topic, error) {
	names, err := c.tree.Children(ctx, meta.TopicsPath)
	if err != nil {
		return nil, err
	}
	deleting, err := c.tree.Children(ctx, meta.DeleteTopicsPath)
	if err != nil {
		return nil, err
	}
	topics, err := c.loadTopics(ctx, names)
	if err != nil {
		return nil, err
	}
	if topics, err = c.loadStates(ctx, topics); err != nil {
		return nil, err
	}
	for i := range topics {
		_, topics[i].Deleting = slices.BinarySearch(deleting, topics[i].Name)
	}
	return topics, nil
}

// LoadTopics is Load for some topics. Those that do not exist are left out.
func (c *Controller) LoadTopics(ctx context.Context, names ...string) ([]Topic, error) {
	topics, err := c.loadTopics(ctx, names)
	if err != nil {
		return nil, err
	}
	return c.loadStates(ctx, topics)
}

// loadTopics reads topics without the states of their partitions. In a shared tree one that went meanwhile, or that a tool wrote badly, is left out.
func (c *Controller) loadTopics(ctx context.Context, names []string) ([]Topic, error) {
	topics, bad := make([]Topic, len(names)), make([]bool, len(names))
	err := InParallel(len(names), func(i int) (err error) {
		topics[i], err = c.loadTopic(ctx, names[i])
		bad[i] = err != nil
		if err == nil || c.conf.Shared && errors.Is(err, meta.ErrNoNode) || c.unreadable("topic is left out, its metadata cannot be read", err) {
			return nil
		}
		return err
	})
	return without(topics, bad), err
}

// without leaves out those that are bad.
func without(topics []Topic, bad []bool) []Topic {
	kept := topics[:0]
	for i := range topics {
		if !bad[i] {
			kept = append(kept, topics[i])
		}
	}
	return kept
}

// unreadable says whether err is that of a node which a tool wrote badly into a shared tree, and logs it. Whatever it is of is left out, and the rest goes on.
func (c *Controller) unreadable(what string, err error) bool {
	if !c.conf.Shared || !errors.Is(err, meta.ErrBadNode) {
		return false
	}
	c.logger.Error(what, "error", err)
	return true
}

// loadTopic reads a topic's assignment and configuration.
func (c *Controller) loadTopic(ctx context.Context, name string) (Topic, error) {
	data, _, err := c.tree.Get(ctx, meta.TopicPath(name))
	if err != nil {
		return Topic{}, err
	}
	t, err := decodeTopic(name, data)
	if err != nil {
		return Topic{}, err
	}
	if t.noID {
		t.ID = c.conf.KnownID(name, len(t.Partitions))
	}
	t.Config, _, err = c.readConfig(ctx, meta.TopicConfigPath(name))
	return t, err
}

// loadStates reads the state of all partitions, and makes what is missing. In a shared tree a topic with a state that cannot be read is left out.
func (c *Controller) loadStates(ctx context.Context, topics []Topic) ([]Topic, error) {
	type place struct{ topic, partition int }
	var all []place
	for i := range topics {
		for p := range topics[i].Partitions {
			all = append(all, place{i, p})
		}
	}
	var stateless atomic.Bool
	bad := make([]atomic.Bool, len(topics))
	err := InParallel(len(all), func(i int) error {
		t := &topics[all[i].topic]
		err := c.loadState(ctx, t, all[i].partition)
		if errors.Is(err, meta.ErrNoNode) {
			stateless.Store(true)
			return nil
		}
		if c.unreadable("topic is left out, the state of a partition cannot be read", err) {
			bad[all[i].topic].Store(true)
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	left := make([]bool, len(topics))
	for i := range bad {
		left[i] = bad[i].Load()
	}
	topics = without(topics, left)
	needID := slices.ContainsFunc(topics, func(t Topic) bool { return t.noID })
	if !stateless.Load() && !needID || !c.Seated() {
		return topics, nil
	}
	return topics, c.complete(ctx, topics)
}

func (c *Controller) loadState(ctx context.Context, t *Topic, p int) error {
	path := meta.PartitionStatePath(t.Name, int32(p))
	data, version, err := c.tree.Get(ctx, path)
	if err != nil {
		return err
	}
	n, err := meta.DecodePartitionState(data)
	if err != nil {
		return at(path, err)
	}
	part := &t.Partitions[p]
	part.Leader, part.LeaderEpoch, part.ISR, part.Version, part.ControllerEpoch = n.Leader, n.LeaderEpoch, n.ISR, version, n.ControllerEpoch
	return nil
}

// complete gives topics that were made by hand what they lack.
func (c *Controller) complete(ctx context.Context, topics []Topic) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	brokers, err := c.brokers(ctx)
	if err != nil {
		return err
	}
	for i := range topics {
		if err := c.completeTopic(ctx, &topics[i], brokers); err != nil {
			return fmt.Errorf("completing topic %s: %w", topics[i].Name, err)
		}
	}
	return nil
}

func (c *Controller) completeTopic(ctx context.Context, t *Topic, brokers []int32) error {
	var ops []meta.Op
	if t.noID {
		if t.ID == [16]byte{} {
			t.ID = NewID()
		}
		ops = append(ops, meta.SetOp(meta.TopicPath(t.Name), encodeTopic(t), meta.AnyVersion))
	}
	there := map[string]bool{}
	paths, err := c.existing(ctx, t)
	if err != nil {
		return err
	}
	for _, p := range paths {
		there[p] = true
	}
	create := func(path string, data []byte) {
		if !there[path] {
			ops = append(ops, meta.CreateOp(path, data, meta.Persistent))
		}
	}
	create(meta.PartitionsPath(t.Name), nil)
	for p := range t.Partitions {
		part := &t.Partitions[p]
		if part.LeaderEpoch >= 0 {
			continue
		}
		lead(part, brokers)
		part.ControllerEpoch = c.Epoch()
		create(meta.PartitionPath(t.Name, int32(p)), nil)
		create(meta.PartitionStatePath(t.Name, int32(p)), c.encodeState(part))
	}
	if len(ops) == 0 {
		return nil
	}
	if err := c.multi(ctx, ops...); err != nil {
		return err
	}
	t.noID = false
	return nil
}

// existing lists the nodes below a topic, parents first.
func (c *Controller) existing(ctx context.Context, t *Topic) ([]string, error) {
	var paths []string
	add := func(parent string) ([]string, error) {
		names, err := c.tree.Children(ctx, parent)
		if errors.Is(err, meta.ErrNoNode) {
			return nil, nil
		}
		var children []string
		for _, n := range names {
			children = append(children, parent+"/"+n)
		}
		paths = append(paths, children...)
		return children, err
	}
	level := []string{meta.TopicPath(t.Name)}
	for len(level) > 0 {
		var next []string
		for _, parent := range level {
			children, err := add(parent)
			if err != nil {
				return nil, err
			}
			next = append(next, children...)
		}
		level = next
	}
	return paths, nil
}

// lead chooses the first leader of a new partition: the first replica that lives. All live replicas are in sync, as nothing is written.
func lead(p *Partition, brokers []int32) {
	p.Leader, p.LeaderEpoch, p.Version = -1, 0, 0
	p.ISR = []int32{}
	for _, r := range p.Replicas {
		if slices.Contains(brokers, r) {
			p.ISR = append(p.ISR, r)
		}
	}
	if len(p.ISR) > 0 {
		p.Leader = p.ISR[0]
	}
}

func (c *Controller) encodeState(p *Partition) []byte {
	return meta.PartitionState{ControllerEpoch: c.Epoch(), Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ISR: p.ISR}.Encode()
}

// readConfig reads a node of own keys; without one there are none, and its version is -1.
func (c *Controller) readConfig(ctx context.Context, path string) (map[string]string, int32, error) {
	data, version, err := c.tree.Get(ctx, path)
	if errors.Is(err, meta.ErrNoNode) {
		return map[string]string{}, -1, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if len(data) == 0 { // made as the parent of another
		return map[string]string{}, version, nil
	}
	own, err := meta.DecodeConfig(data)
	return own, version, at(path, err)
}

// InParallel calls f for 0 to n-1 on a few goroutines and returns the first error. After one it starts no more calls.
func InParallel(n int, f func(i int) error) error {
	var (
		next  atomic.Int64
		once  sync.Once
		first error
		wg    sync.WaitGroup
	)
	for range min(readers, n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					once.Do(func() { first = err })
					next.Store(int64(n))
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}
