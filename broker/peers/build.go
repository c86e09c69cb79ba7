package peers

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// sender is what all requests to one broker have in common.
type sender struct {
	controllerID    int32
	controllerEpoch int32
	listener        string   // inter.broker.listener.name
	live            []Broker // in the order of their ids
	to              *Broker
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

func sorted[V any](m map[place]V) []place { return slices.SortedFunc(maps.Keys(m), comparePlaces) }

// leaderAndISR makes LeaderAndIsr requests at a version: one, or two when that names topics by id (from 5 on) and some have none. Those go at version 4, as
// Kafka sends them before topics have ids.
func (s *sender) leaderAndISR(version int16, leaders map[place]leading) []kmsg.Request {
	named, plain := map[place]leading{}, map[place]leading{}
	for at, l := range leaders {
		if version >= 5 && l.id == [16]byte{} {
			plain[at] = l
		} else {
			named[at] = l
		}
	}
	var reqs []kmsg.Request
	if len(named) > 0 {
		reqs = append(reqs, s.oneLeaderAndISR(version, named))
	}
	if len(plain) > 0 {
		reqs = append(reqs, s.oneLeaderAndISR(4, plain))
	}
	return reqs
}

func (s *sender) oneLeaderAndISR(version int16, leaders map[place]leading) *kmsg.LeaderAndISRRequest {
	req := kmsg.NewPtrLeaderAndISRRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = version, s.controllerID, s.controllerEpoch, s.to.Epoch
	named := map[int32]bool{}
	for _, at := range sorted(leaders) {
		l := leaders[at]
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.Topic, p.Partition, p.ControllerEpoch, p.IsNew = at.topic, at.partition, l.ControllerEpoch, l.isNew
		p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion = l.Leader, l.LeaderEpoch, l.ISR, l.Version
		p.Replicas, p.AddingReplicas, p.RemovingReplicas = l.Replicas, l.Adding, l.Removing
		named[l.Leader] = true
		if version < 2 {
			req.PartitionStates = append(req.PartitionStates, p)
			continue
		}
		if n := len(req.TopicStates); n == 0 || req.TopicStates[n-1].Topic != at.topic {
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic, t.TopicID = at.topic, l.id
			req.TopicStates = append(req.TopicStates, t)
		}
		t := &req.TopicStates[len(req.TopicStates)-1]
		t.PartitionStates = append(t.PartitionStates, p)
	}
	for _, b := range s.live {
		if e, err := Endpoint(s.listener, b.Endpoints); err == nil && named[b.ID] {
			req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: b.ID, Host: e.Host, Port: e.Port})
		}
	}
	return req
}

// updateMetadata makes an UpdateMetadata request at a version.
func (s *sender) updateMetadata(version int16, metadata map[place]known) kmsg.Request {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = version, s.controllerID, s.controllerEpoch, s.to.Epoch
	for _, at := range sorted(metadata) {
		k := metadata[at]
		p := s.metadataOf(at, k)
		if version < 5 {
			req.PartitionStates = append(req.PartitionStates, p)
			continue
		}
		if n := len(req.TopicStates); n == 0 || req.TopicStates[n-1].Topic != at.topic {
			t := kmsg.NewUpdateMetadataRequestTopicState()
			t.Topic, t.TopicID = at.topic, k.id
			req.TopicStates = append(req.TopicStates, t)
		}
		t := &req.TopicStates[len(req.TopicStates)-1]
		t.PartitionStates = append(t.PartitionStates, p)
	}
	for i := range s.live {
		if b, ok := liveBroker(version, &s.live[i]); ok {
			req.LiveBrokers = append(req.LiveBrokers, b)
		}
	}
	return req
}

