package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/meta"
)

// CreatePartitions makes a topic have count partitions. Assignment chooses the replicas of the new ones by hand, or is empty. It returns the
// topic as it is then; with validateOnly as it would be, and nothing is written. Refusals are *Error.
func (c *Controller) CreatePartitions(ctx context.Context, name string, count int32, assignment [][]int32, validateOnly bool) (Topic, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, version, err := c.tree.Get(ctx, meta.TopicPath(name))
	if errors.Is(err, meta.ErrNoNode) {
		return Topic{}, unknownTopic()
	}
	if err != nil {
		return Topic{}, err
	}
	t, err := decodeTopic(name, data)
	if err != nil {
		return Topic{}, err
	}
	first := len(t.Partitions)
	if err := checkCount(name, first, count, assignment); err != nil {
		return Topic{}, err
	}
	brokers, err := c.brokers(ctx)
	if err != nil {
		return Topic{}, err
	}
	// All that is read is read before anything is written, so that an error means that nothing was.
	if err := c.loadOld(ctx, &t); err != nil {
		return Topic{}, err
	}
	if err := grow(&t, int(count)-first, assignment, brokers); err != nil || validateOnly {
		return t, err
	}
	ops := []meta.Op{meta.SetOp(meta.TopicPath(name), encodeTopic(&t), version)}
	if err := c.multi(ctx, c.appendPartitions(ops, &t, first)...); err != nil {
		return Topic{}, fmt.Errorf("adding partitions to topic %s: %w", name, err)
	}
	return t, nil
}

// loadOld reads what the tree has of the partitions and the configuration.
func (c *Controller) loadOld(ctx context.Context, t *Topic) error {
	err := InParallel(len(t.Partitions), func(p int) error { return c.loadState(ctx, t, p) })
	if err != nil {
		return err
	}
	t.Config, _, err = c.readConfig(ctx, meta.TopicConfigPath(t.Name))
	return err
}

func unknownTopic() *Error {
	return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
}

func checkCount(name string, have int, count int32, assignment [][]int32) error {
	added := int(count) - have
	switch {
	case added == 0:
		return refuse(kerr.InvalidPartitions, "Topic already has %d partition(s).", have)
	case added < 0:
		return refuse(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", name, have, count)
	case added > maxPartitionsPerRequest:
		return refuse(kerr.PolicyViolation, "Excessively large number of additional partitions per request.")
	case assignment != nil && len(assignment) != added:
		return refuse(kerr.InvalidReplicaAssignment, "Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", added, len(assignment))
	}
	return nil
}

// grow adds partitions with as many replicas as partition 0 has.
func grow(t *Topic, added int, assignment [][]int32, brokers []int32) error {
	first := len(t.Partitions)
	replication, start := 1, 0
	if first > 0 {
		replication = len(t.Partitions[0].Replicas)
		start = max(slices.Index(brokers, t.Partitions[0].Replicas[0]), 0)
	}
	for _, replicas := range assignment {
		if err := checkReplicas(replicas, replication, brokers); err != nil {
			return err
		}
	}
	if len(assignment) == 0 {
		if replication > len(brokers) {
			return tooFewBrokers(replication, len(brokers))
		}
		assignment = assign(brokers, int32(first), int32(added), replication, start)
	}
	for _, replicas := range assignment {
		p := Partition{Replicas: slices.Clone(replicas)}
		lead(&p, brokers)
		t.Partitions = append(t.Partitions, p)
	}
	return nil
}
