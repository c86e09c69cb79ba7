package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/peers"
	"gregor/broker/txn"
	"gregor/log/logdir"
	"gregor/wire"
)

// StopReplica (key 5), versions 0 to 4: the controller takes replicas from this broker. As in Apache Kafka 3.9:
//
//   - From version 3 on with the leader epoch that it is decided under: an older one than the last order's is FENCED_LEADER_EPOCH; -2 says that the topic is
//     being deleted, -1 that there is none, and both are always obeyed.
//   - With deletion the log is closed and its directory renamed, durably before the answer, also when the catalog does not have the partition. Without it the
//     broker only stops leading.
//   - A replica that is not there is gone already; one in a directory that cannot be used is KAFKA_STORAGE_ERROR.

func (b *Broker) handleStopReplica(_ context.Context, _ *wire.Request, body kmsg.Request) kmsg.Response {
	r, ok := body.(*kmsg.StopReplicaRequest)
	if !ok {
		r = &body.(*peers.StopReplicaRequest).StopReplicaRequest // version 4
	}
	resp := kmsg.NewPtrStopReplicaResponse()
	stops := stopsOf(r)
	b.admin.Lock()
	defer b.admin.Unlock()
	errs := make([]error, len(stops))
	if err := b.obey(order{r.ControllerEpoch, r.BrokerEpoch}); err != nil {
		b.refused("StopReplica", r.ControllerID, err)
		resp.ErrorCode = code(err)
		for i := range errs {
			errs[i] = err
		}
	} else {
		b.stopReplicas(stops, errs)
	}
	for i := range stops {
		p := kmsg.NewStopReplicaResponsePartition()
		p.Topic, p.Partition, p.ErrorCode = stops[i].at.Topic, stops[i].at.Partition, code(errs[i])
		resp.Partitions = append(resp.Partitions, p)
	}
	return resp
}

// replicaStop is one replica that is to stop.
type replicaStop struct {
	at     logdir.TopicPartition
	epoch  int32
	remove bool
}

// Leader epochs that every StopReplica may have.
const (
	epochNone     = -1
	epochDeleting = -2
)

// stopsOf is what a request of any version asks for.
func stopsOf(r *kmsg.StopReplicaRequest) (all []replicaStop) {
	for i := range r.Topics {
		t := &r.Topics[i]
		add := func(n, epoch int32, remove bool) {
			all = append(all, replicaStop{logdir.TopicPartition{Topic: t.Topic, Partition: n}, epoch, remove})
		}
		switch {
		case r.Version >= 3:
			for _, s := range t.PartitionStates {
				add(s.Partition, s.LeaderEpoch, s.Delete)
			}
		case r.Version >= 1:
			for _, n := range t.Partitions {
				add(n, epochNone, r.DeletePartitions)
			}
		default:
			add(t.Partition, epochNone, r.DeletePartitions)
		}
	}
	return all
}

// stopReplicas carries out what it can, with one sync for all removals; errs gets the rest. Needs admin.
func (b *Broker) stopReplicas(stops []replicaStop, errs []error) {
	var remove []logdir.TopicPartition
	for i := range stops {
		s := &stops[i]
		p := b.partitionAt(txn.Partition{Topic: s.at.Topic, Number: s.at.Partition})
		if p != nil {
			if errs[i] = checkStop(p, s); errs[i] != nil {
				continue
			}
			if s.epoch == epochDeleting {
				p.topic.deleted.Store(true)
			}
			b.stopLeading(p)
		}
		if _, here := b.dir.Get(s.at); s.remove && here {
			remove = append(remove, s.at)
			if p != nil {
				b.withoutReplica(p)
			}
		}
	}
	if len(remove) == 0 {
		return
	}
	err := b.dir.Delete(remove...)
	if err == nil || onlyNotFound(err) {
		return
	}
	// It may be that a removal is not durable, so none of them counts.
	b.logger.Error("partitions cannot be removed", "partitions", len(remove), "error", err)
	for i := range stops {
		if stops[i].remove && errs[i] == nil {
			errs[i] = fmt.Errorf("removing partition %s: %w: %w", stops[i].at, kerr.KafkaStorageError, err)
		}
	}
}

// checkStop says why a replica does not stop.
func checkStop(p *partition, s *replicaStop) error {
	if p.err != nil {
		return p.broken()
	}
	if p.log != nil && p.log.Err() != nil {
		return p.log.Err()
	}
	if obeyed := p.lead.Load().obeyed; s.epoch != epochNone && s.epoch != epochDeleting && s.epoch < obeyed {
		return fmt.Errorf("partition %s: leader epoch %d is older than %d: %w", s.at, s.epoch, obeyed, kerr.FencedLeaderEpoch)
	}
	return nil
}

// stopLeading ends this broker's leadership of a partition. Needs admin.
func (b *Broker) stopLeading(p *partition) {
	l := *p.lead.Load()
	l.led = false
	b.setLeadership(p, &l)
}

// withoutReplica makes the partition one that this broker has no replica of: another takes its place, since others may look at it without a lock. Needs admin.
func (b *Broker) withoutReplica(p *partition) {
	l := *p.lead.Load()
	l.obeyed = epochNone
	all := slices.Clone(*p.topic.partitions.Load())
	all[p.num] = b.newPartition(p.topic, p.num, &l)
	p.topic.partitions.Store(&all)
}
