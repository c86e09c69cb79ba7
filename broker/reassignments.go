package broker

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// AlterPartitionReassignments (key 45), versions 0 and 1, and ListPartitionReassignments (key 46), version 0. Partitions do not move between
// brokers: asking for the replicas that it has is done at once, a cancellation finds nothing to cancel, and no reassignment is ever in progress.

func (b *Broker) handleAlterReassignments(_ context.Context, _ *wire.Request, r *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	if err := b.checkSeat(); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
		return resp
	}
	resp.AllowReplicationFactorChange = r.AllowReplicationFactorChange
	if len(r.Topics) == 0 {
		resp.ErrorMessage = new(string) // empty, not null, in Kafka's answer too
	}
	resp.Topics = make([]kmsg.AlterPartitionAssignmentsResponseTopic, 0, len(r.Topics))
	for i := range r.Topics {
		in := &r.Topics[i]
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = in.Topic
		for j := range in.Partitions {
			err := b.reassign(in.Topic, in.Partitions[j].Partition, in.Partitions[j].Replicas)
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition, p.ErrorCode = in.Partitions[j].Partition, code(err)
			if err != kerr.NoReassignmentInProgress { // which Kafka gives without a text
				p.ErrorMessage = errorText(err)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// reassign moves a partition to replicas; nil cancels.
func (b *Broker) reassign(name string, n int32, replicas []int32) error {
	t := b.topics.name(name)
	if t == nil {
		return refuse(kerr.UnknownTopicOrPartition, "Unable to find a topic named %s.", name)
	}
	p := t.partition(n)
	if p == nil {
		return refuse(kerr.UnknownTopicOrPartition, "Unable to find partition %s:%d.", name, n)
	}
	if replicas == nil {
		return kerr.NoReassignmentInProgress
	}
	if len(replicas) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	for i, id := range replicas {
		if !b.view.Load().lives(id) {
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if slices.Contains(replicas[:i], id) {
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if have := p.lead.Load().replicas; !slices.Equal(have, replicas) {
		return refuse(kerr.InvalidReplicaAssignment, "Partition %s-%d stays on %v: moving partitions between brokers is not built.", name, n, have)
	}
	return nil
}

func (b *Broker) handleListReassignments(context.Context, *wire.Request, *kmsg.ListPartitionReassignmentsRequest) kmsg.Response {
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	resp.Topics = []kmsg.ListPartitionReassignmentsResponseTopic{}
	if err := b.checkSeat(); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
	}
	return resp
}
