package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// requiresMemberID is the first version of JoinGroup that is told its member id before it joins (KIP-394).
const requiresMemberID = 4

// skipsAssignment is the first version of JoinGroup that can be told that the leader has nothing to assign (KIP-814).
const skipsAssignment = 9

// Join is a JoinGroup. Nothing of r is kept. The answer waits until the members are together.
func (g *Group) Join(at Instant, w Waiter, c Caller, r *kmsg.JoinGroupRequest) Effects {
	s := step{Instant: at}
	session := millis(r.SessionTimeoutMillis)
	switch {
	case session < g.conf.MinSession || session > g.conf.MaxSession:
		s.reply(w, joinFailed(r.MemberID, kerr.InvalidSessionTimeout))
	case g.closing() != nil:
		s.reply(w, joinFailed(r.MemberID, g.closing()))
	case g.state == Dead && r.MemberID != "":
		s.reply(w, joinFailed(r.MemberID, kerr.UnknownMemberID))
	case !g.hasRoom(r.MemberID):
		if m := g.members[r.MemberID]; m != nil {
			g.expel(&s, m)
		}
		s.reply(w, joinFailed("", kerr.GroupMaxSizeReached))
	case !g.compatible(r.ProtocolType, r.Protocols):
		s.reply(w, joinFailed(r.MemberID, kerr.InconsistentGroupProtocol))
	case r.MemberID == "":
		g.create(&s)
		g.joinNew(&s, w, c, r)
	default:
		g.joinKnown(&s, w, c, r)
	}
	return s.Effects
}

// hasRoom reports if one more member, or this one again, fits (KIP-389).
func (g *Group) hasRoom(id string) bool {
	m := g.members[id]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.joinWaiter != nil || g.joining < g.conf.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < g.conf.MaxSize
	}
	return true
}

// joinNew is a JoinGroup without a member id.
func (g *Group) joinNew(s *step, w Waiter, c Caller, r *kmsg.JoinGroupRequest) {
	if instance := instanceOf(r.InstanceID); instance != "" {
		id := instance + "-" + c.Unique
		if old := g.static[instance]; old != nil {
			g.replaceStatic(s, w, old, id, r)
			return
		}
		g.addMember(s, w, id, c, r)
		return
	}
	id := c.ClientID + "-" + c.Unique
	if r.Version >= requiresMemberID {
		g.pending[id] = s.Timer + millis(r.SessionTimeoutMillis)
		g.wake(g.pending[id])
		s.reply(w, joinFailed(id, kerr.MemberIDRequired))
		return
	}
	g.addMember(s, w, id, c, r)
}

// joinKnown is a JoinGroup with a member id.
func (g *Group) joinKnown(s *step, w Waiter, c Caller, r *kmsg.JoinGroupRequest) {
	if _, ok := g.pending[r.MemberID]; ok && instanceOf(r.InstanceID) == "" {
		g.addMember(s, w, r.MemberID, c, r)
		return
	}
	m, err := g.validate(r.MemberID, instanceOf(r.InstanceID))
	if err != nil {
		s.reply(w, joinFailed(r.MemberID, err))
		return
	}
	m.knowsID = true
	switch {
	case g.state == Empty:
		s.reply(w, joinFailed(r.MemberID, kerr.UnknownMemberID))
	case g.state == CompletingRebalance && m.speaks(r.Protocols), // it did not get the answer
		g.state == Stable && m.speaks(r.Protocols) && m.id != g.leader:
		s.reply(w, g.joined(m))
	default:
		g.rejoin(s, w, m, r)
	}
}

// addMember takes a new member in and goes on.
func (g *Group) addMember(s *step, w Waiter, id string, c Caller, r *kmsg.JoinGroupRequest) {
	m := &member{id: id, instance: instanceOf(r.InstanceID), clientID: c.ClientID, host: c.Host, fresh: true, knowsID: r.MemberID == id, assignment: []byte{}}
	if m.instance != "" {
		g.static[m.instance] = m
	}
	m.update(r)
	if g.state == PreparingRebalance && g.previous == Empty {
		g.newcomers = true
	}
	if len(g.members) == 0 {
		g.protocolType = r.ProtocolType
	}
	if g.leader == "" {
		g.leader = id
	}
	g.members[id] = m
	g.order = append(g.order, m)
	delete(g.pending, id)
	g.awaitJoin(s, m, w)
	m.deadline = s.Timer + newMemberTimeout
	g.wake(m.deadline)
	g.proceed(s)
}

// rejoin lets a member join again and goes on.
func (g *Group) rejoin(s *step, w Waiter, m *member, r *kmsg.JoinGroupRequest) {
	m.update(r)
	g.awaitJoin(s, m, w)
	g.proceed(s)
}

// proceed begins a rebalance, or looks if one that runs has all it waits for.
func (g *Group) proceed(s *step) {
	if g.state != PreparingRebalance {
		g.prepareRebalance(s)
		return
	}
	g.joinIfComplete(s)
}

// replaceStatic gives a static member that came back a new id. The old id is fenced at once (KIP-345).
func (g *Group) replaceStatic(s *step, w Waiter, m *member, id string, r *kmsg.JoinGroupRequest) {
	oldID, oldLeader := m.id, g.leader
	g.answerJoin(s, m, joinFailed(oldID, kerr.FencedInstanceID))
	m.answerSync(s, syncFailed(kerr.FencedInstanceID))
	old := *m
	g.rename(m, id)
	m.fresh, m.knowsID = false, false
	m.update(r)
	g.awaitJoin(s, m, w)
	switch {
	case g.state == Stable && g.vote() == g.protocol:
		g.storeReplaced(s, m, &old, oldLeader, r.Version)
	case g.state == PreparingRebalance:
		g.joinIfComplete(s)
	default:
		g.prepareRebalance(s)
	}
}

// rename changes a member's id.
func (g *Group) rename(m *member, id string) {
	delete(g.members, m.id)
	if g.leader == m.id {
		g.leader = id
	}
	m.id = id
	g.members[id] = m
}

// storeReplaced keeps the generation with the static member's new id, and answers when that is durable. Clients before version 9 are
// told of the old leader, so that they do not assign anew.
func (g *Group) storeReplaced(s *step, m, old *member, oldLeader string, version int16) {
	id := m.id
	g.writeGroup(s, func(s *step, err *kerr.Error) {
		if g.members[id] != m {
			return // removed or replaced again; it was answered then
		}
		if err != nil {
			w := m.joinWaiter
			g.answerJoin(s, m, joinFailed("", storeError(err)))
			if g.state == Stable && w != nil {
				g.rename(m, old.id)
				m.protocols, m.session, m.rebalance = old.protocols, old.session, old.rebalance
			}
			g.touch(s, m)
			return
		}
		if g.state != Stable || m.joinWaiter == nil {
			return // a rebalance began meanwhile and answers
		}
		resp := g.joined(m)
		if version >= skipsAssignment {
			resp.SkipAssignment = m.id == g.leader
		} else {
			resp.LeaderID, resp.Members = oldLeader, []kmsg.JoinGroupResponseMember{}
		}
		g.answerJoin(s, m, resp)
		g.touch(s, m)
	})
}
