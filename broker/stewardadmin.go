package broker

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/broker/peers"
)

// What tools and brokers leave for the controller. Each node is looked at and removed, as Kafka's controller does.

// followReassignments answers kafka-reassign-partitions --zookeeper: what is there already is done, the rest needs copies on other brokers.
func (s *steward) followReassignments(ctx context.Context) error {
	data, _, err := s.tree.Get(ctx, meta.ReassignmentPath)
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted, err := meta.DecodeReassignment(data)
	if err != nil {
		s.logger.Error("reassignment of partitions is not carried out", "error", err)
		return s.drop(ctx, meta.ReassignmentPath)
	}
	for _, r := range wanted {
		if err := s.b.reassign(r.Topic, r.Partition, r.Replicas); err != nil {
			s.logger.Error("reassignment of a partition is not carried out", "topic", r.Topic, "partition", r.Partition, "replicas", r.Replicas, "error", err)
		}
	}
	return s.drop(ctx, meta.ReassignmentPath)
}

// followISRChanges reads again the partitions whose in-sync replicas their leaders changed, and tells all.
func (s *steward) followISRChanges(ctx context.Context) error {
	names, err := s.tree.Children(ctx, meta.ISRChangesPath)
	if err != nil {
		return err
	}
	var topics []string
	for _, name := range names {
		path := meta.ISRChangesPath + "/" + name
		data, _, err := s.tree.Get(ctx, path)
		if err != nil && !isNoNode(err) {
			return err
		}
		changed, err := meta.DecodeISRChange(data)
		if err != nil {
			s.logger.Warn("notification of changed in-sync replicas cannot be read", "node", path, "error", err)
		}
		for _, c := range changed {
			topics = append(topics, c.Topic)
		}
	}
	slices.Sort(topics)
	if err := s.readAgain(ctx, slices.Compact(topics)); err != nil {
		return err
	}
	for _, name := range names {
		if err := s.drop(ctx, meta.ISRChangesPath+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// readAgain takes topics as they are in the tree and tells all.
func (s *steward) readAgain(ctx context.Context, names []string) error {
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	if s.seat == nil || len(names) == 0 {
		return nil
	}
	return s.adoptTopics(ctx, names)
}

// followLogDirs asks the brokers that lost a directory what they have: they answer for each partition, see answered.
func (s *steward) followLogDirs(ctx context.Context) error {
	names, err := s.tree.Children(ctx, meta.LogDirEventsPath)
	if err != nil {
		return err
	}
	lost := map[int32]bool{}
	for _, name := range names {
		path := meta.LogDirEventsPath + "/" + name
		data, _, err := s.tree.Get(ctx, path)
		if err != nil && !isNoNode(err) {
			return err
		}
		if event, err := meta.DecodeLogDirEvent(data); err != nil {
			s.logger.Warn("notification of a lost log directory cannot be read", "node", path, "error", err)
		} else {
			lost[event.Broker] = true
		}
		if err := s.drop(ctx, path); err != nil {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	if s.seat == nil {
		return nil
	}
	topics, err := s.b.control.LoadTopics(ctx, s.topicsWith(func(id int32) bool { return lost[id] })...)
	if err != nil {
		return err
	}
	s.seat.others.Announce(tellOfTopics(topics...)...)
	return nil
}

// answered hears what another broker answered to the controller, on a goroutine of the announcer.
func (s *steward) answered(a peers.Answer) {
	if a.SeatLost() {
		s.logger.Warn("another broker has heard of a later controller", "broker", a.Broker)
		s.b.control.Resign()
		s.look(meta.ControllerPath)
		return
	}
	if a.Code != 0 {
		s.logger.Error("broker refuses what the controller says", "broker", a.Broker, "request", a.Key, "code", a.Code)
	}
	for _, p := range a.Partitions {
		if p.Failed() {
			s.logger.Error("broker cannot do what the controller says of a partition", "broker", a.Broker, "topic", p.Topic, "partition", p.Partition,
				"error", kerr.ErrorForCode(p.Code))
		}
	}
}

// seeController makes a broker the controller that clients are told of. Needs admin.
func (b *Broker) seeController(id int32) {
	v := *b.view.Load()
	v.controller = id
	b.view.Store(&v)
}

// reconfigure makes own the topic's own keys if they are others than before. Keys that are not valid change nothing. Needs admin.
func (b *Broker) reconfigure(t *topic, own map[string]string) {
	if sameKeys(t.ownKeys(), own) {
		return
	}
	effective, err := b.settings().Topic(own)
	if err != nil {
		b.logger.Error("configuration of a topic is not valid, it keeps the one it has", "topic", t.name, "error", err)
		return
	}
	t.configure(own, effective)
	b.configChanged()
	b.retentionChanged()
	b.logger.Info("configuration of a topic was changed by another", "topic", t.name)
}

func sameKeys(a, b map[string]string) bool { return len(differing(a, b)) == 0 }

// checkSeat says that another broker is the controller.
func (b *Broker) checkSeat() error {
	if b.control.Seated() {
		return nil
	}
	return controller.ErrNotController
}
