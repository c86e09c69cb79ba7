package broker

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// stateTopic is the internal topic of a coordinator, made when it is first needed. P is what the coordinator keeps for each partition.
type stateTopic[P any] struct {
	of   *Broker
	name string
	// shape is the topic as it is to be made.
	shape func() controller.NewTopic
	// taken makes the topic's partitions the coordinator's, by setting parts; starting is held. left lets go of them.
	taken func(*topic)
	left  func()

	// parts is nil while there is no such topic. Their number is fixed while the broker runs.
	parts atomic.Pointer[[]*P]
	// starting is held while parts are made, topic and all; Broker.admin is taken under it.
	starting sync.Mutex
}

// reopen takes the topic over if there is one from before.
func (s *stateTopic[P]) reopen() {
	if t := s.of.topics.name(s.name); t != nil {
		s.starting.Lock()
		s.taken(t)
		s.starting.Unlock()
	}
}

// ensure makes the topic when it is missing.
func (s *stateTopic[P]) ensure(ctx context.Context) error {
	if s.parts.Load() != nil {
		return nil
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.parts.Load() != nil {
		return nil
	}
	t := s.of.topics.name(s.name)
	if t == nil {
		res, err := s.of.createTopics(ctx, []controller.NewTopic{s.shape()}, false)
		if err == nil && kafkaError(res[0].Err) != kerr.TopicAlreadyExists {
			err = res[0].Err
		}
		if err != nil {
			return err
		}
		if t = s.of.topics.name(s.name); t == nil {
			return kerr.CoordinatorNotAvailable // deleted again meanwhile
		}
	}
	s.taken(t)
	if s.of.topics.name(s.name) != t {
		s.left()
		return kerr.CoordinatorNotAvailable
	}
	return nil
}

// leadershipChanged tells that this broker leads a partition from now on, or not any more. Broker.admin is held, and starting must not be taken.
func (s *stateTopic[P]) leadershipChanged(p *partition) {
	if p.topic.name != s.name {
		return
	}
}

// at returns the partition that a key lives in, nil when there is none.
func (s *stateTopic[P]) at(key string) *P {
	parts := s.parts.Load()
	if parts == nil {
		return nil
	}
	return (*parts)[partitionForKey(key, len(*parts))]
}

// all are the partitions.
func (s *stateTopic[P]) all() []*P {
	if parts := s.parts.Load(); parts != nil {
		return *parts
	}
	return nil
}

// partitionForKey is Kafka's: the absolute value of Java's String.hashCode, modulo the partitions.
func partitionForKey(key string, partitions int) int {
	h := int32(0)
	for _, r := range key {
		if r > 0xffff { // two characters in Java
			high, low := utf16.EncodeRune(r)
			h, r = 31*h+high, low
		}
		h = 31*h + r
	}
	if h == math.MinInt32 {
		h = 0
	}
	return int(max(h, -h)) % partitions
}
