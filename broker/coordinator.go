package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

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
	stateTopic[offsetsPartition]

	full chan *offsetsPartition // to be compacted
}

func newCoordinator(b *Broker) *coordinator {
	c := &coordinator{broker: b, conf: groupConfig(b.conf), full: make(chan *offsetsPartition, 64)}
	c.init()
	c.of, c.name, c.shape, c.taken, c.left = b, offsetsTopic, c.newTopic, c.adopt, c.forget
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

// open starts the goroutines and, when there is a topic from before, begins to read it.
func (c *coordinator) open() {
	c.running.Go(c.run)
	c.running.Go(c.housekeep)
	c.reopen()
}

// close ends the goroutines. Nothing is answered after it.
func (c *coordinator) close() {
	c.starting.Lock()
	first := c.closing.CompareAndSwap(false, true)
	c.starting.Unlock()
	if first {
		close(c.stop)
	}
	c.running.Wait()
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

// adopt makes the partitions of the topic the coordinator's, and begins to load what is in them. starting must be held.
func (c *coordinator) adopt(t *topic) {
	all := *t.partitions.Load()
	parts := make([]*offsetsPartition, len(all))
	var full []*offsetsPartition
	for i, part := range all {
		p := &offsetsPartition{c: c, groups: make(map[string]*groupSlot), open: make(txnGroups)}
		p.broker, p.loop, p.part = c.broker, &c.stateLoop, part
		parts[i] = p
		if p.begin() {
			full = append(full, p)
		}
	}
	c.parts.Store(&parts)
	if len(full) > 0 && !c.closing.Load() {
		c.running.Go(func() { c.loadAll(full) })
	}
}

// forget lets go of all groups: __consumer_offsets was deleted. Parked requests are told to look for the coordinator again.
func (c *coordinator) forget() {
	parts := c.parts.Swap(nil)
	if parts == nil {
		return
	}
	for _, p := range *parts {
		p.state.Store(stateFailed)
		for _, s := range p.slots() {
			s.mu.Lock()
			if !s.dropped {
				s.deliver(s.g.Unload(c.instant()))
				s.drop()
			}
			s.mu.Unlock()
		}
	}
}

// find returns the partition that a group lives in: NOT_COORDINATOR when that is nowhere, COORDINATOR_LOAD_IN_PROGRESS while it is read.
func (c *coordinator) find(id string) (*offsetsPartition, *kerr.Error) {
	p := c.at(id)
	if p == nil {
		return nil, kerr.NotCoordinator
	}
	return p, p.usable()
}

// topicDeleted removes the offsets of a topic that is no more.
func (c *coordinator) topicDeleted(name string) {
	if name == offsetsTopic {
		c.forget()
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
