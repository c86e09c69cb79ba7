package broker

import (
	"context"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/wire"
)

// DescribeTopicPartitions (key 75), version 0 (KIP-966): partitions of topics in the order of their names, so many at a time. The cursor of an answer is
// where the next one goes on. No topics means all. Nothing is created.

func (b *Broker) handleDescribeTopicPartitions(_ context.Context, _ *wire.Request, r *kmsg.DescribeTopicPartitionsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	names, err := b.namesFromCursor(r)
	if err != nil {
		for i := range r.Topics {
			resp.Topics = append(resp.Topics, undescribed(r.Topics[i].Topic, err))
		}
		return resp
	}
	left := int(max(min(r.ResponsePartitionLimit, b.conf.DescribedPartitions), 1))
	for _, name := range names {
		first := 0
		if r.Cursor != nil && r.Cursor.Topic == name {
			first = int(r.Cursor.Partition)
		}
		if left == 0 {
			resp.NextCursor = cursorAt(name, 0)
			break
		}
		t := b.topics.name(name)
		if t == nil {
			if len(r.Topics) > 0 {
				resp.Topics = append(resp.Topics, undescribed(name, missing(name)))
			}
			continue
		}
		described, next := b.describePartitions(t, first, left)
		resp.Topics = append(resp.Topics, described)
		if next >= 0 {
			resp.NextCursor = cursorAt(name, next)
			break
		}
		left -= len(described.Partitions)
	}
	return resp
}

// namesFromCursor lists the topics that are asked for, from the cursor's on.
func (b *Broker) namesFromCursor(r *kmsg.DescribeTopicPartitionsRequest) ([]string, error) {
	var names []string
	for i := range r.Topics {
		names = append(names, r.Topics[i].Topic)
	}
	if len(r.Topics) == 0 {
		for _, t := range b.topics.all() {
			names = append(names, t.name)
		}
	}
	sort.Strings(names)
	names = slices.Compact(names)
	if r.Cursor == nil {
		return names, nil
	}
	at, found := slices.BinarySearch(names, r.Cursor.Topic)
	if len(r.Topics) > 0 && !found {
		return nil, refuse(kerr.InvalidRequest, "topic list should contain the cursor topic: %s", r.Cursor.Topic)
	}
	if r.Cursor.Partition < 0 {
		return nil, refuse(kerr.InvalidRequest, "cursor partition must be valid: %d", r.Cursor.Partition)
	}
	return names[at:], nil
}

func cursorAt(topic string, partition int) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, int32(partition)
	return &c
}

// missing says why a topic that was named is not there.
func missing(name string) error {
	if err := controller.CheckName(name); err != nil {
		return err
	}
	return kerr.UnknownTopicOrPartition
}

func undescribed(name string, err error) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.ErrorCode = &name, code(err)
	out.IsInternal = controller.IsInternal(name)
	out.Partitions = []kmsg.DescribeTopicPartitionsResponseTopicPartition{}
	if err := kafkaError(err); err != kerr.InvalidRequest {
		out.AuthorizedOperations = allTopicOperations
	}
	return out
}

// describePartitions describes at most limit partitions, and says where to go on, -1 for nowhere.
func (b *Broker) describePartitions(t *topic, first, limit int) (out kmsg.DescribeTopicPartitionsResponseTopic, next int) {
	out = kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal, out.AuthorizedOperations = &t.name, t.id, t.internal, allTopicOperations
	parts := *t.partitions.Load()
	v := b.view.Load()
	from := min(first, len(parts))
	to := min(from+limit, len(parts))
	out.Partitions = make([]kmsg.DescribeTopicPartitionsResponseTopicPartition, 0, to-from)
	for _, p := range parts[from:to] {
		one := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		s := p.seen(v)
		one.Partition, one.LeaderID, one.LeaderEpoch, one.ErrorCode = p.num, s.leader, s.epoch, code(s.err)
		one.Replicas, one.ISR, one.OfflineReplicas = s.replicas, s.isr, s.offline
		one.EligibleLeaderReplicas, one.LastKnownELR = []int32{}, []int32{}
		out.Partitions = append(out.Partitions, one)
	}
	if to < len(parts) {
		return out, to
	}
	return out, -1
}
