package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/broker/peers"
)

// seat is the controller's work under one epoch.
type seat struct {
	epoch  int32
	ctx    context.Context // of the watches
	end    context.CancelFunc
	others *peers.Announcer
	known  map[string]bool // topics that are watched
}

// takeSeat begins the controller's work: everything is read, leaders are set for who lives, and all are told. Needs admin.
func (s *steward) takeSeat(ctx context.Context) (err error) {
	b := s.b
	seat := &seat{epoch: b.control.Epoch(), known: map[string]bool{}}
	seat.ctx, seat.end = context.WithCancel(s.ctx)
	defer func() {
		if err != nil {
			seat.end()
		}
	}()
	follow := []string{meta.BrokersPath, meta.TopicsPath, meta.DeleteTopicsPath, meta.ReassignmentPath, meta.PreferredElectionPath, meta.ISRChangesPath, meta.LogDirEventsPath}
	for _, path := range follow {
		if err := s.watch(seat.ctx, path); err != nil {
			return err
		}
	}
	live, err := s.live(ctx)
	if err != nil {
		return err
	}
	topics, err := b.control.Load(ctx)
	if err != nil {
		return fmt.Errorf("reading the topics: %w", err)
	}
	if !b.dir.WasClean() && !b.bumped {
		if err := b.control.BumpLeaderEpochs(ctx, topics); err != nil {
			return fmt.Errorf("beginning new leader epochs: %w", err)
		}
		b.bumped = true
	}
	if _, err := b.control.ElectLeaders(ctx, topics, live.ids()); err != nil {
		return err
	}
	seat.others = peers.New(peers.Config{
		ControllerID: b.nodeID, ControllerEpoch: seat.epoch, Topics: tellOfTopics(topics...), Dialer: b.dialer(), Answered: s.answered, Logger: s.logger,
	})
	b.view.Store(live)
	s.settle(ctx, topics)
	seat.others.SetBrokers(peersOf(live))
	s.seat = seat
	if err := s.watchTopics(topics); err != nil {
		s.leaveSeat()
		return err
	}
	s.look(follow[2:]...)
	b.obedience.epoch.Store(seat.epoch) // older ones are not obeyed any more, also when the seat is lost again
	s.logger.Info("this broker is the controller", "controller epoch", seat.epoch, "topics", len(topics), "brokers", len(live.brokers))
	return nil
}

// leaveSeat ends the controller's work. Needs admin.
func (s *steward) leaveSeat() {
	if s.seat == nil {
		return
	}
	s.seat.end()
	s.seat.others.Close()
	s.seat = nil
	s.b.leaving = nil // whoever has the seat goes on with them
}

// settle makes the catalog what the tree says of all topics. Needs admin.
func (s *steward) settle(ctx context.Context, topics []controller.Topic) {
	b := s.b
	var here []placement
	b.leaving = nil
	there := make(map[string]bool, len(topics))
	for i := range topics {
		t := &topics[i]
		there[t.Name] = true
		if t.Deleting && b.conf.DeleteTopics { // else followDeletions takes the mark away
			s.leave(t)
			continue
		}
		s.identify(t)
		here = append(here, placementOf(t))
	}
	for id, err := range b.place(ctx, here) {
		b.logger.Error("partition is offline", "topic", id.Topic, "partition", id.Partition, "error", err)
	}
	for i := range topics {
		if t := b.topics.name(topics[i].Name); t != nil {
			b.reconfigure(t, topics[i].Config)
		}
	}
	for _, t := range b.topics.all() {
		if !there[t.name] && s.isGone(ctx, t.name) {
			b.logger.Warn("topic is not in the metadata any more; its data stays", "topic", t.name)
			b.topics.remove(t)
		}
	}
}

// isGone says whether a topic is not in the tree. One that is there and cannot be read is served as before, until it can.
func (s *steward) isGone(ctx context.Context, name string) bool {
	_, _, err := s.tree.Get(ctx, meta.TopicPath(name))
	return isNoNode(err)
}