func (s *sender) metadataOf(at place, k known) kmsg.UpdateMetadataRequestTopicPartition {
	p := kmsg.NewUpdateMetadataRequestTopicPartition()
	p.Topic, p.Partition, p.ControllerEpoch = at.topic, at.partition, k.ControllerEpoch
	p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion, p.Replicas = k.Leader, k.LeaderEpoch, k.ISR, k.Version, k.Replicas
	if k.deleting {
		p.Leader, p.LeaderEpoch, p.ZKVersion = leaderDuringDelete, 0, 0
	}
	for _, r := range k.Replicas {
		if !slices.ContainsFunc(s.live, func(b Broker) bool { return b.ID == r }) || slices.Contains(k.Failed, r) {
			p.OfflineReplicas = append(p.OfflineReplicas, r)
		}
	}
	return p
}

// liveBroker is a broker as UpdateMetadata has it. Version 0 knows one PLAINTEXT address only; a broker without one is left out.
func liveBroker(version int16, b *Broker) (kmsg.UpdateMetadataRequestLiveBroker, bool) {
	to := kmsg.NewUpdateMetadataRequestLiveBroker()
	to.ID = b.ID
	if b.Rack != "" {
		to.Rack = &b.Rack
	}
	if version == 0 {
		e, err := Endpoint("", b.Endpoints)
		to.Host, to.Port = e.Host, e.Port
		return to, err == nil
	}
	for _, e := range b.Endpoints {
		to.Endpoints = append(to.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
			Host: e.Host, Port: e.Port, ListenerName: e.Listener, SecurityProtocol: protocolID(e.Protocol),
		})
	}
	return to, true
}

// stopReplica makes StopReplica requests at a version: one, or before version 3 one without and one with deletion.
func (s *sender) stopReplica(version int16, stops map[place]stopping) []kmsg.Request {
	if version >= 3 {
		return []kmsg.Request{s.oneStopReplica(version, false, stops)}
	}
	var reqs []kmsg.Request
	for _, remove := range []bool{false, true} {
		some := maps.Clone(stops)
		maps.DeleteFunc(some, func(_ place, stop stopping) bool { return stop.remove != remove })
		if len(some) > 0 {
			reqs = append(reqs, s.oneStopReplica(version, remove, some))
		}
	}
	return reqs
}

func (s *sender) oneStopReplica(version int16, remove bool, stops map[place]stopping) *StopReplicaRequest {
	req := &StopReplicaRequest{kmsg.NewStopReplicaRequest()}
	req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = version, s.controllerID, s.controllerEpoch, s.to.Epoch
	req.DeletePartitions = remove
	for _, at := range sorted(stops) {
		if n := len(req.Topics); version == 0 || n == 0 || req.Topics[n-1].Topic != at.topic {
			req.Topics = append(req.Topics, kmsg.StopReplicaRequestTopic{Topic: at.topic, Partition: at.partition})
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, at.partition)
		t.PartitionStates = append(t.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{
			Partition: at.partition, LeaderEpoch: stops[at].epoch, Delete: stops[at].remove,
		})
	}
	return req
}

// requests are those of a step, in order. version chooses one for a kind of request; an error of it ends the list.
func (s *sender) requests(of *step, version func(kmsg.Request) (int16, error)) ([]kmsg.Request, error) {
	var reqs []kmsg.Request
	kinds := []struct {
		wanted bool
		kind   kmsg.Request
		build  func(version int16) []kmsg.Request
	}{
		{len(of.leaders) > 0, new(kmsg.LeaderAndISRRequest), func(v int16) []kmsg.Request { return s.leaderAndISR(v, of.leaders) }},
		{of.update, new(kmsg.UpdateMetadataRequest), func(v int16) []kmsg.Request { return []kmsg.Request{s.updateMetadata(v, of.metadata)} }},
		{len(of.stops) > 0, new(StopReplicaRequest), func(v int16) []kmsg.Request { return s.stopReplica(v, of.stops) }},
	}
	for _, k := range kinds {
		if !k.wanted {
			continue
		}
		v, err := version(k.kind)
		if err != nil {
			return nil, err
		}
		reqs = append(reqs, k.build(v)...)
	}
	return reqs, nil
}
