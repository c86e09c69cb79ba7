package controller

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gregor/broker/meta"
)

// BumpLeaderEpochs begins a new leader epoch for every partition that this broker leads, in one step, and changes the given topics accordingly.
// It is for the start after an unclean stop: what was lost with the old epoch's tail must not be taken for what is written next.
func (c *Controller) BumpLeaderEpochs(ctx context.Context, topics []Topic) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ops []meta.Op
	var bumped []*Partition
	for i := range topics {
		t := &topics[i]
		for p := range t.Partitions {
			part := &t.Partitions[p]
			if part.Leader != c.conf.BrokerID {
				continue
			}
			next := *part
			next.LeaderEpoch++
			ops = append(ops, meta.SetOp(statePath(t.Name, p), c.encodeState(&next), part.version))
			bumped = append(bumped, part)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := c.multi(ctx, ops...); err != nil {
		return fmt.Errorf("raising the leader epochs of %d partitions: %w", len(bumped), err)
	}
	for _, p := range bumped {
		p.LeaderEpoch++
		p.version++
	}
	return nil
}

// producerIDBlock is how many producer ids are taken from the tree at a time.
const producerIDBlock = 1000

// AllocateProducerIDs returns the first of a block of 1000 producer ids, which no broker of the cluster was or will be given.
func (c *Controller) AllocateProducerIDs(ctx context.Context) (first, count int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, version, err := c.tree.Get(ctx, pathProducerIDs)
	if err != nil {
		return 0, 0, err
	}
	if len(data) > 0 {
		var n producerIDNode
		if err := decode(pathProducerIDs, data, &n); err != nil {
			return 0, 0, err
		}
		end, err := strconv.ParseInt(n.End, 10, 64)
		if err != nil || end < -1 {
			return 0, 0, fmt.Errorf("metadata node %s has block_end %q, which is not a producer id", pathProducerIDs, n.End)
		}
		if end > math.MaxInt64-producerIDBlock {
			return 0, 0, fmt.Errorf("producer ids are used up: the last block ended at %d", end)
		}
		first = end + 1
	}
	last := first + producerIDBlock - 1
	n := producerIDNode{Version: 1, Broker: c.conf.BrokerID, Start: strconv.FormatInt(first, 10), End: strconv.FormatInt(last, 10)}
	if err := c.tree.Multi(ctx, meta.SetOp(pathProducerIDs, encode(&n), version)); err != nil {
		return 0, 0, fmt.Errorf("taking producer ids from %d on: %w", first, err)
	}
	return first, producerIDBlock, nil
}
