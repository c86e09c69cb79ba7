package broker

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/wire"
)

// UpdateMetadata (key 6), versions 0 to 8: the controller tells who lives, who leads, and who the controller is. As in Apache Kafka 3.9:
//
//   - The live brokers replace those known before. Version 0 has one address of each, before version 3 listeners are named by their protocol.
//   - Partitions that are not named stay as they are. Leader -2 says that the topic is being deleted: clients do not see it any more.
//   - A partition whose replica is here is led on the word of LeaderAndIsr only; here it can only stop being led, by a newer leader epoch.

func (b *Broker) handleUpdateMetadata(ctx context.Context, _ *wire.Request, r *kmsg.UpdateMetadataRequest) kmsg.Response {
	resp := kmsg.NewPtrUpdateMetadataResponse()
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.obey(order{r.ControllerEpoch, r.BrokerEpoch}); err != nil {
		b.refused("UpdateMetadata", r.ControllerID, err)
		resp.ErrorCode = code(err)
		return resp
	}
	b.view.Store(b.viewOf(r))
	told, deleted := b.toldOf(r)
	for at, err := range b.place(ctx, told) {
		b.logger.Error("clients cannot be told of a partition", "topic", at.Topic, "partition", at.Partition, "error", err)
	}
	for name, partitions := range deleted {
		b.partitionsLeave(name, partitions)
	}
	return resp
}

// viewOf is who lives, as the controller says.
func (b *Broker) viewOf(r *kmsg.UpdateMetadataRequest) *view {
	v := &view{self: b.nodeID, controller: max(r.ControllerID, noLeader)}
	if r.IsKRaftController {
		v.controller = noLeader // no broker that clients could ask
	}
	for i := range r.LiveBrokers {
		in := &r.LiveBrokers[i]
		p := peer{id: in.ID}
		if in.Rack != nil {
			p.node.Rack = *in.Rack
		}
		if r.Version == 0 {
			p.node.Endpoints = []meta.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: in.Host, Port: in.Port}}
		}
		for j := range in.Endpoints {
			e := &in.Endpoints[j]
			to := meta.Endpoint{Listener: e.ListenerName, Protocol: protocolName(e.SecurityProtocol), Host: e.Host, Port: e.Port}
			if r.Version < 3 {
				to.Listener = to.Protocol
			}
			p.node.Endpoints = append(p.node.Endpoints, to)
		}
		v.brokers = append(v.brokers, p)
	}
	slices.SortFunc(v.brokers, func(a, b peer) int { return cmp.Compare(a.id, b.id) })
	return v
}

// protocolName is the name of one of Kafka's security protocols.
func protocolName(id int16) string {
	names := []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
	if id < 0 || int(id) >= len(names) {
		return ""
	}
	return names[id]
}

// leaderDeleting is the leader of a partition whose topic is being deleted.
const leaderDeleting = -2

// toldOf sorts what is said of partitions: those with leaders, and the numbers of those that are being deleted.
func (b *Broker) toldOf(r *kmsg.UpdateMetadataRequest) (told []placement, deleted map[string][]int32) {
	deleted = make(map[string][]int32)
	var all placements
	add := func(name string, id [16]byte, s *kmsg.UpdateMetadataRequestTopicPartition) {
		switch {
		case controller.CheckName(name) != nil || s.Partition < 0 || s.Partition >= maxPartition:
			if b.obedience.refusals.due() {
				b.logger.Error("controller names a partition that cannot be", "topic", name, "partition", s.Partition)
			}
			return
		case s.Leader == leaderDeleting:
			deleted[name] = append(deleted[name], s.Partition)
			return
		}
		pl := all.topic(name, id)
		pl.partitions[s.Partition] = controller.Partition{Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, Replicas: s.Replicas, ISR: s.ISR}
		pl.offline[s.Partition] = s.OfflineReplicas
	}
	for i := range r.PartitionStates {
		add(r.PartitionStates[i].Topic, [16]byte{}, &r.PartitionStates[i])
	}
	for i := range r.TopicStates {
		t := &r.TopicStates[i]
		for j := range t.PartitionStates {
			add(t.Topic, t.TopicID, &t.PartitionStates[j])
		}
	}
	return all.all, deleted
}

// partitionsLeave takes partitions of a topic that is being deleted away from clients, and the topic with the last of them. Their directories go on the
// word of StopReplica. Needs admin.
func (b *Broker) partitionsLeave(name string, numbers []int32) {
	t := b.topics.name(name)
	if t == nil {
		return
	}
	for _, n := range numbers {
		if p := t.partition(n); p != nil {
			l := *p.lead.Load()
			l.leader, l.led, l.leaving = noLeader, false, true
			b.setLeadership(p, &l)
		}
	}
	if slices.ContainsFunc(*t.partitions.Load(), func(p *partition) bool { return !p.lead.Load().leaving }) {
		return
	}
	b.topicGone(t)
}
