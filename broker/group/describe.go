package group

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Describe is the group as DescribeGroups shows it. Protocols are shown when the group is stable only.
func (g *Group) Describe() kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group, out.State, out.ProtocolType = g.id, g.state.String(), g.protocolType
	out.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(g.order))
	if g.state == Stable {
		out.Protocol = g.protocol
	}
	for i, m := range g.order {
		d := &out.Members[i]
		d.MemberID, d.InstanceID, d.ClientID, d.ClientHost = m.id, m.instanceID(), m.clientID, m.host
		d.ProtocolMetadata, d.MemberAssignment = []byte{}, m.assignment
		if g.state == Stable {
			d.ProtocolMetadata = m.metadata(g.protocol)
		}
	}
	return out
}

// sortPartitions gives what comes out of maps an order, so that the same events have the same effects.
func sortPartitions(all []Partition) {
	slices.SortFunc(all, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
	})
}
