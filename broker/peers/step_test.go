package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// text shows a queue: steps apart by "; ", in each what it leads, tells and stops. "*" is isNew, "!" deletion of data, "-" a topic being deleted.
func (q queue) text() string {
	var steps []string
	for _, s := range q {
		var parts []string
		for _, at := range sorted(s.leaders) {
			parts = append(parts, fmt.Sprintf("lead %s%d/%d%s", at.topic, at.partition, s.leaders[at].LeaderEpoch, mark(s.leaders[at].isNew, "*")))
		}
		for _, at := range sorted(s.metadata) {
			parts = append(parts, fmt.Sprintf("tell %s%d/%d%s", at.topic, at.partition, s.metadata[at].LeaderEpoch, mark(s.metadata[at].deleting, "-")))
		}
		if s.update && len(s.metadata) == 0 {
			parts = append(parts, "hello")
		}
		for _, at := range sorted(s.stops) {
			parts = append(parts, fmt.Sprintf("stop %s%d/%d%s", at.topic, at.partition, s.stops[at].epoch, mark(s.stops[at].remove, "!")))
		}
		steps = append(steps, strings.Join(parts, ", "))
	}
	return strings.Join(steps, "; ")
}

func mark(set bool, s string) string {
	if set {
		return s
	}
	return ""
}

func at(name string) place { return place{name, 0} }

func state(id byte, epoch int32) known {
	return known{[16]byte{id}, false, &Partition{LeaderEpoch: epoch}}
}

func TestMerge(t *testing.T) {
	gone := known{[16]byte{1}, true, &Partition{LeaderEpoch: 3}}
	stop := func(q *queue, name string, remove bool) { q.stop(map[place]stopping{at(name): {3, remove}}, nil) }
	for _, c := range []struct {
		name string
		do   func(q *queue)
		want string
	}{
		{"the newest state counts, isNew stays", func(q *queue) {
			q.lead(at("t"), state(1, 0), true)
			q.tell(at("t"), state(1, 0))
			q.lead(at("t"), state(1, 1), false)
			q.tell(at("t"), state(1, 1))
			q.lead(at("u"), state(2, 5), false)
		}, "lead t0/1*, lead u0/5, tell t0/1"},
		{"who lives is told with what else is", func(q *queue) { q.hello(); q.hello(); q.tell(at("t"), state(1, 1)) }, "tell t0/1"},
		{"who lives alone", func(q *queue) { q.hello() }, "hello"},
		{"a stop comes after what leads", func(q *queue) { q.lead(at("t"), state(1, 2), false); stop(q, "t", false) }, "lead t0/2, stop t0/3"},
		{"deletion is not taken back by a stop", func(q *queue) { stop(q, "t", true); stop(q, "t", false) }, "stop t0/3!"},
		{"what comes back after a stop waits for it", func(q *queue) {
			stop(q, "t", false)
			q.lead(at("u"), state(2, 1), false)
			q.lead(at("t"), state(1, 4), true)
			q.lead(at("u"), state(2, 2), false)
		}, "lead u0/1, stop t0/3; lead t0/4*, lead u0/2"},
		{"a topic of the same name waits for the deletion", func(q *queue) {
			q.tell(at("t"), gone)
			stop(q, "t", true)
			q.lead(at("t"), state(9, 0), true)
			q.tell(at("t"), state(9, 0))
		}, "tell t0/3-, stop t0/3!; lead t0/0*, tell t0/0"},
		{"also where there is no replica", func(q *queue) { q.tell(at("t"), gone); q.tell(at("t"), state(9, 0)) }, "tell t0/3-; tell t0/0"},
		{"nothing goes before what a new broker has to know first", func(q *queue) {
			*q = first(map[place]known{at("t"): state(1, 1), at("u"): state(2, 1)}, map[place]known{at("u"): state(2, 1)})
			q.tell(at("t"), state(1, 2))
			q.lead(at("u"), state(2, 2), true)
		}, "tell t0/1, tell u0/1; lead u0/2*, tell t0/2"},
		{"a first broker in an empty cluster", func(q *queue) { *q = first(nil, nil) }, "hello; "},
	} {
		var q queue
		c.do(&q)
		if got := q.text(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestOutcome: each waiter hears of its own partitions.
func TestOutcome(t *testing.T) {
	w := waiter{places: map[place]bool{{"t", 0}: true, {"t", 1}: true}}
	answers := []Answer{
		{Code: 0, Partitions: []PartitionError{{"t", 0, 56}, {"u", 0, 3}}},
		{Code: 77, Partitions: []PartitionError{{"t", 1, 0}}},
	}
	got := w.outcome(4, answers)
	if got.Broker != 4 || got.Code != 77 || got.Err != nil || !slices.Equal(got.Partitions, []PartitionError{{"t", 0, 56}, {"t", 1, 0}}) {
		t.Errorf("%+v", got)
	}
}
