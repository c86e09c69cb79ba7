package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is one member.
type member struct {
	id       string
	instance string // group.instance.id; "" for a dynamic member
	clientID string
	host     string

	rebalance time.Duration
	session   time.Duration
	protocols []protocol

	assignment []byte
	deadline   time.Duration // when its session ends; never while its JoinGroup or SyncGroup waits

	// fresh is a member that never had an answer to a JoinGroup: it cannot send heartbeats yet.
	fresh bool
	// knowsID says that the client was told this member id.
	knowsID bool
	// owesSync says that the member was told of the generation and has not sent its SyncGroup yet.
	owesSync bool

	joinWaiter Waiter
	syncWaiter Waiter
}

// protocol is one that a member can speak, with its metadata.
type protocol struct {
	name     string
	metadata []byte
}

// protocolsOf copies the protocols of a request: the bytes belong to its frame.
func protocolsOf(in []kmsg.JoinGroupRequestProtocol) []protocol {
	out := make([]protocol, len(in))
	for i := range in {
		out[i] = protocol{in[i].Name, append([]byte{}, in[i].Metadata...)}
	}
	return out
}

// speaks reports if the member has exactly these protocols.
func (m *member) speaks(in []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.protocols, in, func(p protocol, q kmsg.JoinGroupRequestProtocol) bool {
		return p.name == q.Name && bytes.Equal(p.metadata, q.Metadata)
	})
}

func (m *member) metadata(name string) []byte {
	for _, p := range m.protocols {
		if p.name == name {
			return p.metadata
		}
	}
	return []byte{}
}

// update takes over what a JoinGroup says of the member.
func (m *member) update(r *kmsg.JoinGroupRequest) {
	m.protocols = protocolsOf(r.Protocols)
	m.session = millis(r.SessionTimeoutMillis)
	m.rebalance = millis(r.RebalanceTimeoutMillis)
	if r.Version == 0 || m.rebalance < 0 {
		m.rebalance = m.session
	}
}

func (m *member) instanceID() *string {
	if m.instance == "" {
		return nil
	}
	return &m.instance
}

// instanceOf is the instance id of a request, "" for none.
func instanceOf(id *string) string {
	if id == nil {
		return ""
	}
	return *id
}

// waits reports if a request of the member is parked: it need not send heartbeats then.
func (m *member) waits() bool { return m.joinWaiter != nil || m.syncWaiter != nil }

// answerSync answers the member's SyncGroup, if one waits.
func (m *member) answerSync(s *step, r *kmsg.SyncGroupResponse) bool {
	if m.syncWaiter == nil {
		return false
	}
	s.reply(m.syncWaiter, r)
	m.syncWaiter = nil
	return true
}

// answerJoin answers the member's JoinGroup, if one waits.
func (g *Group) answerJoin(s *step, m *member, r *kmsg.JoinGroupResponse) {
	if m.joinWaiter == nil {
		return
	}
	s.reply(m.joinWaiter, r)
	m.joinWaiter = nil
	g.joining--
}

// awaitJoin parks a member's JoinGroup. One that it sent before, on a connection that nobody reads any more, is answered.
func (g *Group) awaitJoin(s *step, m *member, w Waiter) {
	g.answerJoin(s, m, joinFailed(m.id, kerr.RebalanceInProgress))
	m.joinWaiter = w
	g.joining++
	if !m.fresh {
		m.deadline = never
	}
}

// validate finds the member that a request is from.
func (g *Group) validate(id, instance string) (*member, *kerr.Error) {
	if instance != "" {
		m := g.static[instance]
		if m == nil {
			return nil, kerr.UnknownMemberID
		}
		if m.id != id {
			return nil, kerr.FencedInstanceID
		}
	}
	m := g.members[id]
	if m == nil {
		return nil, kerr.UnknownMemberID
	}
	return m, nil
}

// joinFailed is an answer to JoinGroup with every field that old clients want filled.
func joinFailed(id string, err *kerr.Error) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.ErrorCode, r.MemberID, r.Generation = code(err), id, -1
	r.Members = []kmsg.JoinGroupResponseMember{}
	return r
}

func syncFailed(err *kerr.Error) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ErrorCode, r.MemberAssignment = code(err), []byte{}
	return r
}

// joined tells a member of the current generation.
func (g *Group) joined(m *member) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.Generation, r.LeaderID, r.MemberID = g.generation, g.leader, m.id
	protocolType, protocol := g.protocolType, g.protocol
	r.ProtocolType, r.Protocol = &protocolType, &protocol
	r.Members = []kmsg.JoinGroupResponseMember{}
	if m.id == g.leader {
		r.Members = g.roster()
	}
	return r
}

// roster is the list of members that the leader gets.
func (g *Group) roster() []kmsg.JoinGroupResponseMember {
	out := make([]kmsg.JoinGroupResponseMember, len(g.order))
	for i, m := range g.order {
		out[i] = kmsg.JoinGroupResponseMember{MemberID: m.id, InstanceID: m.instanceID(), ProtocolMetadata: m.metadata(g.protocol)}
	}
	return out
}

// assigned gives a member its assignment.
func (g *Group) assigned(m *member) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	protocolType, protocol := g.protocolType, g.protocol
	r.ProtocolType, r.Protocol, r.MemberAssignment = &protocolType, &protocol, m.assignment
	return r
}
