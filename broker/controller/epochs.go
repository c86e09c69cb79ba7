package controller

import (
	"context"
	"errors"
	"fmt"
	"math"

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
			ops = append(ops, meta.SetOp(meta.PartitionStatePath(t.Name, int32(p)), c.encodeState(&next), part.Version))
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
		p.Version, p.ControllerEpoch = p.Version+1, c.Epoch()
	}
	return nil
}

// producerIDBlock is how many producer ids are taken from the tree at a time.
const producerIDBlock = 1000

// AllocateProducerIDs returns the first of a block of 1000 producer ids, which no broker of the cluster was or will be given.
func (c *Controller) AllocateProducerIDs(ctx context.Context) (first, count int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range retries {
		first, err = c.takeProducerIDs(ctx)
		if !errors.Is(err, meta.ErrBadVersion) { // another broker was quicker
			break
		}
	}
	return first, producerIDBlock, err
}

func (c *Controller) takeProducerIDs(ctx context.Context) (first int64, err error) {
	data, version, err := c.tree.Get(ctx, meta.ProducerIDBlockPath)
	if err != nil {
		return 0, err
	}
	if len(data) > 0 {
		last, err := meta.DecodeProducerIDBlock(data)
		if err != nil {
			return 0, at(meta.ProducerIDBlockPath, err)
		}
		if last.End > math.MaxInt64-producerIDBlock {
			return 0, fmt.Errorf("producer ids are used up: the last block ended at %d", last.End)
		}
		first = last.End + 1
	}
	block := meta.ProducerIDBlock{Broker: c.conf.BrokerID, Start: first, End: first + producerIDBlock - 1}
	if err := c.tree.Multi(ctx, meta.SetOp(meta.ProducerIDBlockPath, block.Encode(), version)); err != nil {
		return 0, fmt.Errorf("taking producer ids from %d on: %w", first, err)
	}
	return first, nil
}
