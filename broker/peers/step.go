package peers

import "maps"

// place names a partition.
type place struct {
	topic     string
	partition int32
}

// known is a partition with its topic's id.
type known struct {
	id       [16]byte
	deleting bool
	*Partition
}

type leading struct {
	known
	isNew bool
}

type stopping struct {
	epoch  int32
	remove bool // delete the data
}

// waiter hears the outcome of a Stop or Delete at one broker.
type waiter struct {
	places map[place]bool
	reply  func(Stopped)
}

// step is what a broker is to hear at once: LeaderAndIsr, UpdateMetadata, StopReplica, in this order. Nothing in it is sent as long as it is merged into.
type step struct {
	leaders  map[place]leading
	metadata map[place]known
	update   bool // UpdateMetadata is sent, even without partitions
	stops    map[place]stopping
	waiters  []waiter
	sealed   bool // takes nothing any more
}

func newStep() *step {
	return &step{leaders: map[place]leading{}, metadata: map[place]known{}, stops: map[place]stopping{}}
}

// queue is the steps of one broker, oldest first.
type queue []*step

// last is the step that takes more, a new one if need be.
func (q *queue) last() *step {
	if n := len(*q); n > 0 && !(*q)[n-1].sealed {
		return (*q)[n-1]
	}
	s := newStep()
	*q = append(*q, s)
	return s
}

// after begins another step when order forbids to merge: for a partition that the last step stops, and for a topic that it has under another id.
func (q *queue) after(at place, k known) *step {
	s := q.last()
	if _, stopped := s.stops[at]; stopped || s.other(at, k) {
		s.sealed = true
		return q.last()
	}
	return s
}

func (s *step) other(at place, k known) bool {
	l, led := s.leaders[at]
	m, told := s.metadata[at]
	return led && l.id != k.id || told && m.id != k.id
}

// lead adds a partition for LeaderAndIsr.
func (q *queue) lead(at place, k known, isNew bool) {
	s := q.after(at, k)
	s.leaders[at] = leading{k, isNew || s.leaders[at].isNew}
}

// tell adds a partition for UpdateMetadata.
func (q *queue) tell(at place, k known) {
	s := q.last()
	if s.other(at, k) {
		s.sealed = true
		s = q.last()
	}
	s.update = true
	s.metadata[at] = k
}

// hello adds an UpdateMetadata with the live brokers.
func (q *queue) hello() { q.last().update = true }

// stop adds partitions for StopReplica.
func (q *queue) stop(stops map[place]stopping, reply func(Stopped)) {
	s := q.last()
	w := waiter{make(map[place]bool, len(stops)), reply}
	for at, stop := range stops {
		stop.remove = stop.remove || s.stops[at].remove
		s.stops[at] = stop
		w.places[at] = true
	}
	if reply != nil {
		s.waiters = append(s.waiters, w)
	}
}

// first is the queue of a broker that is new: what there is, sealed, so that it knows the cluster before it has to act, then its own partitions.
func first(all, own map[place]known) queue {
	tell, lead := newStep(), newStep()
	tell.update, tell.sealed = true, true
	maps.Copy(tell.metadata, all)
	for at, k := range own {
		lead.leaders[at] = leading{k, false}
	}
	return queue{tell, lead}
}
