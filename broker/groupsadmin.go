package broker

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/wire"
)

// DescribeGroups (key 15) versions 0 to 6, ListGroups (16) 0 to 5, DeleteGroups (42) 0 to 3. An unknown group is "Dead" without error; from version 6
// of DescribeGroups on it is GROUP_ID_NOT_FOUND too (KIP-1043). All groups are of type classic.

// allGroupOperations are all operations on a group, as bits of their codes (KIP-430).
const allGroupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

func (b *Broker) handleDescribeGroups(_ context.Context, _ *wire.Request, r *kmsg.DescribeGroupsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, 0, len(r.Groups))
	for _, id := range r.Groups {
		out := b.describeGroup(id, r.Version)
		out.AuthorizedOperations = notAsked
		if r.IncludeAuthorizedOperations && out.ErrorCode == 0 {
			out.AuthorizedOperations = allGroupOperations
		}
		resp.Groups = append(resp.Groups, out)
	}
	return resp
}

// tellsMissingGroups is the first version of DescribeGroups that has an error for groups that do not exist.
const tellsMissingGroups = 6

func (b *Broker) describeGroup(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group = id
	out.Members = []kmsg.DescribeGroupsResponseGroupMember{}
	p, err := b.groups.find(id)
	if err != nil {
		out.ErrorCode = err.Code
		return out
	}
	if p.read(id, func(g *group.Group) { out = g.Describe() }) {
		return out
	}
	out.State = group.Dead.String()
	if version >= tellsMissingGroups {
		text := fmt.Sprintf("Group %s not found.", id)
		out.ErrorCode, out.ErrorMessage = kerr.GroupIDNotFound.Code, &text
	}
	return out
}

// classicType is the type of all groups here, as ListGroups names it.
const classicType = "classic"

func (b *Broker) handleListGroups(_ context.Context, _ *wire.Request, r *kmsg.ListGroupsRequest) kmsg.Response {
	resp := kmsg.NewPtrListGroupsResponse()
	resp.Groups = []kmsg.ListGroupsResponseGroup{}
	for _, p := range b.groups.all() {
		if err := p.usable(); err != nil {
			// A list without the groups of that partition would look whole.
			if resp.ErrorCode = err.Code; err == kerr.NotCoordinator {
				resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
			}
			resp.Groups = []kmsg.ListGroupsResponseGroup{}
			return resp
		}
		for _, s := range p.slots() {
			one := kmsg.NewListGroupsResponseGroup()
			one.Group, one.GroupType = s.id, classicType
			ok := p.read(s.id, func(g *group.Group) { one.ProtocolType, one.GroupState = g.ProtocolType(), g.State().String() })
			if ok && wanted(r.StatesFilter, one.GroupState) && wanted(r.TypesFilter, classicType) {
				resp.Groups = append(resp.Groups, one)
			}
		}
	}
	sort.Slice(resp.Groups, func(i, j int) bool { return resp.Groups[i].Group < resp.Groups[j].Group })
	return resp
}

// wanted reports if a filter lets a value through. An empty one lets all through, unknown names none.
func wanted(filter []string, value string) bool {
	for _, f := range filter {
		if strings.EqualFold(f, value) {
			return true
		}
	}
	return len(filter) == 0
}

func (b *Broker) handleDeleteGroups(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.DeleteGroupsRequest)
	d := &groupDeletion{wake: req.Wake, resp: kmsg.NewPtrDeleteGroupsResponse()}
	seen := make(map[string]bool)
	for _, id := range r.Groups {
		if !seen[id] {
			seen[id] = true
			one := kmsg.NewDeleteGroupsResponseGroup()
			one.Group = id
			d.resp.Groups = append(d.resp.Groups, one)
		}
	}
	d.left.Store(int32(len(d.resp.Groups)) + 1)
	for i := range d.resp.Groups {
		one := &deletedGroup{d, &d.resp.Groups[i]}
		p, err := b.groups.find(one.out.Group)
		if err != nil {
			one.receive(group.Reply{Err: err})
			continue
		}
		p.event(one.out.Group, func(g *group.Group, at group.Instant) group.Effects { return g.Delete(at, one) })
	}
	d.left.Add(-1)
	if reply, ok := d.Poll(time.Time{}); ok {
		return reply
	}
	return wire.Reply{Pending: d}
}

// groupDeletion is a DeleteGroups that waits for tombstones to be durable.
type groupDeletion struct {
	wake func()
	resp *kmsg.DeleteGroupsResponse
	left atomic.Int32 // groups without a result, and one for the handler
}

// deletedGroup waits for one of them.
type deletedGroup struct {
	deletion *groupDeletion
	out      *kmsg.DeleteGroupsResponseGroup
}

// receive implements receiver.
func (d *deletedGroup) receive(r group.Reply) {
	if r.Err != nil {
		d.out.ErrorCode = r.Err.Code
	}
	if d.deletion.left.Add(-1) == 0 {
		d.deletion.wake()
	}
}

// Poll implements wire.Pending.
func (d *groupDeletion) Poll(time.Time) (wire.Reply, bool) {
	if d.left.Load() > 0 {
		return wire.Reply{}, false
	}
	return wire.Reply{Body: wire.Message(d.resp)}, true
}

// Deadline implements wire.Pending. A write ends, well or badly.
func (d *groupDeletion) Deadline() time.Time { return time.Time{} }

// Cancel implements wire.Pending.
func (d *groupDeletion) Cancel() {}
