package group

import "bytes"

// check looks at what must hold between any two events.
func (w *world) check() {
	g := w.g
	joining, parked := 0, 0
	for _, m := range g.order {
		if g.members[m.id] != m || m.instance != "" && g.static[m.instance] != m {
			w.fail("member %s is not known by its id and instance", m.id)
		}
		if _, ok := g.pending[m.id]; ok {
			w.fail("member %s is pending too", m.id)
		}
		if m.joinWaiter != nil {
			joining++
			parked++
			w.checkParked(m.joinWaiter)
		}
		if m.syncWaiter != nil {
			parked++
			w.checkParked(m.syncWaiter)
		}
		if !m.waits() && m.deadline == never {
			w.fail("member %s has no session timeout in state %v", m.id, g.state)
		}
	}
	if joining != g.joining || len(g.order) != len(g.members) {
		w.fail("%d join, counted %d; %d members, %d in order", joining, g.joining, len(g.members), len(g.order))
	}
	if due := g.earliest(); g.due > due {
		w.fail("the next timer is at %v, Next says %v", due, g.due)
	}
	w.checkState()
	w.checkOffsets()
	if n := len(w.waiting) - parked; n < 0 || n > len(g.inFlight) {
		w.fail("%d requests wait, %d are parked, %d writes are open", len(w.waiting), parked, len(g.inFlight))
	}
}

// checkParked wants a parked request to be one that somebody waits for.
func (w *world) checkParked(waiter Waiter) {
	if w.waiting[waiter.(int)] == nil {
		w.fail("request %v is parked and nobody waits for it", waiter)
	}
}

func (w *world) checkState() {
	g := w.g
	if (len(g.members) > 0) != (g.members[g.leader] != nil) {
		w.fail("leader is %q of %d members", g.leader, len(g.members))
	}
	switch g.state {
	case Dead, Empty:
		if len(g.members) > 0 || g.join.at != never || g.syncBy != never {
			w.fail("%v with %d members or a timer", g.state, len(g.members))
		}
	case PreparingRebalance:
		if g.join.at == never || g.syncBy != never {
			w.fail("nothing ends the wait for members")
		}
		if !g.join.initial && g.allJoined() && len(g.members) > 0 {
			w.fail("all have joined and still wait")
		}
	case CompletingRebalance:
		if g.joining > 0 || len(g.members) == 0 || g.join.at != never {
			w.fail("%v with %d joining of %d", g.state, g.joining, len(g.members))
		}
	case Stable:
		if len(g.members) == 0 || g.join.at != never {
			w.fail("%v with %d members", g.state, len(g.members))
		}
		for _, m := range g.order {
			if m.syncWaiter != nil {
				w.fail("a sync waits in state %v", g.state)
			}
		}
	}
}

// checkOffsets compares what is visible with what is durable.
func (w *world) checkOffsets() {
	n := 0
	for p, o := range w.g.AllCommitted {
		n++
		if want, ok := w.durable[p]; !ok || want != o.Offset {
			w.fail("%v shows %d, durable is %d", p, o.Offset, want)
		}
	}
	if n != len(w.durable) || n != w.g.stored {
		w.fail("%d offsets are visible, %d counted, %d durable", n, w.g.stored, len(w.durable))
	}
	// What a snapshot says must be what the log says once everything open is in it.
	want := map[Partition]int64{}
	for p, o := range w.durable {
		want[p] = o
	}
	for i, offsets := range w.flying {
		if w.open[i].Producer != nil {
			continue // it counts when its transaction ends
		}
		for p, o := range offsets {
			want[p] = o
		}
	}
	meta := w.meta
	for _, write := range w.open {
		meta = newestGroup(meta, write)
	}
	if !w.g.deleting && !bytes.Equal(meta, w.g.meta) {
		w.fail("the group's record is %x, the newest in the log %x", w.g.meta, meta)
	}
	for r := range w.g.Snapshot {
		k, err := ParseKey(r.Key)
		if err != nil {
			w.fail("snapshot: %v", err)
			return
		}
		if k.Kind != OffsetKind {
			continue
		}
		o, err := parseOffset(r.Value)
		if err != nil || o.Offset != want[k.Partition] {
			w.fail("snapshot of %v is %d, want %d: %v", k.Partition, o.Offset, want[k.Partition], err)
		}
	}
}
