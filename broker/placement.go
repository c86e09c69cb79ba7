package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
	"gregor/log/logdir"
)

// placement is what the controller says of some partitions of a topic.
type placement struct {
	name string
	id   [16]byte // zero when the controller is too old to know
	// partitions by number; leaders and replicas count.
	partitions map[int32]controller.Partition
	// open says that this broker is to open or make its replicas, and to lead those that name it. Otherwise clients are only told.
	open bool
	// old are partitions that are not new: with a directory out of use, one that is not found may be in it.
	old map[int32]bool
	// offline are replicas on disks that cannot be used.
	offline map[int32][]int32
}

// placementOf is all of a topic in the tree.
func placementOf(t *controller.Topic) placement {
	pl := placement{name: t.Name, id: t.ID, partitions: make(map[int32]controller.Partition, len(t.Partitions)), open: true}
	for i := range t.Partitions {
		pl.partitions[int32(i)] = t.Partitions[i]
	}
	return pl
}

// place makes the catalog follow what the controller says: topics and partitions that it does not have are added, this broker's replicas opened or
// made with one sync for all, and leaders set. Partitions that could not be opened are offline; what is returned is why, by partition. Needs
// admin.
func (b *Broker) place(ctx context.Context, all []placement) map[logdir.TopicPartition]error {
	failed := make(map[logdir.TopicPartition]error)
	var changes []placing
	var opening []*partition
	for i := range all {
		t, err := b.placeTopic(ctx, &all[i])
		if err != nil {
			for n := range all[i].partitions {
				failed[logdir.TopicPartition{Topic: all[i].name, Partition: n}] = err
			}
			continue
		}
		c := b.placePartitions(t, &all[i])
		opening = append(opening, c.opening...)
		for _, p := range c.lost {
			failed[p.at()] = p.broken()
		}
		changes = append(changes, c)
	}
	err := b.openLogs(opening)
	for _, p := range opening {
		if p.err == nil && p.log == nil {
			p.err = err
		}
		if p.err != nil {
			failed[p.at()] = p.broken()
		}
	}
	for i := range changes {
		c := &changes[i]
		c.topic.partitions.Store(&c.partitions)
		if b.topics.name(c.topic.name) != c.topic {
			b.topics.add(c.topic)
		}
		for _, l := range c.leaders {
			if l.partition.err != nil {
				l.lead.obeyed = l.partition.lead.Load().obeyed // the order may be given again
			}
			b.setLeadership(l.partition, l.lead)
		}
	}
	b.configChanged()
	return failed
}

// placements are those of a request, one for each topic.
type placements struct {
	open bool // what they have as open
	all  []placement
	at   map[string]int // where a topic is in all
}

// topic is the placement of a topic, until the next call.
func (ps *placements) topic(name string, id [16]byte) *placement {
	i, ok := ps.at[name]
	if !ok {
		i = len(ps.all)
		if ps.at == nil {
			ps.at = make(map[string]int)
		}
		ps.at[name] = i
		ps.all = append(ps.all, placement{name: name, id: id, open: ps.open, partitions: make(map[int32]controller.Partition), old: make(map[int32]bool),
			offline: make(map[int32][]int32)})
	}
	return &ps.all[i]
}

// placing is a placement that is carried out.
type placing struct {
	topic      *topic
	partitions []*partition // all of the topic as they will be
	opening    []*partition // those that are to be opened
	lost       []*partition // those that cannot be
	leaders    []newLeader
}

type newLeader struct {
	partition *partition
	lead      *leadership
}

// placeTopic finds or makes the catalog's entry.
func (b *Broker) placeTopic(ctx context.Context, pl *placement) (*topic, error) {
	t := b.topics.name(pl.name)
	if t != nil && sameID(t.id, pl.id) {
		return t, nil
	}
	if t != nil {
		if slices.ContainsFunc(*t.partitions.Load(), func(p *partition) bool { return p.log != nil }) {
			return nil, fmt.Errorf("topic %s has id %s here, the controller says %s: %w", t.name, controller.FormatID(t.id), controller.FormatID(pl.id), kerr.InconsistentTopicID)
		}
		b.topics.remove(t) // deleted and made again, elsewhere
		b.groups.topicDeleted(t.name)
		b.txns.topicDeleted(t.name)
	}
	own, err := b.control.TopicConfig(ctx, pl.name)
	if err != nil {
		return nil, err
	}
	made := controller.Topic{Name: pl.name, ID: pl.id, Config: own}
	t, err = b.newTopic(&made)
	if err != nil {
		b.logger.Error("configuration of a topic is not valid, the broker's defaults apply to it", "topic", pl.name, "error", err)
		made.Config = map[string]string{}
		t, err = b.newTopic(&made)
	}
	return t, err
}

// placePartitions computes what the topic's partitions will be.
func (b *Broker) placePartitions(t *topic, pl *placement) placing {
	c := placing{topic: t, partitions: slices.Clone(*t.partitions.Load())}
	for n := range pl.partitions {
		for int(n) >= len(c.partitions) {
			c.partitions = append(c.partitions, b.newPartition(t, int32(len(c.partitions)), &leadership{leader: noLeader, epoch: noLeader}))
		}
	}
	for n, told := range pl.partitions {
		p, lead := c.partitions[n], b.leadershipOf(&told)
		lead.offline = pl.offline[n]
		here := slices.Contains(told.Replicas, b.nodeID)
		if !pl.open {
			if b.heed(p, lead) {
				c.leaders = append(c.leaders, newLeader{p, lead})
			}
			continue
		}
		lead.obeyed = lead.epoch
		if here && p.log == nil {
			// A new one, since others may look at the old without a lock. It is not led yet: who stands on it is told when it is.
			before := *p.lead.Load()
			before.led = false
			p = b.newPartition(t, n, &before)
			c.partitions[n] = p
			if p.err = b.mayBeLost(p, pl.old[n]); p.err == nil {
				c.opening = append(c.opening, p)
			} else {
				c.lost = append(c.lost, p)
			}
		}
		c.leaders = append(c.leaders, newLeader{p, lead})
	}
	return c
}

// heed makes lead, of which this broker is only told, what it may be for p. False: what it knows is newer.
func (b *Broker) heed(p *partition, lead *leadership) bool {
	before := p.lead.Load()
	here := p.log != nil || p.err != nil
	lead.obeyed, lead.led = before.obeyed, false
	if !here {
		return true
	}
	if lead.leader == b.nodeID && before.led {
		lead.led = true // under another epoch LeaderAndIsr says so
		return lead.epoch == before.epoch
	}
	return lead.epoch >= before.epoch
}

// mayBeLost is why a partition that is not found may be on a disk that cannot be used, and must not begin anew.
func (b *Broker) mayBeLost(p *partition, old bool) error {
	if _, found := b.dir.Get(p.at()); found || !old {
		return nil
	}
	return b.dir.Offline()
}

// newPartition is one without a log.
func (b *Broker) newPartition(t *topic, n int32, lead *leadership) *partition {
	p := &partition{topic: t, num: n, producerExpiryMs: b.producerExpiryMs}
	p.lead.Store(lead)
	return p
}

// at is the partition's name.
func (p *partition) at() logdir.TopicPartition {
	return logdir.TopicPartition{Topic: p.topic.name, Partition: p.num}
}
