package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// ElectLeaders (key 43), versions 0 to 2. A partition has one replica, which leads it when it lives and can open it, so there is nothing to elect. Only the controller
// answers.
//
//   - A partition that is led: ELECTION_NOT_NEEDED, left out of its topic when no topics were named (all are meant).
//   - One that is offline: no other replica could lead, PREFERRED_LEADER_NOT_AVAILABLE or, for an unclean election, ELIGIBLE_LEADERS_NOT_AVAILABLE.

// electUnclean is the election type that may lose records (KIP-460); 0 is the preferred leader.
const electUnclean = 1

func (b *Broker) handleElectLeaders(_ context.Context, _ *wire.Request, r *kmsg.ElectLeadersRequest) kmsg.Response {
	resp := kmsg.NewPtrElectLeadersResponse()
	resp.Topics = []kmsg.ElectLeadersResponseTopic{}
	if r.ElectionType != 0 && r.ElectionType != electUnclean {
		resp.ErrorCode = kerr.InvalidRequest.Code
	}
	add := func(topic string, results []kmsg.ElectLeadersResponseTopicPartition) {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic, out.Partitions = topic, results
		resp.Topics = append(resp.Topics, out)
	}
	if err := b.checkSeat(); err != nil {
		resp.ErrorCode = code(err)
		return resp
	}
	if r.Topics == nil && resp.ErrorCode == 0 {
		for _, t := range b.topics.all() {
			add(t.name, b.electAll(t, r.ElectionType))
		}
		return resp
	}
	for i := range r.Topics {
		in := &r.Topics[i]
		var results []kmsg.ElectLeadersResponseTopicPartition
		for _, n := range in.Partitions {
			results = append(results, elected(n, b.elect(in.Topic, n, r.ElectionType)))
		}
		add(in.Topic, results)
	}
	return resp
}

// electAll has the results for one topic of a request that means all.
func (b *Broker) electAll(t *topic, kind int8) (results []kmsg.ElectLeadersResponseTopicPartition) {
	for _, p := range *t.partitions.Load() {
		if err := b.electPartition(p, kind); code(err) != kerr.ElectionNotNeeded.Code {
			results = append(results, elected(p.num, err))
		}
	}
	return results
}

func elected(n int32, err error) kmsg.ElectLeadersResponseTopicPartition {
	out := kmsg.NewElectLeadersResponseTopicPartition()
	out.Partition, out.ErrorCode, out.ErrorMessage = n, code(err), errorText(err)
	return out
}

func (b *Broker) elect(name string, n int32, kind int8) error {
	if kind != 0 && kind != electUnclean {
		return refuse(kerr.InvalidRequest, "Unknown election type %d", kind)
	}
	t := b.topics.name(name)
	if t == nil {
		return refuse(kerr.UnknownTopicOrPartition, "No such topic as %s", name)
	}
	p := t.partition(n)
	if p == nil {
		return refuse(kerr.UnknownTopicOrPartition, "No such partition as %s-%d", name, n)
	}
	return b.electPartition(p, kind)
}

func (b *Broker) electPartition(p *partition, kind int8) error {
	led := p.seen(b.view.Load()).leader != noLeader
	switch {
	case led && (!p.lead.Load().led || p.log.Err() == nil):
		return refuse(kerr.ElectionNotNeeded, "Leader election not needed for topic partition.")
	case kind == electUnclean:
		return kerr.EligibleLeadersNotAvailable
	}
	return kerr.PreferredLeaderNotAvailable
}
