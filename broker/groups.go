package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/wire"
)

// JoinGroup (key 11) versions 0 to 9, SyncGroup (14) 0 to 5, Heartbeat (12) 0 to 4, LeaveGroup (13) 0 to 5: the classic group protocol. The rules
// are in package group; here is what comes before a group is asked: ids, and where the group lives.

func (b *Broker) handleJoinGroup(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.JoinGroupRequest)
	refused := func(err *kerr.Error) wire.Reply {
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.ErrorCode, resp.Generation, resp.MemberID = err.Code, -1, r.MemberID
		return wire.Reply{Body: wire.Message(resp)}
	}
	p, err := b.groupFor(r.Group)
	if err != nil {
		return refused(err)
	}
	caller := group.Caller{ClientID: req.ClientID, Host: callerHost(req.Conn), Unique: newUUID()}
	a := newGroupAnswer(req, p, r.Group)
	p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Join(at, a, caller, r) })
	return a.reply()
}

func (b *Broker) handleSyncGroup(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.SyncGroupRequest)
	p, err := b.groupFor(r.Group)
	if err != nil {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.ErrorCode = err.Code
		return wire.Reply{Body: wire.Message(resp)}
	}
	a := newGroupAnswer(req, p, r.Group)
	p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Sync(at, a, r) })
	return a.reply()
}

// handleHeartbeat answers NONE while the group is being read: its members are alive, and there is nothing that they should do.
func (b *Broker) handleHeartbeat(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.HeartbeatRequest)
	p, err := b.groupFor(r.Group)
	if err != nil {
		resp := kmsg.NewPtrHeartbeatResponse()
		if err != kerr.CoordinatorLoadInProgress {
			resp.ErrorCode = err.Code
		}
		return wire.Reply{Body: wire.Message(resp)}
	}
	a := newGroupAnswer(req, p, r.Group)
	p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Heartbeat(at, a, r) })
	return a.reply()
}

func (b *Broker) handleLeaveGroup(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.LeaveGroupRequest)
	p, err := b.groupFor(r.Group)
	if err != nil {
		resp := kmsg.NewPtrLeaveGroupResponse()
		resp.ErrorCode = err.Code
		return wire.Reply{Body: wire.Message(resp)}
	}
	a := newGroupAnswer(req, p, r.Group)
	p.event(r.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Leave(at, a, r) })
	return a.reply()
}

// groupFor finds where the group of a member's request lives.
func (b *Broker) groupFor(id string) (*offsetsPartition, *kerr.Error) {
	if id == "" {
		return nil, kerr.InvalidGroupID
	}
	return b.groups.find(id)
}

// callerHost is the client's address as Kafka shows it.
func callerHost(conn *wire.ConnInfo) string {
	if conn.Remote == nil {
		return "/"
	}
	host, _, err := net.SplitHostPort(conn.Remote.String())
	if err != nil {
		return "/" + conn.Remote.String()
	}
	return "/" + host
}

// newUUID is a random UUID (version 4) as Java writes it, for member ids.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// groupAnswer is the answer of a group that may have to be waited for.
type groupAnswer struct {
	wake  func()
	p     *offsetsPartition
	group string
	resp  atomic.Pointer[kmsg.Response]
}

func newGroupAnswer(req *wire.Request, p *offsetsPartition, group string) *groupAnswer {
	return &groupAnswer{wake: req.Wake, p: p, group: group}
}

// receive implements receiver.
func (a *groupAnswer) receive(r group.Reply) {
	a.resp.Store(&r.Response)
	a.wake()
}

// reply is the answer, or a that waits for it.
func (a *groupAnswer) reply() wire.Reply {
	if reply, ok := a.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: a}
}

// Poll implements wire.Pending.
func (a *groupAnswer) Poll(time.Time) (wire.Reply, bool) {
	if resp := a.resp.Load(); resp != nil {
		return wire.Reply{Body: wire.Message(*resp)}, true
	}
	return wire.Reply{}, false
}

// Deadline implements wire.Pending. The group's own timers end every wait.
func (a *groupAnswer) Deadline() time.Time { return time.Time{} }

// Cancel implements wire.Pending.
func (a *groupAnswer) Cancel() {
	if s := a.p.peek(a.group); s != nil {
		s.event(func(g *group.Group, at group.Instant) group.Effects { return g.Cancel(at, a) })
	}
}
