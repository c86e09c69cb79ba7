package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// CreatePartitions (key 37), versions 0 to 3. Each topic succeeds or fails by itself. The answer comes when the partitions can be written to.

func (b *Broker) handleCreatePartitions(ctx context.Context, req *wire.Request, r *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreatePartitionsResponse()
	quota := mutations{broker: b, clientID: req.ClientID, strict: r.Version >= 3}
	add := func(name string, err error) {
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic, out.ErrorCode, out.ErrorMessage = name, code(err), errorText(err)
		resp.Topics = append(resp.Topics, out)
	}
	twice := repeated(r.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	for name := range twice {
		add(name, refuse(kerr.InvalidRequest, "Duplicate topic name."))
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		if twice[t.Topic] {
			continue
		}
		var assignment [][]int32
		if t.Assignment != nil {
			assignment = make([][]int32, 0, len(t.Assignment)) // an empty list is too short, null is for the broker to choose
		}
		for _, a := range t.Assignment {
			assignment = append(assignment, a.Replicas)
		}
		if err := b.takeMore(&quota, r, t); err != nil {
			add(t.Topic, err)
			continue
		}
		add(t.Topic, b.createPartitions(ctx, t.Topic, t.Count, assignment, r.ValidateOnly))
	}
	resp.ThrottleMillis = quota.millis()
	return resp
}

// takeMore takes what new partitions of a topic need of the quota.
func (b *Broker) takeMore(quota *mutations, r *kmsg.CreatePartitionsRequest, in *kmsg.CreatePartitionsRequestTopic) error {
	t := b.topics.name(in.Topic)
	if t == nil || r.ValidateOnly {
		return nil
	}
	return quota.take(max(int(in.Count)-len(*t.partitions.Load()), 0))
}
