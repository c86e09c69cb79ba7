package broker

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// noLeader is the leader of a partition that nobody leads.
const noLeader = -1

// leadership is who leads a partition, as the controller decided last. It is replaced as a whole.
type leadership struct {
	leader   int32 // noLeader: no live replica may lead
	epoch    int32 // of the leader
	replicas []int32
	isr      []int32
	// offline are replicas on disks that cannot be used, as far as the controller knows.
	offline []int32
	// led says that this broker is the leader.
	led bool
	// obeyed is the leader epoch of the last LeaderAndIsr for this replica, -1 before the first.
	obeyed int32
	// leaving says that the topic is being deleted.
	leaving bool
}

// leadershipOf is what the tree says of a partition.
func (b *Broker) leadershipOf(p *controller.Partition) *leadership {
	return &leadership{leader: p.Leader, epoch: p.LeaderEpoch, replicas: p.Replicas, isr: p.ISR, led: p.Leader == b.nodeID, obeyed: epochNone}
}

// setLeadership makes l the partition's, and tells those who stand on it. Needs admin.
func (b *Broker) setLeadership(p *partition, l *leadership) {
	if before := p.lead.Swap(l); before.led == l.led {
		return
	}
	if p.log != nil && !l.led {
		p.log.WakeAll() // whoever waits for records looks again
	}
	b.groups.leadershipChanged(p)
	b.txns.leadershipChanged(p)
}

// epoch is the leader epoch that the partition is led under.
func (p *partition) epoch() int32 { return p.lead.Load().epoch }

// offline returns why clients cannot use the partition here, nil when they can.
func (p *partition) offline() error {
	if l := p.lead.Load(); !l.led {
		return fmt.Errorf("partition %s-%d is led by broker %d: %w", p.topic.name, p.num, l.leader, kerr.NotLeaderForPartition)
	}
	if p.log == nil {
		return p.broken()
	}
	return nil
}

// broken says that the log could not be opened, as KAFKA_STORAGE_ERROR.
func (p *partition) broken() error {
	return fmt.Errorf("partition %s-%d is offline: %w: %w", p.topic.name, p.num, p.err, kerr.KafkaStorageError)
}

// sight is how clients see a partition.
type sight struct {
	leader, epoch          int32
	replicas, isr, offline []int32
	err                    error // LEADER_NOT_AVAILABLE
}

// seen is what clients are told of the partition, given who lives.
func (p *partition) seen(v *view) sight {
	l := p.lead.Load()
	s := sight{leader: l.leader, epoch: l.epoch, replicas: l.replicas, isr: l.isr, offline: []int32{}}
	for _, id := range l.replicas {
		if !v.lives(id) || slices.Contains(l.offline, id) || id == v.self && p.log == nil {
			s.offline = append(s.offline, id)
		}
	}
	if l.leader == noLeader || slices.Contains(s.offline, l.leader) {
		s.leader, s.err = noLeader, kerr.LeaderNotAvailable
		if l.led {
			s.isr = []int32{}
		}
	}
	return s
}
