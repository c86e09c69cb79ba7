package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// startMarking asks for the markers of a decision that is durable.
func (t *Txn) startMarking(s *step) {
	t.marking = t.meta.partitions
	t.askMarkers(s)
}

// askMarkers asks for the markers that are not known to be durable.
func (t *Txn) askMarkers(s *step) {
	if !t.meta.state.prepared() {
		return
	}
	if len(t.marking) == 0 {
		t.complete(s)
		return
	}
	t.round++
	t.asked = t.marking
	s.Markers = append(s.Markers, Markers{Round: t.round, Producer: t.meta.producer, Commit: t.meta.state == PrepareCommit, Version: t.meta.client,
		Partitions: slices.Clone(t.marking)})
}

// Marked says that a marker is durable or that its partition is no more, or with an error that it must be tried again.
func (t *Txn) Marked(at Instant, round uint64, p Partition, err *kerr.Error) Effects {
	s := step{Instant: at}
	if round != t.round || !t.meta.state.prepared() || !contains(t.asked, p) {
		return s.Effects
	}
	t.asked = without(t.asked, p)
	if err == nil {
		t.marking = without(t.marking, p)
	}
	switch {
	case len(t.asked) > 0:
	case len(t.marking) > 0:
		t.retryAt = at.Timer + t.conf.MarkerRetry
		t.wake(t.retryAt)
	default:
		t.complete(&s)
		t.unpark(&s)
	}
	return s.Effects
}

func without(sorted []Partition, p Partition) []Partition {
	return slices.DeleteFunc(slices.Clone(sorted), func(o Partition) bool { return o == p })
}

// complete ends a transaction whose markers are all durable. Its record is not waited for.
func (t *Txn) complete(s *step) {
	m := t.meta.become(CompleteCommit, s.Instant)
	if t.meta.state == PrepareAbort {
		m.state = CompleteAbort
	}
	m.producer, m.previousID, m.nextID, m.nextEpoch, m.partitions = t.meta.after(), t.meta.clientID(), -1, -1, nil
	t.retryAt = never
	t.seq++
	s.Writes = append(s.Writes, Write{Seq: t.seq, Records: []Record{{keyOf(t.id), valueOf(&m)}}})
	t.enter(s, m)
}
