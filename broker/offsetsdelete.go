package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/wire"
)

// OffsetDelete (key 47), version 0: offsets of topics that no member uses (KIP-496). Answered when the tombstones are durable.

func (b *Broker) handleOffsetDelete(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.OffsetDeleteRequest)
	d := &offsetDeletion{wake: req.Wake, resp: kmsg.NewPtrOffsetDeleteResponse()}
	d.resp.Topics = []kmsg.OffsetDeleteResponseTopic{}
	p, err := b.groups.find(r.Group)
	if err != nil {
		d.resp.ErrorCode = err.Code
		return wire.Reply{Body: wire.Message(d.resp)}
	}
	p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects {
		if err := g.CheckOffsetDelete(); err != nil {
			d.resp.ErrorCode = err.Code
			return group.Effects{Replies: []group.Reply{{To: d}}}
		}
		return g.DeleteOffsets(at, d, b.deletableOffsets(g, r, d))
	})
	if reply, ok := d.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: d}
}

// deletableOffsets fills the answer in and lists what is to be deleted.
func (b *Broker) deletableOffsets(g *group.Group, r *kmsg.OffsetDeleteRequest, d *offsetDeletion) []group.Partition {
	var all []group.Partition
	for i := range r.Topics {
		in := &r.Topics[i]
		out := kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = in.Topic
		t := b.topics.name(in.Topic)
		for j := range in.Partitions {
			res := kmsg.NewOffsetDeleteResponseTopicPartition()
			res.Partition = in.Partitions[j].Partition
			switch {
			case t == nil:
				res.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case g.Subscribed(in.Topic):
				res.ErrorCode = kerr.GroupSubscribedToTopic.Code
			default:
				all = append(all, group.Partition{Topic: in.Topic, Number: res.Partition})
			}
			out.Partitions = append(out.Partitions, res)
		}
		d.resp.Topics = append(d.resp.Topics, out)
	}
	return all
}

// offsetDeletion is an OffsetDelete that waits.
type offsetDeletion struct {
	wake func()
	resp *kmsg.OffsetDeleteResponse
	done atomic.Pointer[group.Reply]
}

// receive implements receiver.
func (d *offsetDeletion) receive(r group.Reply) {
	d.done.Store(&r)
	d.wake()
}

// Poll implements wire.Pending.
func (d *offsetDeletion) Poll(time.Time) (wire.Reply, bool) {
	r := d.done.Load()
	if r == nil {
		return wire.Reply{}, false
	}
	if r.Err != nil {
		d.resp.ErrorCode = r.Err.Code
		d.resp.Topics = []kmsg.OffsetDeleteResponseTopic{}
	}
	return wire.Reply{Body: wire.Message(d.resp)}, true
}

// Deadline implements wire.Pending. A write ends, well or badly.
func (d *offsetDeletion) Deadline() time.Time { return time.Time{} }

// Cancel implements wire.Pending.
func (d *offsetDeletion) Cancel() {}