// identify has a topic of the catalog that got its id from the tree just now, as those of Kafka before 2.8 do, taken anew, unless it is in use.
func (s *steward) identify(in *controller.Topic) {
	t := s.b.topics.name(in.Name)
	if t == nil || t.id != [16]byte{} || slices.ContainsFunc(*t.partitions.Load(), func(p *partition) bool { return p.lead.Load().led }) {
		return
	}
	s.b.topics.remove(t)
}

// errNotRegistered is a tree in which this broker does not live: its session has ended, and so has its seat.
var errNotRegistered = errors.New("this broker is not registered")

// live reads who lives. A controller that is not among them does not go on: it would make everything leaderless that it has.
func (s *steward) live(ctx context.Context) (*view, error) {
	nodes, err := s.b.control.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{self: s.b.nodeID, controller: s.b.nodeID}
	for id, node := range nodes {
		born, err := s.tree.Born(ctx, meta.BrokerPath(id))
		if isNoNode(err) {
			continue // left meanwhile
		}
		if err != nil {
			return nil, err
		}
		v.brokers = append(v.brokers, peer{id, born, node})
	}
	if _, registered := nodes[s.b.nodeID]; !registered {
		s.look(meta.BrokerPath(s.b.nodeID))
		return nil, errNotRegistered
	}
	slices.SortFunc(v.brokers, func(a, b peer) int { return int(a.id) - int(b.id) })
	return v, nil
}

// followBrokers gives partitions new leaders when brokers left or came.
func (s *steward) followBrokers(ctx context.Context) error {
	b := s.b
	b.admin.Lock()
	defer b.admin.Unlock()
	if s.seat == nil {
		return nil
	}
	live, err := s.live(ctx)
	if err != nil {
		return err
	}
	before := b.view.Load()
	moved := func(id int32) bool {
		i, was := before.find(id)
		j, is := live.find(id)
		return was != is || was && before.brokers[i].epoch != live.brokers[j].epoch
	}
	topics, err := b.control.LoadTopics(ctx, s.topicsWith(moved)...)
	if err != nil {
		return err
	}
	if _, err := b.control.ElectLeaders(ctx, topics, live.ids()); err != nil {
		return err
	}
	changes := s.untold(topics)
	b.view.Store(live)
	s.carryOut(ctx, changes)
	s.seat.others.SetBrokers(peersOf(live))
	s.seat.others.Announce(tellOfChanges(changes)...)
	s.retryDeletions()
	return nil
}

// untold are the partitions of topics whose leaders the catalog does not have yet: those that have just got others, and those of an earlier look that
// failed after some were written. Needs admin.
func (s *steward) untold(topics []controller.Topic) (changes []controller.Change) {
	for i := range topics {
		t := s.b.topics.name(topics[i].Name)
		if t == nil {
			continue // followTopics takes it
		}
		change := controller.Change{Topic: &topics[i]}
		for n := range topics[i].Partitions {
			told := &topics[i].Partitions[n]
			if p := t.partition(int32(n)); p == nil || p.lead.Load().leader != told.Leader || p.epoch() != told.LeaderEpoch {
				change.Partitions = append(change.Partitions, int32(n))
			}
		}
		if change.Partitions != nil {
			changes = append(changes, change)
		}
	}
	return changes
}

// topicsWith are the topics with a replica on a broker that is asked for.
func (s *steward) topicsWith(wanted func(int32) bool) (names []string) {
	for _, t := range s.b.topics.all() {
		if slices.ContainsFunc(*t.partitions.Load(), func(p *partition) bool { return slices.ContainsFunc(p.lead.Load().replicas, wanted) }) {
			names = append(names, t.name)
		}
	}
	return names
}

// carryOut does here what changed. Needs admin.
func (s *steward) carryOut(ctx context.Context, changes []controller.Change) {
	all := make([]placement, len(changes))
	for i, c := range changes {
		all[i] = placementOf(c.Topic)
	}
	for id, err := range s.b.place(ctx, all) {
		s.logger.Error("partition is offline", "topic", id.Topic, "partition", id.Partition, "error", err)
	}
}

