package broker

import (
	"time"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/group"
)

// The group coordinator: package group with clocks, locks, goroutines and __consumer_offsets around it.
//
//   - A group lives in the partition of __consumer_offsets that its id hashes to, in memory as a group.Group behind a lock of its own.
//   - An event runs on the goroutine of the connection that brings it. What it writes is appended under the group's lock, so that the log has
//     the order of the events; the sync is waited for by nobody. When the high watermark has passed a write, the coordinator's goroutine tells
//     the group, which then answers. Writes of all groups and partitions share syncs like any others.
//   - The same goroutine runs the timers. A second one expires offsets and compacts.

// offsetsTopic is where groups are stored.
const offsetsTopic = "__consumer_offsets"

// coordinator is the group coordinator of a broker.
type coordinator struct {
	broker *Broker
	conf   group.Config
	stateLoop
	stateTopic[*offsetsPartition]

	full chan *offsetsPartition // to be compacted
}

func newCoordinator(b *Broker) *coordinator {
	c := &coordinator{broker: b, conf: groupConfig(b.conf), full: make(chan *offsetsPartition, 64)}
	c.stateLoop.init()
	c.stateTopic.init(b, &c.stateLoop, offsetsTopic, c.newTopic, func() *offsetsPartition {
		return &offsetsPartition{c: c, groups: make(map[string]*groupSlot), open: make(txnGroups)}
	})
	return c
}

func groupConfig(s *config.Server) group.Config {
	return group.Config{
		MinSession:   s.GroupMinSession,
		MaxSession:   s.GroupMaxSession,
		InitialDelay: s.GroupInitialDelay,
		MaxSize:      int(s.GroupMaxSize),
		Retention:    s.OffsetsRetention,
	}
}

// open starts the goroutines, which begin to read what is there from before.
func (c *coordinator) open() {
	c.running.Go(c.run)
	c.running.Go(c.housekeep)
	c.running.Go(c.carryOut)
}

// instant is now, on both clocks.
func (c *coordinator) instant() group.Instant {
	return group.Instant{Timer: time.Since(c.start), Wall: c.broker.now().UnixMilli()}
}

// newTopic is __consumer_offsets as Kafka makes it.
func (c *coordinator) newTopic() controller.NewTopic {
	policy, codec, size := "compact", "producer", formatInt(int64(c.broker.conf.OffsetsTopicSegmentBytes))
	return controller.NewTopic{
		Name:        offsetsTopic,
		Partitions:  c.broker.conf.OffsetsTopicPartitions,
		Replication: c.broker.conf.OffsetsTopicReplication,
		Config:      map[string]*string{"cleanup.policy": &policy, "compression.type": &codec, "segment.bytes": &size},
	}
}

// topicDeleted removes the offsets of a topic that is no more.
func (c *coordinator) topicDeleted(name string) {
	if name == offsetsTopic {
		c.stateTopic.forget()
		return
	}
	for _, s := range c.slots() {
		s.event(func(g *group.Group, at group.Instant) group.Effects { return g.RemoveTopic(at, name) })
	}
}

// slots are those of all groups that are loaded.
func (c *coordinator) slots() []*groupSlot {
	var all []*groupSlot
	for _, p := range c.all() {
		all = append(all, p.slots()...)
	}
	return all
}
