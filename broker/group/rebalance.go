package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// leastWait is for members that ask for a rebalance timeout of next to nothing: an answer must reach a client before the next is expected of it.
const leastWait = time.Second

// prepareRebalance begins to wait for all members to join again. Members whose SyncGroup waits are told to.
func (g *Group) prepareRebalance(s *step) {
	if g.state == CompletingRebalance {
		for _, m := range g.order {
			m.assignment = []byte{}
			if m.answerSync(s, syncFailed(kerr.RebalanceInProgress)) {
				g.touch(s, m)
			}
		}
	}
	g.endSyncs()
	if g.state != Empty {
		g.enter(s, PreparingRebalance)
		g.joinOrWait(s)
		return
	}
	// The group is new, or was left by all: others are likely to come soon (KIP-134).
	g.enter(s, PreparingRebalance)
	delay := g.conf.InitialDelay
	g.join = joinTimer{at: s.Timer + delay, initial: true, delay: delay, remaining: max(g.rebalanceTimeout()-delay, 0)}
	g.newcomers = false
	g.wake(g.join.at)
}

// joinOrWait ends the phase when all have joined, else gives them the rebalance timeout.
func (g *Group) joinOrWait(s *step) {
	if g.allJoined() {
		g.completeJoin(s)
		return
	}
	g.join = joinTimer{at: s.Timer + g.rebalanceTimeout()}
	g.wake(g.join.at)
}

func (g *Group) allJoined() bool { return g.joining == len(g.members) && len(g.pending) == 0 }

// joinIfComplete ends the phase early when nobody is missing. The initial delay runs to its end.
func (g *Group) joinIfComplete(s *step) {
	if g.state == PreparingRebalance && !g.join.initial && g.allJoined() {
		g.completeJoin(s)
	}
}

// joinDue is the end of the join timer.
func (g *Group) joinDue(s *step) {
	t := &g.join
	if !t.initial || !g.newcomers || t.remaining == 0 {
		g.completeJoin(s)
		return
	}
	g.newcomers = false
	next := min(g.conf.InitialDelay, t.remaining)
	g.join = joinTimer{at: s.Timer + next, initial: true, delay: next, remaining: max(t.remaining-t.delay, 0)}
	g.wake(g.join.at)
}

// completeJoin ends the wait: members that did not come are gone, unless they are static, and the rest is the next generation.
func (g *Group) completeJoin(s *step) {
	g.join = joinTimer{at: never}
	for _, m := range append([]*member(nil), g.order...) {
		if m.joinWaiter == nil && m.instance == "" {
			g.remove(s, m.id)
		}
	}
	if len(g.members) > 0 && !g.electLeader() {
		// Only static members, and none of them is here: their sessions will end, or they come.
		g.join = joinTimer{at: s.Timer + max(g.rebalanceTimeout(), leastWait)}
		g.wake(g.join.at)
		return
	}
	g.nextGeneration(s)
	if g.state == Empty {
		g.writeGroup(s, nil)
		return
	}
	for _, m := range g.order {
		m.owesSync = true
		g.answerJoin(s, m, g.joined(m))
		m.fresh, m.knowsID = false, true
		g.touch(s, m)
	}
	g.syncBy = s.Timer + max(g.rebalanceTimeout(), leastWait)
	g.wake(g.syncBy)
}

// electLeader keeps a leader that joined, else takes the first member that did.
func (g *Group) electLeader() bool {
	if m := g.members[g.leader]; m != nil && m.joinWaiter != nil {
		return true
	}
	for _, m := range g.order {
		if m.joinWaiter != nil {
			g.leader = m.id
			return true
		}
	}
	return false
}

func (g *Group) nextGeneration(s *step) {
	g.generation++
	g.endSyncs()
	if len(g.members) == 0 {
		g.protocol = ""
		g.learnTopics()
		g.enter(s, Empty)
		return
	}
	g.protocol = g.vote()
	g.learnTopics()
	g.enter(s, CompletingRebalance)
}

// endSyncs forgets who owes a SyncGroup.
func (g *Group) endSyncs() {
	g.syncBy = never
	for _, m := range g.order {
		m.owesSync = false
	}
}

// synced notes that a member sent its SyncGroup.
func (g *Group) synced(m *member) {
	m.owesSync = false
	for _, o := range g.order {
		if o.owesSync {
			return
		}
	}
	g.syncBy = never
}

// syncDue removes members that did not sync in time, so that one cannot hold up the rest (KAFKA-12890).
func (g *Group) syncDue(s *step) {
	g.syncBy = never
	for _, m := range append([]*member(nil), g.order...) {
		if m.owesSync {
			g.remove(s, m.id)
		}
	}
	g.prepareRebalance(s)
}

// Tick does what is due. It may come early or late.
func (g *Group) Tick(at Instant) Effects {
	s := step{Instant: at}
	g.due = never
	for id, deadline := range g.pending {
		if deadline <= at.Timer {
			delete(g.pending, id)
			g.joinIfComplete(&s)
		}
	}
	for _, m := range append([]*member(nil), g.order...) {
		if m.deadline <= at.Timer && g.members[m.id] == m {
			g.sessionDue(&s, m)
		}
	}
	if g.join.at <= at.Timer {
		g.joinDue(&s)
	}
	if g.syncBy <= at.Timer {
		g.syncDue(&s)
	}
	g.due = g.earliest()
	return s.Effects
}

// sessionDue removes a member that was silent for too long. While a request of it waits it need not speak.
func (g *Group) sessionDue(s *step, m *member) {
	if m.waits() && !m.fresh {
		m.deadline = never
		return
	}
	g.expel(s, m)
}

// earliest finds the next timer.
func (g *Group) earliest() time.Duration {
	next := min(g.join.at, g.syncBy)
	for _, deadline := range g.pending {
		next = min(next, deadline)
	}
	for _, m := range g.order {
		next = min(next, m.deadline)
	}
	return next
}