// followTopics finds topics that tools made.
func (s *steward) followTopics(ctx context.Context) error {
	names, err := s.tree.Children(ctx, meta.TopicsPath)
	if err != nil {
		return err
	}
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	if s.seat == nil {
		return nil
	}
	there := make(map[string]bool, len(names))
	var fresh []string
	for _, name := range names {
		there[name] = true
		if !s.seat.known[name] && !s.isLeaving(name) {
			fresh = append(fresh, name)
		}
	}
	for name := range s.seat.known {
		if !there[name] {
			delete(s.seat.known, name)
		}
	}
	return s.adoptTopics(ctx, fresh)
}

// followTopic finds partitions that tools added.
func (s *steward) followTopic(ctx context.Context, name string) error {
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	if s.seat == nil || s.isLeaving(name) {
		return nil
	}
	return s.adoptTopics(ctx, []string{name})
}

// adoptTopics takes topics as they are in the tree, and tells all. Needs admin and the seat.
func (s *steward) adoptTopics(ctx context.Context, names []string) error {
	topics, err := s.b.control.LoadTopics(ctx, names...)
	if err != nil {
		return err
	}
	var here []placement
	var changed []controller.Topic
	for i := range topics {
		if s.differs(&topics[i]) {
			here = append(here, placementOf(&topics[i]))
			changed = append(changed, topics[i])
		}
	}
	for id, err := range s.b.place(ctx, here) {
		s.logger.Error("partition is offline", "topic", id.Topic, "partition", id.Partition, "error", err)
	}
	s.seat.others.Announce(tellOfTopics(changed...)...)
	return s.watchTopics(topics)
}

// differs says whether the catalog has a topic otherwise than the tree.
func (s *steward) differs(in *controller.Topic) bool {
	t := s.b.topics.name(in.Name)
	if t == nil || t.id != in.ID || len(*t.partitions.Load()) != len(in.Partitions) {
		return true
	}
	for i, p := range *t.partitions.Load() {
		l, told := p.lead.Load(), &in.Partitions[i]
		if l.leader != told.Leader || l.epoch != told.LeaderEpoch || !slices.Equal(l.replicas, told.Replicas) || !slices.Equal(l.isr, told.ISR) {
			return true
		}
	}
	return false
}

// watchTopics watches topics that are not watched yet. Needs admin and the seat.
func (s *steward) watchTopics(topics []controller.Topic) error {
	var fresh []string
	for i := range topics {
		if name := topics[i].Name; !s.seat.known[name] {
			fresh = append(fresh, name)
		}
	}
	err := controller.InParallel(len(fresh), func(i int) error { return s.watch(s.seat.ctx, meta.TopicPath(fresh[i])) })
	if err != nil {
		return err
	}
	for _, name := range fresh {
		s.seat.known[name] = true
	}
	return nil
}

// tellOf is topics as the others are told of them.
func tellOfTopics(topics ...controller.Topic) []peers.Topic {
	var out []peers.Topic
	for i := range topics {
		t := &topics[i]
		all := make([]int32, len(t.Partitions))
		for n := range all {
			all[n] = int32(n)
		}
		out = append(out, tellOf(t, all))
	}
	return out
}

func tellOfChanges(changes []controller.Change) []peers.Topic {
	out := make([]peers.Topic, len(changes))
	for i, c := range changes {
		out[i] = tellOf(c.Topic, c.Partitions)
	}
	return out
}

func tellOf(t *controller.Topic, partitions []int32) peers.Topic {
	out := peers.Topic{Name: t.Name, ID: t.ID}
	for _, n := range partitions {
		p := &t.Partitions[n]
		out.Partitions = append(out.Partitions, peers.Partition{
			Number: n, ControllerEpoch: p.ControllerEpoch, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ISR: p.ISR, Version: p.Version, Replicas: p.Replicas,
		})
	}
	return out
}

func isNoNode(err error) bool { return errors.Is(err, meta.ErrNoNode) }
