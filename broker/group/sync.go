package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// namesProtocol is the first version of SyncGroup that must name protocol type and protocol (KIP-559).
const namesProtocol = 5

// Sync is a SyncGroup. Nothing of r is kept. The answer waits for the leader's, and for that to be durable.
func (g *Group) Sync(at Instant, w Waiter, r *kmsg.SyncGroupRequest) Effects {
	s := step{Instant: at}
	m, err := g.checkSync(r)
	if err != nil {
		s.reply(w, syncFailed(err))
		return s.Effects
	}
	g.synced(m)
	if g.state == Stable {
		g.touch(&s, m)
		s.reply(w, g.assigned(m))
		return s.Effects
	}
	m.answerSync(&s, syncFailed(kerr.RebalanceInProgress)) // one on a connection that nobody reads any more
	m.syncWaiter = w
	m.deadline = never
	if m.id == g.leader {
		g.assign(&s, r.GroupAssignment)
	}
	return s.Effects
}

// checkSync returns the member, or what the request must be told.
func (g *Group) checkSync(r *kmsg.SyncGroupRequest) (*member, *kerr.Error) {
	if r.Version >= namesProtocol && (r.ProtocolType == nil || r.Protocol == nil) {
		return nil, kerr.InconsistentGroupProtocol
	}
	if err := g.closing(); err != nil {
		return nil, err
	}
	m, err := g.validate(r.MemberID, instanceOf(r.InstanceID))
	switch {
	case err != nil:
		return nil, err
	case r.Generation != g.generation:
		return nil, kerr.IllegalGeneration
	case r.ProtocolType != nil && *r.ProtocolType != g.protocolType, r.Protocol != nil && *r.Protocol != g.protocol:
		return nil, kerr.InconsistentGroupProtocol
	case g.state == PreparingRebalance:
		return nil, kerr.RebalanceInProgress
	}
	return m, nil
}

// assign stores the leader's assignment; when it is durable everybody gets theirs. Members that the leader left out get nothing.
func (g *Group) assign(s *step, in []kmsg.SyncGroupRequestGroupAssignment) {
	assignment := make(map[string][]byte, len(in))
	for i := range in {
		assignment[in[i].MemberID] = append([]byte{}, in[i].MemberAssignment...)
	}
	generation := g.generation
	g.writeGroupWith(s, assignment, func(s *step, err *kerr.Error) {
		if g.state != CompletingRebalance || g.generation != generation {
			return // another rebalance began; all were told
		}
		if err != nil {
			g.assignmentFailed(s, storeError(err))
			return
		}
		g.enter(s, Stable)
		for _, m := range g.order {
			m.assignment = assignmentOf(assignment, m.id)
			if m.answerSync(s, g.assigned(m)) {
				g.touch(s, m)
			}
		}
	})
}

func assignmentOf(assignment map[string][]byte, id string) []byte {
	if a := assignment[id]; a != nil {
		return a
	}
	return []byte{}
}

// assignmentFailed tells everybody that the assignment is not stored, and begins anew.
func (g *Group) assignmentFailed(s *step, err *kerr.Error) {
	for _, m := range g.order {
		m.assignment = []byte{}
		if m.answerSync(s, syncFailed(err)) {
			g.touch(s, m)
		}
	}
	g.prepareRebalance(s)
}

// storeError is what a member is told when the group could not be stored.
func storeError(err *kerr.Error) *kerr.Error {
	switch err {
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize:
		return kerr.UnknownServerError
	}
	return err
}

// Heartbeat is a Heartbeat.
func (g *Group) Heartbeat(at Instant, w Waiter, r *kmsg.HeartbeatRequest) Effects {
	s := step{Instant: at}
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = code(g.heartbeat(&s, r))
	s.reply(w, resp)
	return s.Effects
}

func (g *Group) heartbeat(s *step, r *kmsg.HeartbeatRequest) *kerr.Error {
	if err := g.closing(); err != nil {
		return err
	}
	m, err := g.validate(r.MemberID, instanceOf(r.InstanceID))
	if err != nil {
		return err
	}
	if r.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	if !m.waits() {
		g.touch(s, m)
	}
	if g.state == PreparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// Unload answers what is parked, and what waits for a write, because the group is no longer here. Nothing may be asked of it after that.
func (g *Group) Unload(at Instant) Effects {
	s := step{Instant: at}
	for _, m := range g.order {
		g.answerJoin(&s, m, joinFailed(m.id, kerr.NotCoordinator))
		m.answerSync(&s, syncFailed(kerr.NotCoordinator))
	}
	for len(g.inFlight) > 0 {
		w := g.inFlight[0]
		g.inFlight = g.inFlight[1:]
		if s.seq = w.seq; w.done != nil {
			w.done(&s, kerr.NotCoordinator)
		}
	}
	return Effects{Replies: s.Replies}
}
