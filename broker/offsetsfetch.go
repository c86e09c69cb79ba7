package broker

import (
	"context"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/wire"
)

// OffsetFetch (key 9), versions 0 to 10. What was never committed is offset -1 without error, whether group, topic or partition is unknown. Null topics
// ask for all (version 2 on). Errors of the coordinator are given for the group (8 on), at the top (2 to 7) or for every partition. Version 10
// names topics by id. With require_stable (version 7 on) a partition whose offset an open transaction commits is UNSTABLE_OFFSET_COMMIT.

// Versions of OffsetFetch that change the shape of the answer.
const (
	fetchErrorOnTop  = 2
	fetchesManyAtOne = 8
)

func (b *Broker) handleOffsetFetch(_ context.Context, _ *wire.Request, r *kmsg.OffsetFetchRequest) kmsg.Response {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if r.Version < fetchesManyAtOne {
		b.fetchOneGroup(r, resp)
		return resp
	}
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, 0, len(r.Groups))
	for i := range r.Groups {
		resp.Groups = append(resp.Groups, b.fetchGroup(&r.Groups[i], r))
	}
	return resp
}

// fetchGroup answers for one group of version 8 and later.
func (b *Broker) fetchGroup(in *kmsg.OffsetFetchRequestGroup, r *kmsg.OffsetFetchRequest) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = in.Group
	out.Topics = []kmsg.OffsetFetchResponseGroupTopic{}
	byID := r.Version >= topicIDsInOffsets
	p, err := b.groups.find(in.Group)
	if err != nil {
		out.ErrorCode = err.Code
		return out
	}
	if in.Topics == nil {
		for _, t := range b.allOffsets(offsetsOf{p, in.Group, r.RequireStable}) {
			if t.id == ([16]byte{}) && byID {
				continue // the topic was deleted just now
			}
			out.Topics = append(out.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: t.name, TopicID: t.id, Partitions: t.parts})
		}
		return out
	}
	for i := range in.Topics {
		t := &in.Topics[i]
		one := kmsg.NewOffsetFetchResponseGroupTopic()
		one.Topic, one.TopicID = t.Topic, t.TopicID
		name, unknown := t.Topic, (*kerr.Error)(nil)
		if byID {
			if known := b.topics.id(t.TopicID); known != nil {
				name = known.name
			} else {
				unknown = kerr.UnknownTopicID
			}
		}
		one.Partitions = offsetsOf{p, in.Group, r.RequireStable}.partitions(name, t.Partitions, unknown)
		out.Topics = append(out.Topics, one)
	}
	return out
}

// fetchOneGroup answers versions 0 to 7.
func (b *Broker) fetchOneGroup(r *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	resp.Topics = []kmsg.OffsetFetchResponseTopic{}
	p, err := b.groups.find(r.Group)
	if err != nil && r.Version >= fetchErrorOnTop {
		resp.ErrorCode = err.Code
		return
	}
	if r.Topics == nil && r.Version >= fetchErrorOnTop {
		for _, t := range b.allOffsets(offsetsOf{p, r.Group, r.RequireStable}) {
			resp.Topics = append(resp.Topics, kmsg.OffsetFetchResponseTopic{Topic: t.name, Partitions: oldPartitions(t.parts)})
		}
		return
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		resp.Topics = append(resp.Topics, kmsg.OffsetFetchResponseTopic{Topic: t.Topic, Partitions: oldPartitions(offsetsOf{p, r.Group, r.RequireStable}.partitions(t.Topic, t.Partitions, err))})
	}
}

// offsetsOf is whose offsets are asked for. With stable, those that a transaction may change are not told (KIP-447).
type offsetsOf struct {
	p      *offsetsPartition
	id     string
	stable bool
}

// partitions answers for partitions of one topic. With an error none has an offset.
func (of offsetsOf) partitions(topic string, partitions []int32, err *kerr.Error) []kmsg.OffsetFetchResponseGroupTopicPartition {
	out := make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(partitions))
	for i, n := range partitions {
		out[i] = noOffset(n)
		if err != nil {
			out[i].ErrorCode = err.Code
		}
	}
	if err != nil {
		return out
	}
	of.p.read(of.id, func(g *group.Group) {
		for i, n := range partitions {
			at := group.Partition{Topic: topic, Number: n}
			if o, ok := g.Committed(at); ok || of.stable && g.Unstable(at) {
				out[i] = of.one(g, at, o)
			}
		}
	})
	return out
}

// one is an offset that there is, if it may be told.
func (of offsetsOf) one(g *group.Group, at group.Partition, o group.Offset) kmsg.OffsetFetchResponseGroupTopicPartition {
	if of.stable && g.Unstable(at) {
		out := noOffset(at.Number)
		out.ErrorCode = kerr.UnstableOffsetCommit.Code
		return out
	}
	return fetched(at.Number, o)
}

func noOffset(n int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	return kmsg.OffsetFetchResponseGroupTopicPartition{Partition: n, Offset: -1, LeaderEpoch: -1, Metadata: new(string)}
}

func fetched(n int32, o group.Offset) kmsg.OffsetFetchResponseGroupTopicPartition {
	return kmsg.OffsetFetchResponseGroupTopicPartition{Partition: n, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: &o.Metadata}
}

// oldPartitions are those of versions 0 to 7, whose type is another.
func oldPartitions(in []kmsg.OffsetFetchResponseGroupTopicPartition) []kmsg.OffsetFetchResponseTopicPartition {
	out := make([]kmsg.OffsetFetchResponseTopicPartition, len(in))
	for i := range in {
		out[i] = kmsg.OffsetFetchResponseTopicPartition{Partition: in[i].Partition, Offset: in[i].Offset, LeaderEpoch: in[i].LeaderEpoch,
			Metadata: in[i].Metadata, ErrorCode: in[i].ErrorCode}
	}
	return out
}

// topicOffsets are all offsets that a group has for one topic.
type topicOffsets struct {
	name  string
	id    [16]byte
	parts []kmsg.OffsetFetchResponseGroupTopicPartition
}

// allOffsets lists what a group has, in order.
func (b *Broker) allOffsets(of offsetsOf) []topicOffsets {
	byTopic := make(map[string][]kmsg.OffsetFetchResponseGroupTopicPartition)
	of.p.read(of.id, func(g *group.Group) {
		for at, o := range g.AllCommitted {
			byTopic[at.Topic] = append(byTopic[at.Topic], of.one(g, at, o))
		}
	})
	all := make([]topicOffsets, 0, len(byTopic))
	for name, parts := range byTopic {
		sort.Slice(parts, func(i, j int) bool { return parts[i].Partition < parts[j].Partition })
		t := topicOffsets{name: name, parts: parts}
		if known := b.topics.name(name); known != nil {
			t.id = known.id
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y topicOffsets) int {
		if x.name < y.name {
			return -1
		}
		return 1
	})
	return all
}
