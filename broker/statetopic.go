package broker

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// stateTopic is the internal topic of a coordinator, made when it is first needed, and the partitions of it that this broker leads. P is what the
// coordinator keeps for each of these. A partition is loaded when this broker begins to lead it and unloaded when it does not any more: that is said
// under Broker.admin and carried out by a goroutine (statepartitions.go).
type stateTopic[P statePartition] struct {
	of   *Broker
	loop *stateLoop
	name string
	// shape is the topic as it is to be made.
	shape func() controller.NewTopic
	// fresh makes what is kept for a partition, with nothing in it.
	fresh func() P

	// held is nil while there is no such topic, or none that is known.
	held atomic.Pointer[held[P]]
	// starting is held while the topic is made; Broker.admin is taken under it.
	starting sync.Mutex

	mu       sync.Mutex // guards changes of held and what is below; see doc.go
	leaving  []P        // to be unloaded; the first may be just then
	entering []P        // to be loaded
	changes  chan struct{}
}

// held is the topic and its partitions that are led here. It is replaced as a whole.
type held[P any] struct {
	topic *topic
	// count is how many partitions the topic has, which keys are hashed to; 0 while that is not known. It is fixed while the topic lives, as in Kafka.
	count int
	// led are the partitions by number, nil for those that this broker does not lead.
	led []P
}

func (s *stateTopic[P]) init(b *Broker, loop *stateLoop, name string, shape func() controller.NewTopic, fresh func() P) {
	s.of, s.loop, s.name, s.shape, s.fresh = b, loop, name, shape, fresh
	s.changes = make(chan struct{}, 1)
}

// topicAdded takes the topic over when it comes into the catalog whole: at the start, or made by this broker for whoever asked.
func (s *stateTopic[P]) topicAdded(t *topic) {
	if t.name == s.name {
		s.take(t, len(*t.partitions.Load()))
	}
}

// ensure makes the topic when it is missing.
func (s *stateTopic[P]) ensure(ctx context.Context) error {
	if s.known() {
		return nil
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.known() {
		return nil
	}
	t := s.of.topics.name(s.name)
	if t == nil {
		if err := s.of.makeTopic(ctx, s.shape()); err != nil {
			return err
		}
		if t = s.of.topics.name(s.name); t == nil {
			return kerr.CoordinatorNotAvailable // made by another broker and not known yet, or deleted again meanwhile
		}
	}
	count, err := s.of.control.PartitionCount(ctx, s.name)
	if err != nil {
		return err
	}
	if count == 0 || !s.take(t, count) {
		return kerr.CoordinatorNotAvailable // deleted meanwhile
	}
	return nil
}

// known says that the topic is there and how many partitions it has.
func (s *stateTopic[P]) known() bool {
	h := s.held.Load()
	return h != nil && h.count > 0
}

// take makes t the coordinator's topic, with the partitions that this broker leads. False says that there is no such topic any more.
func (s *stateTopic[P]) take(t *topic, count int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of.topics.name(s.name) != t {
		return false
	}
	s.change(t, count, *t.partitions.Load()...)
	return true
}

// leadershipChanged tells that this broker leads a partition from now on, or not any more. Broker.admin is held, and starting must not be taken.
func (s *stateTopic[P]) leadershipChanged(p *partition) {
	if p.topic.name != s.name {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(p.topic, 0, p)
}

// forget lets go of everything if the topic was deleted.
func (s *stateTopic[P]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held.Load(); h != nil && s.of.topics.name(s.name) != h.topic {
		s.letGo(h)
		s.held.Store(nil)
		s.changed()
	}
}

// at returns the partition that a key lives in, nil when this broker does not lead it.
func (s *stateTopic[P]) at(key string) (p P) {
	if h := s.held.Load(); h != nil && h.count > 0 {
		if n := partitionForKey(key, h.count); n < len(h.led) {
			return h.led[n]
		}
	}
	return p
}

// find is at, or NOT_COORDINATOR when that is nowhere here, COORDINATOR_LOAD_IN_PROGRESS while it is read.
func (s *stateTopic[P]) find(key string) (P, *kerr.Error) {
	p := s.at(key)
	var none P
	if p == none {
		return none, kerr.NotCoordinator
	}
	return p, p.base().usable()
}

// number is that of the partition that a key lives in, whoever leads it; COORDINATOR_NOT_AVAILABLE while that is not known.
func (s *stateTopic[P]) number(key string) (int32, *kerr.Error) {
	h := s.held.Load()
	if h == nil || h.count == 0 {
		return 0, kerr.CoordinatorNotAvailable
	}
	return int32(partitionForKey(key, h.count)), nil
}

// coordinates is the broker that leads the partition of a key, or why there is none.
func (s *stateTopic[P]) coordinates(key string, v *view) (int32, error) {
	n, err := s.number(key)
	if err != nil {
		return noLeader, err
	}
	h := s.held.Load()
	if h == nil {
		return noLeader, kerr.CoordinatorNotAvailable
	}
	p := h.topic.partition(n)
	if p == nil {
		return noLeader, kerr.CoordinatorNotAvailable
	}
	if seen := p.seen(v); seen.err == nil {
		return seen.leader, nil
	}
	return noLeader, refuse(kerr.CoordinatorNotAvailable, "%s-%d has no leader", s.name, n)
}

// heldFor is what is kept for a partition, nil when that is not this coordinator's.
func (s *stateTopic[P]) heldFor(part *partition) (p P) {
	var none P
	if h := s.held.Load(); h != nil && int(part.num) < len(h.led) && h.led[part.num] != none && h.led[part.num].base().part == part {
		return h.led[part.num]
	}
	return none
}

// all are the partitions that are led here.
func (s *stateTopic[P]) all() []P {
	h := s.held.Load()
	if h == nil {
		return nil
	}
	var none P
	return slices.DeleteFunc(slices.Clone(h.led), func(p P) bool { return p == none || p.base().state.Load() == stateGone })
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
