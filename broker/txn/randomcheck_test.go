package txn

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// apply carries effects out.
func (w *world) apply(e Effects) {
	for _, r := range e.Replies {
		if r.To == nil {
			continue
		}
		answer := w.waiting[r.To.(int)]
		if answer == nil {
			w.fail("%v is answered twice", r.To)
			return
		}
		delete(w.waiting, r.To.(int))
		w.note("  answer: %v %v", nameOf(r.Err), r.Producer)
		answer(r)
	}
	w.open = append(w.open, e.Writes...)
	for _, m := range e.Markers {
		for _, p := range m.Partitions {
			w.marks = append(w.marks, mark{m, p})
		}
	}
}

// storeOne makes the oldest write durable, or lets it fail.
func (w *world) storeOne() {
	if len(w.open) == 0 {
		return
	}
	write := w.open[0]
	w.open = w.open[1:]
	var err *kerr.Error
	if w.r.IntN(20) == 0 {
		err = kerr.KafkaStorageError
	} else {
		w.persist(write)
	}
	w.note("write %d %s: %v", write.Seq, w.text(write.Records[0]), nameOf(err))
	w.apply(w.x.Stored(w.now, write.Seq, err))
}

func (w *world) text(r Record) string {
	if r.Value == nil {
		return "tombstone"
	}
	m, err := parseValue(r.Value)
	if err != nil {
		w.fail("%v", err)
	}
	return m.state.String() + " " + partitionsText(m.partitions)
}

// persist adds a write to the durable log. A decision is made here.
func (w *world) persist(write Write) {
	for _, r := range write.Records {
		before := w.current()
		w.log = append(w.log, r)
		if r.Value == nil {
			continue
		}
		m, err := parseValue(r.Value)
		if err != nil {
			w.fail("%v", err)
			return
		}
		if before != nil && m.state.prepared() && before.decided == undecided {
			before.decided = aborted
			if m.state == PrepareCommit {
				before.decided = committed
			}
			if before.asked[before.decided] == 0 {
				if before.decided == committed {
					w.fail("transaction %d was committed, and nobody asked for it", before.number)
				}
				w.fences++
			}
		}
	}
}

// current is the transaction that the durable log has open.
func (w *world) current() *transaction {
	if len(w.log) == 0 || w.log[len(w.log)-1].Value == nil {
		return nil
	}
	m, err := parseValue(w.log[len(w.log)-1].Value)
	if err != nil || m.state != Ongoing {
		return nil
	}
	return w.newestOf(m.producer)
}

// newestOf is the newest transaction of a producer: with version 0 there are several.
func (w *world) newestOf(p Producer) *transaction {
	for _, x := range slices.Backward(w.all) {
		if x.who == p {
			return x
		}
	}
	return nil
}

// markOne writes one marker that was asked for, or lets it fail. It is told when it is durable.
func (w *world) markOne() {
	if len(w.marks) == 0 {
		return
	}
	i := w.r.IntN(len(w.marks))
	m := w.marks[i]
	w.marks = slices.Delete(w.marks, i, i+1)
	if w.r.IntN(10) == 0 {
		w.apply(w.x.Marked(w.now, m.m.Round, m.at, kerr.KafkaStorageError))
		return
	}
	l := w.parts[m.at.Number]
	switch newest := l.epochOf(m.m.Producer.ID); {
	case newest > m.m.Producer.Epoch:
		w.apply(w.x.Marked(w.now, m.m.Round, m.at, nil)) // the driver takes that for done
		return
	case newest == m.m.Producer.Epoch && m.m.Version >= 2 && l.openOf(m.m.Producer.ID) != nil:
		w.fail("marker of %v in partition %d has the epoch of an open transaction", m.m.Producer, m.at.Number)
	}
	l.items = append(l.items, item{who: m.m.Producer, commit: m.m.Commit})
	w.note("marker commit=%v %v in %d", m.m.Commit, m.m.Producer, m.at.Number)
	x, round := w.x, m.m.Round
	l.acks = append(l.acks, ack{len(l.items), func(lost bool) {
		if !lost && w.x == x {
			w.apply(w.x.Marked(w.now, round, m.at, nil))
		}
	}})
}

// openOf is the transaction that a producer has open in a partition.
func (l *partLog) openOf(id int64) *transaction {
	for _, it := range slices.Backward(l.items) {
		if it.who.ID == id {
			return it.of
		}
	}
	return nil
}

