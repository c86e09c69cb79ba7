package peers

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// read takes an answer apart. Topics that it names by id are those of the request.
func read(to *Broker, req kmsg.Request, kresp kmsg.Response) (Answer, error) {
	a := Answer{Broker: to.ID, Epoch: to.Epoch, Key: req.Key()}
	switch resp := kresp.(type) {
	case *kmsg.LeaderAndISRResponse:
		a.Code = resp.ErrorCode
		for _, p := range resp.Partitions {
			a.Partitions = append(a.Partitions, PartitionError{p.Topic, p.Partition, p.ErrorCode})
		}
		names := topicNames(req)
		for _, t := range resp.Topics {
			name, ok := names[t.TopicID]
			if !ok {
				return a, fmt.Errorf("%w: LeaderAndIsr to broker %d: it is about a topic with id %x, which was not in the request", ErrProtocol, to.ID, t.TopicID)
			}
			for _, p := range t.Partitions {
				a.Partitions = append(a.Partitions, PartitionError{name, p.Partition, p.ErrorCode})
			}
		}
	case *kmsg.StopReplicaResponse:
		a.Code = resp.ErrorCode
		for _, p := range resp.Partitions {
			a.Partitions = append(a.Partitions, PartitionError{p.Topic, p.Partition, p.ErrorCode})
		}
	case *kmsg.UpdateMetadataResponse:
		a.Code = resp.ErrorCode
	default:
		return a, fmt.Errorf("%w: a %T to %s", ErrProtocol, kresp, kmsg.NameForKey(req.Key()))
	}
	return a, nil
}

func topicNames(req kmsg.Request) map[[16]byte]string {
	names := map[[16]byte]string{}
	if r, ok := req.(*kmsg.LeaderAndISRRequest); ok {
		for _, t := range r.TopicStates {
			names[t.TopicID] = t.Topic
		}
	}
	return names
}

// outcome is what the answers to a step's StopReplica requests say about the partitions of one Stop or Delete.
func (w *waiter) outcome(broker int32, answers []Answer) Stopped {
	s := Stopped{Broker: broker}
	for _, a := range answers {
		if s.Code == 0 {
			s.Code = a.Code
		}
		for _, p := range a.Partitions {
			if w.places[place{p.Topic, p.Partition}] {
				s.Partitions = append(s.Partitions, p)
			}
		}
	}
	return s
}
