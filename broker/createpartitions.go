package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// CreatePartitions (key 37), versions 0 to 3. Each topic succeeds or fails by itself. The answer comes when the partitions can be written to.

func (b *Broker) handleCreatePartitions(ctx context.Context, _ *wire.Request, r *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreatePartitionsResponse()
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
		for _, a := range t.Assignment {
			assignment = append(assignment, a.Replicas)
		}
		add(t.Topic, b.createPartitions(ctx, t.Topic, t.Count, assignment, r.ValidateOnly))
	}
	return resp
}