// sync makes all of a partition durable.
func (w *world) sync(p int) {
	l := w.parts[p]
	l.durable = len(l.items)
	acks := l.acks
	l.acks = nil
	for _, a := range acks {
		a.done(false)
	}
}

// crash keeps what is durable, and any beginning of the rest of each log.
func (w *world) crash() {
	w.crashes++
	for w.r.IntN(2) == 0 && len(w.open) > 0 {
		w.persist(w.open[0])
		w.open = w.open[1:]
	}
	w.open, w.marks = nil, nil
	waiting := w.waiting
	w.waiting = map[int]func(Reply){}
	w.x = New("t", &w.conf)
	for _, l := range w.parts {
		l.durable += w.r.IntN(len(l.items) - l.durable + 1)
		l.items = l.items[:l.durable]
		acks := l.acks
		l.acks = nil
		for _, a := range acks {
			a.done(true)
		}
	}
	for _, answer := range waiting {
		answer(Reply{Err: kerr.NotCoordinator, Producer: none()}) // the connection broke
	}
	for _, r := range w.log {
		if err := w.x.Replay(r.Value); err != nil {
			w.fail("replay: %v", err)
		}
	}
	w.note("crash: %v %v", w.x.meta.state, w.x.meta.producer)
	w.apply(w.x.Loaded(w.now))
}

func (w *world) pass(d time.Duration) {
	w.now.Timer += d
	w.now.Wall += d.Milliseconds()
	if w.x.Next() <= w.now.Timer {
		w.apply(w.x.Tick(w.now))
	}
}

// check looks at what readers of committed records see: all below the durable end.
func (w *world) check() {
	for p, l := range w.parts {
		open := map[int64]*transaction{}
		last := -1
		for _, it := range l.items[:l.durable] {
			if it.of != nil {
				if o := open[it.who.ID]; o != nil && o != it.of {
					w.fail("partition %d: transaction %d goes on in %d", p, o.number, it.of.number)
				}
				open[it.who.ID] = it.of
				continue
			}
			x := open[it.who.ID]
			delete(open, it.who.ID)
			if x != nil {
				w.checkMarker(p, x, it.commit, &last)
			}
		}
	}
}

// checkMarker checks a marker that ends a transaction: it says what was decided, and in the order of the transactions.
func (w *world) checkMarker(p int, x *transaction, commit bool, last *int) {
	is := aborted
	if commit {
		is = committed
	}
	switch {
	case x.decided == undecided:
		w.fail("partition %d: transaction %d ended as %v before it was decided", p, x.number, is)
	case x.decided != is:
		w.fail("partition %d: transaction %d ended as %v, decided was %v", p, x.number, is, x.decided)
	case x.told != undecided && x.told != is:
		w.fail("partition %d: transaction %d ended as %v, its client was told %v", p, x.number, is, x.told)
	case x.number < *last:
		w.fail("partition %d: transaction %d ended after %d", p, x.number, *last)
	}
	*last = x.number
}

// drain lets all clients die and everything come to its end: no transaction is open, and what was written is seen as decided.
func (w *world) drain() {
	for _, c := range w.clients {
		c.dead = true
	}
	for range 3000 {
		w.pass(100 * time.Millisecond)
		w.storeOne()
		w.markOne()
		w.sync(w.r.IntN(len(w.parts)))
	}
	for p := range w.parts {
		w.sync(p)
	}
	w.check()
	if len(w.waiting) > 0 {
		w.fail("%d requests were never answered", len(w.waiting))
	}
	if s := w.x.State(); s == Ongoing || s.prepared() {
		w.fail("state is %v", s)
	}
	for p, l := range w.parts {
		ended := map[*transaction]bool{}
		open := map[int64]*transaction{}
		for _, it := range l.items {
			if it.of != nil {
				open[it.who.ID] = it.of
			} else if open[it.who.ID] != nil {
				ended[open[it.who.ID]] = true
				delete(open, it.who.ID)
			}
		}
		for _, x := range open {
			w.fail("partition %d: transaction %d hangs", p, x.number)
		}
		for _, x := range w.all {
			if x.wrote[p] && !ended[x] {
				w.fail("partition %d: batch of transaction %d is lost, or has no end", p, x.number)
			}
		}
	}
	for _, x := range w.all {
		switch x.decided {
		case committed:
			w.commits++
		case aborted:
			w.aborts++
		}
	}
}
