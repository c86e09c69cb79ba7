package broker

import (
	"context"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/wire"
)

// OffsetCommit (key 8), versions 0 to 10. Version 0, which stored offsets in ZooKeeper, commits as a consumer without membership. Versions 2 to
// 4 may ask for a retention of their own, version 1 for a commit time. Version 10 names topics by id. A partition that does not exist, or metadata that is
// too large, is refused by itself; what the group refuses is refused for all. Answered when durable.

func (b *Broker) handleOffsetCommit(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.OffsetCommitRequest)
	c := &pendingCommit{wake: req.Wake, resp: kmsg.NewPtrOffsetCommitResponse()}
	commit := &group.Commit{MemberID: r.MemberID, InstanceID: r.InstanceID, Generation: r.Generation, Version: r.Version}
	commit.Offsets = b.commitOffsets(r, c)
	p, err := b.groups.find(r.Group)
	if err != nil {
		c.receive(group.Reply{Err: err})
	} else {
		c.deadline = time.Now().Add(b.conf.OffsetsCommitTimeout)
		p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Commit(at, c, commit) })
	}
	if reply, ok := c.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: c, Pipeline: true}
}

// refuseOffset says why a partition's offset cannot be committed, nil if it can. unknown is why t is nil, if it is.
func (b *Broker) refuseOffset(t *topic, unknown *kerr.Error, partition int32, metadata *string) *kerr.Error {
	switch {
	case t == nil:
		return unknown
	case t.partition(partition) == nil:
		return kerr.UnknownTopicOrPartition
	case metadata != nil && tooLong(*metadata, int(b.conf.OffsetMetadataMax)):
		return kerr.OffsetMetadataTooLarge
	}
	return nil
}

// commitOffsets makes the answer, with what is wrong with single partitions, and the list of the others.
func (b *Broker) commitOffsets(r *kmsg.OffsetCommitRequest, c *pendingCommit) []group.PartitionOffset {
	var offsets []group.PartitionOffset
	now := b.now().UnixMilli()
	c.resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(r.Topics))
	for i := range r.Topics {
		in, out := &r.Topics[i], &c.resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(in.Partitions))
		t, unknown := b.topicOf(r.Version >= topicIDsInOffsets, in.Topic, in.TopicID)
		for j := range in.Partitions {
			p, res := &in.Partitions[j], &out.Partitions[j]
			res.Partition = p.Partition
			if refused := b.refuseOffset(t, unknown, p.Partition, p.Metadata); refused != nil {
				res.ErrorCode = refused.Code
				if refused == kerr.OffsetMetadataTooLarge {
					c.refused = append(c.refused, res)
				}
				continue
			}
			c.accepted = append(c.accepted, res)
			offsets = append(offsets, group.PartitionOffset{Partition: group.Partition{Topic: t.name, Number: p.Partition}, Offset: commitOffset(r, p, now)})
		}
	}
	return offsets
}

// topicIDsInOffsets is the first version of OffsetCommit and OffsetFetch that names topics by id.
const topicIDsInOffsets = 10

// topicOf finds a topic by id or by name, or says how it is missing.
func (b *Broker) topicOf(byID bool, name string, id [16]byte) (*topic, *kerr.Error) {
	if byID {
		return b.topics.id(id), kerr.UnknownTopicID
	}
	return b.topics.name(name), kerr.UnknownTopicOrPartition
}

func commitOffset(r *kmsg.OffsetCommitRequest, p *kmsg.OffsetCommitRequestTopicPartition, now int64) group.Offset {
	o := group.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Committed: now, Expires: -1}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	if r.Version == 1 && p.Timestamp >= 0 {
		o.Committed = p.Timestamp
	}
	if r.Version >= 2 && r.Version <= 4 && r.RetentionTimeMillis >= 0 {
		o.Expires = now + min(r.RetentionTimeMillis, longestRetention)
	}
	return o
}

// longestRetention keeps the sum with a time in range, in milliseconds: about 3,000 years.
const longestRetention = 1e14

// tooLong reports if s is longer than limit characters of Java, which are UTF-16 units.
func tooLong(s string, limit int) bool {
	if len(s) <= limit {
		return false
	}
	units := 0
	for _, r := range s {
		units++
		if r > 0xffff && r <= utf8.MaxRune {
			units++
		}
	}
	return units > limit
}

// pendingCommit is an OffsetCommit that waits for its records to be durable.
type pendingCommit struct {
	wake     func()
	resp     *kmsg.OffsetCommitResponse
	deadline time.Time
	accepted []*kmsg.OffsetCommitResponseTopicPartition // given to the group
	refused  []*kmsg.OffsetCommitResponseTopicPartition // for their metadata
	result   atomic.Pointer[group.Reply]
}

// receive implements receiver.
func (c *pendingCommit) receive(r group.Reply) {
	c.result.Store(&r)
	c.wake()
}

// Poll implements wire.Pending.
func (c *pendingCommit) Poll(now time.Time) (wire.Reply, bool) {
	r := c.result.Load()
	switch {
	case r != nil:
		c.answer(r.Err)
	case !c.deadline.IsZero() && !now.Before(c.deadline):
		c.answer(kerr.CoordinatorNotAvailable) // the offsets may become durable yet; committing them again does no harm
	default:
		return wire.Reply{}, false
	}
	return wire.Reply{Body: wire.Message(c.resp)}, true
}

func (c *pendingCommit) answer(err *kerr.Error) {
	if err == nil {
		return
	}
	for _, res := range c.accepted {
		res.ErrorCode = err.Code
	}
	for _, res := range c.refused {
		res.ErrorCode = err.Code
	}
}

// Deadline implements wire.Pending.
func (c *pendingCommit) Deadline() time.Time { return c.deadline }

// Cancel implements wire.Pending. The commit stands.
func (c *pendingCommit) Cancel() {}
