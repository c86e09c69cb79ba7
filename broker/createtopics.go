package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/wire"
)

// CreateTopics (key 19), versions 0 to 7.
//
//   - Each topic succeeds or fails by itself; a name that is there twice is refused once. The timeout is not used: the answer comes when the
//     topics are there and can be written to.
//   - v1 has validate_only and messages, v5 returns numbers and the effective configuration, v7 the topic id. Every version makes an id.

func (b *Broker) handleCreateTopics(ctx context.Context, req *wire.Request, r *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreateTopicsResponse()
	quota := mutations{broker: b, clientID: req.ClientID, strict: r.Version >= 6}
	twice := repeated(r.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	var wanted []controller.NewTopic
	for i := range r.Topics {
		if twice[r.Topics[i].Topic] {
			continue
		}
		n := newTopicOf(&r.Topics[i])
		if err := b.takeFor(&quota, r, &n); err != nil {
			resp.Topics = append(resp.Topics, b.createdTopic(n.Name, &controller.CreateResult{Err: err}))
			continue
		}
		wanted = append(wanted, n)
	}
	results, err := b.createTopics(ctx, wanted, r.ValidateOnly)
	for i := range wanted {
		res := controller.CreateResult{Err: err}
		if err == nil {
			res = results[i]
		}
		resp.Topics = append(resp.Topics, b.createdTopic(wanted[i].Name, &res))
	}
	for name := range twice {
		res := controller.CreateResult{Err: refuse(kerr.InvalidRequest, "Duplicate topic name.")}
		resp.Topics = append(resp.Topics, b.createdTopic(name, &res))
	}
	resp.ThrottleMillis = quota.millis()
	return resp
}

// takeFor takes what a new topic needs of the quota.
func (b *Broker) takeFor(quota *mutations, r *kmsg.CreateTopicsRequest, n *controller.NewTopic) error {
	if r.ValidateOnly {
		return nil
	}
	count := len(n.Assignment)
	if count == 0 {
		if count = int(n.Partitions); count < 0 {
			count = int(b.settings().NumPartitions)
		}
	}
	return quota.take(count)
}

func newTopicOf(in *kmsg.CreateTopicsRequestTopic) controller.NewTopic {
	n := controller.NewTopic{Name: in.Topic, Partitions: in.NumPartitions, Replication: in.ReplicationFactor, Config: make(map[string]*string, len(in.Configs))}
	for _, a := range in.ReplicaAssignment {
		n.Assignment = append(n.Assignment, controller.Assignment{Partition: a.Partition, Replicas: a.Replicas})
	}
	for _, c := range in.Configs {
		n.Config[c.Name] = c.Value
	}
	return n
}

func (b *Broker) createdTopic(name string, res *controller.CreateResult) kmsg.CreateTopicsResponseTopic {
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic = name
	out.ErrorCode, out.ErrorMessage = code(res.Err), errorText(res.Err)
	out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	if res.Err != nil {
		return out
	}
	t := &res.Topic
	out.TopicID = t.ID
	out.NumPartitions = int32(len(t.Partitions))
	out.ReplicationFactor = int16(len(t.Partitions[0].Replicas))
	for _, e := range b.settings().DescribeTopic(t.Config, nil) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.ReadOnly, c.Source, c.IsSensitive = e.Name, e.Value, e.ReadOnly, int8(e.Source), e.Sensitive
		out.Configs = append(out.Configs, c)
	}
	return out
}
