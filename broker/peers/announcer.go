package peers

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Config configures an Announcer.
type Config struct {
	// ControllerID is this broker, ControllerEpoch that of its seat.
	ControllerID, ControllerEpoch int32
	// Topics are those there are, as they were read with the seat. Their partitions are no news to brokers that are live already.
	Topics []Topic
	// Dialer makes the connections.
	Dialer Dialer
	// Answered is told of each answer, nil for nobody. It is called on the broker's goroutine, in the order of the answers, and nothing more is sent to
	// that broker before it returns. It may call anything here but Close.
	Answered func(Answer)
	// Logger is nil to discard.
	Logger *slog.Logger
}

// Announcer tells the other brokers what the controller decides. Its methods may be called from any goroutine; none waits for a broker except Close.
type Announcer struct {
	conf    Config
	logger  *slog.Logger
	running sync.WaitGroup

	mu     sync.Mutex
	topics map[string]*topic
	live   []Broker // in the order of their ids; replaced, never changed
	peers  map[int32]*peer
	closed bool
}

// topic is what is known of one.
type topic struct {
	id         [16]byte
	deleting   bool
	partitions map[int32]*Partition // those with leadership
}

func (t *topic) known(p *Partition) known { return known{t.id, t.deleting, p} }

// New makes one that knows no live broker yet.
func New(conf Config) *Announcer {
	a := &Announcer{conf: conf, logger: conf.Logger, topics: map[string]*topic{}, peers: map[int32]*peer{}}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if a.conf.Answered == nil {
		a.conf.Answered = func(Answer) {}
	}
	for i := range conf.Topics {
		a.learn(&conf.Topics[i], func(place, known, *Partition) {})
	}
	a.conf.Topics = nil // a.topics is what counts from now on
	return a
}

// learn takes a topic's new state and calls each for every partition that has leadership, with what was known of it before, nil for nothing.
func (a *Announcer) learn(in *Topic, each func(place, known, *Partition)) {
	t := a.topics[in.Name]
	if t == nil || t.id != in.ID {
		t = &topic{id: in.ID, partitions: make(map[int32]*Partition, len(in.Partitions))}
		a.topics[in.Name] = t
	}
	for i := range in.Partitions {
		p := &in.Partitions[i]
		if p.LeaderEpoch < 0 {
			continue
		}
		before := t.partitions[p.Number]
		t.partitions[p.Number] = p
		each(place{in.Name, p.Number}, t.known(p), before)
	}
}

// Announce tells of new or changed partitions: LeaderAndIsr to their live replicas, UpdateMetadata to all.
func (a *Announcer) Announce(topics ...Topic) { a.change(topics, true) }

// Update tells of changed partitions by UpdateMetadata alone.
func (a *Announcer) Update(topics ...Topic) { a.change(topics, false) }

func (a *Announcer) change(topics []Topic, lead bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range topics {
		a.learn(&topics[i], func(at place, now known, before *Partition) {
			for id, p := range a.peers {
				if lead && !now.deleting && slices.Contains(now.Replicas, id) {
					p.queue.lead(at, now, before == nil || !slices.Contains(before.Replicas, id))
				}
				p.queue.tell(at, now)
			}
		})
	}
	a.wake()
}

// Stop makes brokers stop their replicas of some partitions of a topic, and delete the data if remove is set. reply, if not nil, is called once for each
// broker in asked, on its goroutine, as Config.Answered is. The brokers that are not in asked are not live. The leader epoch is the one that was handed in last;
// a replica refuses (FENCED_LEADER_EPOCH) one before its own, and in Kafka 2.8 its own too: the state that takes the replica away comes first, by Update.
func (a *Announcer) Stop(topicName string, partitions, brokers []int32, remove bool, reply func(Stopped)) (asked []int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stops := make(map[place]stopping, len(partitions))
	for _, n := range partitions {
		stops[place{topicName, n}] = stopping{a.leaderEpoch(topicName, n), remove}
	}
	for _, id := range brokers {
		if p := a.peers[id]; p != nil {
			p.queue.stop(stops, reply)
			asked = append(asked, id)
		}
	}
	a.wake()
	return asked
}

