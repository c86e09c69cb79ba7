package broker

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// Metadata (key 3), versions 0 to 13.
//
//   - v0: an empty list asks for all topics; from v1 on null does, and an empty list asks for none.
//   - A named topic that is missing is created when auto.create.topics.enable and the request (v4+; before, always) allow it. It is
//     created before the answer, which therefore has its leader: some clients give up on LEADER_NOT_AVAILABLE.
//   - The address is the one that the client came in on, unless advertised.listeners names another for that listener.
//   - v12 asks by topic id.

// notAsked is the value of authorized operations that were not asked for.
const notAsked = -2147483648

// All operations on a topic and on the cluster, as bits of their codes (KIP-430): without an authorizer everything is allowed.
const (
	allTopicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	allClusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)

func (b *Broker) handleMetadata(ctx context.Context, req *wire.Request, r *kmsg.MetadataRequest) kmsg.Response {
	resp := kmsg.NewPtrMetadataResponse()
	if err := metadataRefusal(r); err != nil {
		for i := range r.Topics {
			resp.Topics = append(resp.Topics, failedTopic(r, &r.Topics[i], err))
		}
		return resp
	}
	for _, s := range b.brokersFor(req.Conn) {
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = s.id, s.host, s.port, s.rack
		resp.Brokers = append(resp.Brokers, broker)
	}
	resp.ClusterID = &b.clusterID
	resp.ControllerID = b.view.Load().controller
	resp.AuthorizedOperations = notAsked
	if r.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = allClusterOperations
	}
	if r.Topics == nil || r.Version == 0 && len(r.Topics) == 0 {
		for _, t := range b.topics.all() {
			resp.Topics = append(resp.Topics, b.describeTopic(t, r))
		}
		return resp
	}
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, len(r.Topics))
	for _, in := range askedOnce(r) {
		resp.Topics = append(resp.Topics, b.metadataTopic(ctx, r, in))
	}
	return resp
}

// metadataRefusal says why a request is refused as a whole: ids before v12, or nothing to look for.
func metadataRefusal(r *kmsg.MetadataRequest) error {
	for i := range r.Topics {
		named, byID := r.Topics[i].Topic != nil, r.Topics[i].TopicID != [16]byte{}
		if !named && !byID || byID && r.Version < 12 {
			return kerr.InvalidRequest
		}
	}
	return nil
}

// askedOnce are the topics of a request, each once. As in Kafka only those that are asked for by id count when there are any.
func askedOnce(r *kmsg.MetadataRequest) (once []*kmsg.MetadataRequestTopic) {
	byID := slices.ContainsFunc(r.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.TopicID != [16]byte{} })
	names, ids := map[string]bool{}, map[[16]byte]bool{}
	for i := range r.Topics {
		in := &r.Topics[i]
		switch {
		case byID && (in.TopicID == [16]byte{} || ids[in.TopicID]), !byID && names[*in.Topic]:
			continue
		case byID:
			ids[in.TopicID] = true
		default:
			names[*in.Topic] = true
		}
		once = append(once, in)
	}
	return once
}

// failedTopic is the answer for a topic that is not described.
func failedTopic(r *kmsg.MetadataRequest, in *kmsg.MetadataRequestTopic, err error) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID = in.Topic, in.TopicID
	if in.Topic == nil && r.Version < 12 {
		out.Topic = new(string)
	}
	out.ErrorCode = code(err)
	out.Partitions = []kmsg.MetadataResponseTopicPartition{}
	if r.IncludeTopicAuthorizedOperations && in.Topic != nil {
		out.AuthorizedOperations = allTopicOperations
	}
	return out
}

// metadataTopic answers for one topic that was asked for by name or id.
func (b *Broker) metadataTopic(ctx context.Context, r *kmsg.MetadataRequest, in *kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	failure := func(err error) kmsg.MetadataResponseTopic { return failedTopic(r, in, err) }
	if in.TopicID != [16]byte{} {
		if t := b.topics.id(in.TopicID); t != nil {
			return b.describeTopic(t, r)
		}
		return failure(kerr.UnknownTopicID)
	}
	t := b.topics.name(*in.Topic)
	if t == nil {
		if err := b.autoCreate(ctx, *in.Topic, r.Version < 4 || r.AllowAutoTopicCreation); err != nil {
			return failure(err)
		}
		if t = b.topics.name(*in.Topic); t == nil {
			return failure(kerr.UnknownTopicOrPartition) // deleted again meanwhile
		}
	}
	return b.describeTopic(t, r)
}

func (b *Broker) describeTopic(t *topic, r *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.name, t.id, t.internal
	out.AuthorizedOperations = notAsked
	if r.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = allTopicOperations
	}
	parts, v := *t.partitions.Load(), b.view.Load()
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, 0, len(parts))
	for _, p := range parts {
		one := kmsg.NewMetadataResponseTopicPartition()
		s := p.seen(v)
		one.Partition, one.Leader, one.LeaderEpoch, one.ErrorCode = p.num, s.leader, s.epoch, code(s.err)
		one.Replicas, one.ISR, one.OfflineReplicas = s.replicas, s.isr, s.offline
		out.Partitions = append(out.Partitions, one)
	}
	return out
}
