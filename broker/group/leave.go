package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leavesMany is the first version of LeaveGroup that names several members.
const leavesMany = 3

// Leave is a LeaveGroup, by members or by an admin that removes them.
func (g *Group) Leave(at Instant, w Waiter, r *kmsg.LeaveGroupRequest) Effects {
	s := step{Instant: at}
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.Members = []kmsg.LeaveGroupResponseMember{}
	before := len(g.members)
	switch {
	case g.closing() != nil:
		resp.ErrorCode = code(g.closing())
	case r.Version < leavesMany:
		resp.ErrorCode = code(g.leave(&s, r.MemberID, ""))
	default:
		for i := range r.Members {
			in := &r.Members[i]
			err := g.leave(&s, in.MemberID, instanceOf(in.InstanceID))
			out := kmsg.NewLeaveGroupResponseMember()
			out.MemberID, out.InstanceID, out.ErrorCode = in.MemberID, in.InstanceID, code(err)
			resp.Members = append(resp.Members, out)
		}
	}
	s.reply(w, resp)
	if len(g.members) < before {
		g.shrunk(&s)
	} else {
		g.joinIfComplete(&s) // an id that was given out may be what a rebalance waited for
	}
	return s.Effects
}

// leave removes one member. An admin names a static one by its instance id alone.
func (g *Group) leave(s *step, id, instance string) *kerr.Error {
	if id == "" {
		m := g.static[instance]
		if instance == "" || m == nil {
			return kerr.UnknownMemberID
		}
		g.remove(s, m.id)
		return nil
	}
	if _, ok := g.pending[id]; ok {
		delete(g.pending, id)
		return nil
	}
	m, err := g.validate(id, instance)
	if err != nil {
		return err
	}
	g.remove(s, m.id)
	return nil
}
