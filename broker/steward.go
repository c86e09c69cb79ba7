package broker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"gregor/broker/meta"
	"gregor/broker/peers"
)

// sharedTree is a metadata tree that other brokers and tools change too.
type sharedTree interface {
	meta.Tree
	// Expired is closed when the session of now ends, and with it the nodes that this broker made for as long as it lives.
	Expired() <-chan struct{}
}

// lookAgain is how long after a failure the steward looks again.
const lookAgain = time.Second

// steward keeps a broker in step with a shared tree: it registers the broker, again when its session ended, stands for election, does the controller's
// work while it has the seat, and follows changes of configurations that others made.
//
// Everything is done by looking: a change of a node only says which part of the tree is to be read again, by one goroutine, and compared with what the
// broker knows. A look may come too often, and after a failure it comes again; it is never missed, since a watch is set before the first look.
type steward struct {
	b       *Broker
	tree    sharedTree
	logger  *slog.Logger
	ctx     context.Context // ended by close
	end     context.CancelFunc
	running sync.WaitGroup
	failing alarm

	mu      sync.Mutex // a leaf
	dirty   map[string]bool
	removed []removedReplicas // deletions that other brokers have done
	wake    chan struct{}     // capacity 1

	// The goroutine's own.
	configs configChanges

	// seat is what the controller's work needs, nil without the seat. Guarded by Broker.admin, changed by the goroutine only.
	seat *seat
}

func newSteward(b *Broker, tree sharedTree) *steward {
	ctx, end := context.WithCancel(context.Background())
	return &steward{b: b, tree: tree, logger: b.logger, ctx: ctx, end: end, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// start registers the broker and takes part in the election. When it returns, the broker is what it is to be for now: controller, or a broker that waits
// for the controller's word.
func (s *steward) start(ctx context.Context) error {
	expired := s.tree.Expired()
	if err := s.register(ctx); err != nil {
		return err
	}
	for _, path := range []string{meta.ControllerPath, meta.ConfigChangesPath, meta.BrokerPath(s.b.nodeID)} {
		if err := s.watch(s.ctx, path); err != nil {
			return err
		}
	}
	if err := s.followConfigs(ctx); err != nil {
		return err
	}
	if err := s.standForElection(ctx); err != nil {
		return err
	}
	s.running.Go(func() { s.run(expired) })
	return nil
}

// close ends the goroutines. The registration and the seat end with the tree.
func (s *steward) close() {
	s.end()
	s.running.Wait()
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	s.leaveSeat()
}

// register makes the broker's node. An earlier session of this broker is waited for.
func (s *steward) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.b.conf.ZooKeeper.SessionTimeout+2*time.Second)
	defer cancel()
	if err := s.b.control.Register(ctx, s.b.registered()); err != nil {
		return err
	}
	epoch, err := s.tree.Born(ctx, meta.BrokerPath(s.b.nodeID))
	if err == nil {
		s.b.brokerEpoch.Store(epoch)
	}
	return err
}

// watch has a path looked at after each change, until the context ends.
func (s *steward) watch(ctx context.Context, path string) error {
	events, err := s.tree.Watch(ctx, path)
	if err != nil {
		return err
	}
	s.running.Go(func() {
		for range events {
			s.look(path)
		}
	})
	return nil
}

// look asks for a look at some paths.
func (s *steward) look(paths ...string) {
	s.mu.Lock()
	for _, path := range paths {
		s.dirty[path] = true
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// asked takes the paths that are to be looked at, the election first.
func (s *steward) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := make([]string, 0, len(s.dirty))
	for path := range s.dirty {
		paths = append(paths, path)
	}
	clear(s.dirty)
	slices.SortFunc(paths, func(a, b string) int {
		if a == b {
			return 0
		}
		if a == meta.ControllerPath || b != meta.ControllerPath && a < b {
			return -1
		}
		return 1
	})
	return paths
}

func (s *steward) run(expired <-chan struct{}) {
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-expired:
			expired = s.tree.Expired()
			s.beginAgain()
		case <-s.wake:
		case <-again.C:
		}
		for _, path := range s.asked() {
			if err := s.lookAt(path); err != nil && s.ctx.Err() == nil {
				if s.failing.due() {
					s.logger.Warn("change of the metadata could not be followed and is tried again", "node", path, "error", err)
				}
				s.look(path)
				again.Reset(lookAgain)
				<-s.wake // not at once
			}
		}
	}
}

// beginAgain is what follows the end of a session: the nodes of this broker are gone, the seat with them, and what was watched may have changed.
func (s *steward) beginAgain() {
	s.logger.Warn("the session with ZooKeeper has ended; clients are served on, and the broker registers again")
	s.b.control.Resign()
	s.look(meta.ControllerPath, meta.ConfigChangesPath, meta.BrokerPath(s.b.nodeID))
	s.configs.all = true
}

// lookAt reads one part of the tree and does what follows from it.
func (s *steward) lookAt(path string) error {
	ctx := s.ctx
	switch path {
	case meta.ControllerPath:
		return s.standForElection(ctx)
	case meta.ConfigChangesPath:
		return s.followConfigs(ctx)
	case meta.BrokerPath(s.b.nodeID):
		return s.stayRegistered(ctx)
	}
	if !s.b.control.Seated() {
		return nil // of a seat that is lost
	}
	switch path {
	case meta.BrokersPath:
		return s.followBrokers(ctx)
	case meta.TopicsPath:
		return s.followTopics(ctx)
	case meta.DeleteTopicsPath:
		return s.followDeletions(ctx)
	case meta.ReassignmentPath:
		return s.followReassignments(ctx)
	case meta.PreferredElectionPath:
		return s.drop(ctx, path)
	case meta.ISRChangesPath:
		return s.followISRChanges(ctx)
	case meta.LogDirEventsPath:
		return s.followLogDirs(ctx)
	}
	if name, ok := strings.CutPrefix(path, meta.TopicsPath+"/"); ok {
		return s.followTopic(ctx, name)
	}
	return nil
}

// stayRegistered makes the broker's node again when it went.
func (s *steward) stayRegistered(ctx context.Context) error {
	_, _, err := s.tree.Get(ctx, meta.BrokerPath(s.b.nodeID))
	if !isNoNode(err) {
		return err
	}
	if err := s.register(ctx); err != nil {
		return err
	}
	s.logger.Info("registered again")
	return nil
}

// standForElection takes the controller's seat if nobody has it, and begins or ends the controller's work.
func (s *steward) standForElection(ctx context.Context) error {
	c := s.b.control
	if err := s.stayRegistered(ctx); err != nil { // a controller that is not there would lead nothing
		return err
	}
	holder, err := c.Holder(ctx)
	if err != nil {
		return err
	}
	if holder != s.b.nodeID {
		c.Resign()
	}
	if !c.Seated() {
		if holder, err = c.Elect(ctx); err != nil {
			return err
		}
	}
	s.b.admin.Lock()
	defer s.b.admin.Unlock()
	if s.seat != nil && s.seat.epoch != c.Epoch() {
		s.leaveSeat()
		if holder != s.b.nodeID {
			s.logger.Info("another broker is the controller", "controller", holder)
		}
	}
	s.b.seeController(holder)
	if !c.Seated() || s.seat != nil {
		return nil
	}
	return s.takeSeat(ctx)
}

// peersOf is a view as package peers has it.
func peersOf(v *view) []peers.Broker {
	out := make([]peers.Broker, len(v.brokers))
	for i, p := range v.brokers {
		out[i] = peers.Broker{ID: p.id, Epoch: p.epoch, Endpoints: p.node.Endpoints, Rack: p.node.Rack}
	}
	return out
}