// leaderEpoch is what StopReplica says of a partition: replicas that have heard of a later leader refuse.
func (a *Announcer) leaderEpoch(name string, partition int32) int32 {
	t := a.topics[name]
	switch {
	case t == nil:
		return noEpoch
	case t.deleting:
		return epochDuringDelete
	case t.partitions[partition] == nil:
		return noEpoch
	}
	return t.partitions[partition].LeaderEpoch
}

// Delete tells all brokers that a topic is being deleted, and makes the live replicas delete their data. reply and asked are as for Stop; asking again, for
// replicas that were not live or failed, is fine. The topic is known until Forget.
func (a *Announcer) Delete(name string, reply func(Stopped)) (asked []int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.topics[name]
	if t == nil {
		return nil
	}
	t.deleting = true
	for id, p := range a.peers {
		stops := map[place]stopping{}
		for n, partition := range t.partitions {
			at := place{name, n}
			p.queue.tell(at, t.known(partition))
			if slices.Contains(partition.Replicas, id) {
				stops[at] = stopping{epochDuringDelete, true}
			}
		}
		if len(stops) > 0 {
			p.queue.stop(stops, reply)
			asked = append(asked, id)
		}
	}
	a.wake()
	slices.Sort(asked)
	return asked
}

// Forget drops a topic whose deletion is complete.
func (a *Announcer) Forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.topics, name)
}

// SetBrokers gives the brokers that are live, this one among them. A broker that comes back without having been missed is known by its epoch.
func (a *Announcer) SetBrokers(live []Broker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	live = slices.Clone(live)
	slices.SortFunc(live, func(x, y Broker) int { return cmp.Compare(x.ID, y.ID) })
	same := func(x, y Broker) bool { return x.same(&y) }
	if slices.EqualFunc(a.live, live, same) {
		return
	}
	moved := a.moved(live) // brokers whose replicas went on- or offline
	a.live = live
	for id, p := range a.peers {
		if moved[id] {
			p.cancel()
			delete(a.peers, id)
		}
	}
	touched := a.replicasOf(moved)
	for _, p := range a.peers {
		p.queue.hello()
		for at, k := range touched {
			p.queue.tell(at, k)
		}
	}
	all := a.replicasOf(nil)
	for _, b := range live {
		if p := a.peers[b.ID]; p != nil {
			p.broker.Endpoints = b.Endpoints // for its next connection
		} else if b.ID != a.conf.ControllerID {
			a.start(b, all)
		}
	}
	a.wake()
}

// moved names the brokers that left, came, or came again.
func (a *Announcer) moved(live []Broker) map[int32]bool {
	epochs := map[int32]int64{}
	for _, b := range a.live {
		epochs[b.ID] = b.Epoch
	}
	moved := map[int32]bool{}
	for _, b := range live {
		if epoch, was := epochs[b.ID]; !was || epoch != b.Epoch {
			moved[b.ID] = true
		}
		delete(epochs, b.ID)
	}
	for id := range epochs {
		moved[id] = true
	}
	return moved
}

// replicasOf is all partitions with a replica on one of some brokers, nil for all there are.
func (a *Announcer) replicasOf(brokers map[int32]bool) map[place]known {
	found := map[place]known{}
	for name, t := range a.topics {
		for n, p := range t.partitions {
			if brokers == nil || slices.ContainsFunc(p.Replicas, func(r int32) bool { return brokers[r] }) {
				found[place{name, n}] = t.known(p)
			}
		}
	}
	return found
}

// start begins to talk to a broker.
func (a *Announcer) start(b Broker, all map[place]known) {
	own := map[place]known{}
	for at, k := range all {
		if !k.deleting && slices.Contains(k.Replicas, b.ID) {
			own[at] = k
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &peer{announcer: a, broker: b, ctx: ctx, cancel: cancel, queue: first(all, own), news: make(chan struct{}, 1)}
	p.logger = a.logger.With("broker", b.ID)
	a.peers[b.ID] = p
	a.running.Go(p.run)
}

// wake tells the goroutines of all brokers that there may be something to do.
func (a *Announcer) wake() {
	for _, p := range a.peers {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// Close ends it: what was not answered is dropped, and its replies get ErrClosed. It waits for all goroutines and so must not be called on one of them.
func (a *Announcer) Close() {
	a.mu.Lock()
	a.closed = true
	for id, p := range a.peers {
		p.cancel()
		delete(a.peers, id)
	}
	a.mu.Unlock()
	a.running.Wait()
}
