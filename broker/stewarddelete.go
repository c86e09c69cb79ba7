package broker

import (
	"context"
	"errors"
	"slices"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/broker/peers"
)

// leave has a topic of the tree, marked for deletion, removed. Needs admin.
func (s *steward) leave(t *controller.Topic) {
	if here := s.b.topics.name(t.Name); here != nil {
		s.b.topicGone(here)
	}
	l := leaving{name: t.Name, id: t.ID, partitions: len(t.Partitions)}
	for i := range t.Partitions {
		l.addRemote(t.Partitions[i].Replicas, s.b.nodeID)
	}
	s.b.leaving = append(s.b.leaving, l)
}

// isLeaving says whether a topic is being deleted. Needs admin.
func (s *steward) isLeaving(name string) bool {
	return slices.ContainsFunc(s.b.leaving, func(l leaving) bool { return l.name == name })
}

// retryDeletions has the brokers that live remove their replicas of topics that are leaving. Needs admin and the seat.
func (s *steward) retryDeletions() {
	for i := range s.b.leaving {
		if l := &s.b.leaving[i]; len(l.remote) > 0 {
			s.seat.others.Delete(l.name, s.stopped(l.name))
		}
	}
}

// removedReplicas is a broker that has removed all its replicas of a topic.
type removedReplicas struct {
	topic  string
	broker int32
}

// stopped hears of the end of a Delete at one broker, on a goroutine of the announcer.
func (s *steward) stopped(topic string) func(peers.Stopped) {
	return func(r peers.Stopped) {
		failed := r.Code != 0 || slices.ContainsFunc(r.Partitions, func(p peers.PartitionError) bool { return p.Code != 0 })
		switch {
		case errors.Is(r.Err, peers.ErrClosed) || errors.Is(r.Err, peers.ErrLeft):
			return // asked again by whoever has the seat, or when the broker is back
		case r.Err != nil || failed:
			s.logger.Error("replicas of a deleted topic stay on a broker until it starts again", "topic", topic, "broker", r.Broker, "code", r.Code, "error", r.Err)
			return
		}
		s.mu.Lock()
		s.removed = append(s.removed, removedReplicas{topic, r.Broker})
		s.mu.Unlock()
		s.look(meta.DeleteTopicsPath)
	}
}

// followDeletions deletes topics that are marked, and completes the deletion of those whose replicas are gone.
func (s *steward) followDeletions(ctx context.Context) error {
	b := s.b
	b.admin.Lock()
	defer b.admin.Unlock()
	if s.seat == nil {
		return nil
	}
	s.mu.Lock()
	removed := s.removed
	s.removed = nil
	s.mu.Unlock()
	for _, r := range removed {
		for i := range b.leaving {
			if b.leaving[i].name == r.topic {
				delete(b.leaving[i].remote, r.broker)
			}
		}
	}
	if err := b.finishDeletions(ctx); err != nil {
		return err
	}
	marked, err := s.tree.Children(ctx, meta.DeleteTopicsPath)
	if err != nil {
		return err
	}
	var wanted []*topic
	for _, name := range marked {
		t := b.topics.name(name)
		switch {
		case s.isLeaving(name):
		case t != nil && b.conf.DeleteTopics:
			wanted = append(wanted, t)
		default:
			s.logger.Warn("a topic that a tool marked is not deleted", "topic", name, "exists", t != nil, "delete.topic.enable", b.conf.DeleteTopics)
			if err := s.drop(ctx, meta.DeleteTopicPath(name)); err != nil {
				return err
			}
		}
	}
	return b.deleteAll(ctx, wanted)
}

// deleting has the other brokers remove their replicas of topics that have just been marked. Needs admin.
func (s *steward) deleting(topics []leaving) {
	if s == nil || s.seat == nil {
		return
	}
	for i := range topics {
		s.seat.others.Delete(topics[i].name, s.stopped(topics[i].name))
	}
}

// deleted forgets topics. Needs admin.
func (s *steward) deleted(names []string) {
	if s == nil || s.seat == nil {
		return
	}
	for _, name := range names {
		s.seat.others.Forget(name)
		delete(s.seat.known, name)
	}
}

// made tells of topics, or of their new partitions, that this broker made as the controller. Needs admin.
func (s *steward) made(topics []controller.Topic) {
	if s == nil || s.seat == nil {
		return
	}
	s.seat.others.Announce(tellOfTopics(topics...)...)
	if err := s.watchTopics(topics); err != nil {
		s.look(meta.TopicsPath) // it finds those that are not watched
	}
}

// drop removes a node that has been looked at, if it is there.
func (s *steward) drop(ctx context.Context, path string) error {
	err := s.tree.Multi(ctx, meta.DeleteOp(path, meta.AnyVersion))
	if isNoNode(err) {
		return nil
	}
	return err
}
