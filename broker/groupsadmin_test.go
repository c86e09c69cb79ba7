package broker

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDescribeGroups(t *testing.T) {
	_, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	j := c.member("live")
	c.commitOne("simple", "t", 1)
	for v := int16(0); v <= 6; v++ {
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Groups, r.IncludeAuthorizedOperations = []string{"live", "simple", "none"}, v >= 3
		got := ask[*kmsg.DescribeGroupsResponse](c, v, r).Groups
		live, simple, none := got[0], got[1], got[2]
		if live.State != "Stable" || live.ProtocolType != "consumer" || live.Protocol != "range" || len(live.Members) != 1 || live.ErrorCode != 0 {
			t.Fatalf("v%d: %+v", v, live)
		}
		if m := live.Members[0]; m.MemberID != j.MemberID || m.ClientID != "test" || m.ClientHost != "/127.0.0.1" || string(m.MemberAssignment) != "all" || len(m.ProtocolMetadata) == 0 {
			t.Errorf("v%d: member %+v", v, m)
		}
		if simple.State != "Empty" || simple.ProtocolType != "" || simple.ErrorCode != 0 || len(simple.Members) != 0 {
			t.Errorf("v%d: %+v", v, simple)
		}
		want := int16(0)
		if v >= 6 {
			want = kerr.GroupIDNotFound.Code
		}
		if none.State != "Dead" || none.ErrorCode != want || v >= 6 && *none.ErrorMessage != "Group none not found." {
			t.Errorf("v%d: %+v", v, none)
		}
		if v >= 3 && live.AuthorizedOperations != 0xd48 {
			t.Errorf("v%d: operations %x", v, live.AuthorizedOperations)
		}
	}
}

func TestListGroups(t *testing.T) {
	_, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	c.member("live")
	c.commitOne("simple", "t", 1)
	list := func(v int16, states, types []string) (out []string) {
		r := kmsg.NewPtrListGroupsRequest()
		r.StatesFilter, r.TypesFilter = states, types
		resp := ask[*kmsg.ListGroupsResponse](c, v, r)
		for _, g := range resp.Groups {
			out = append(out, fmt.Sprintf("%s:%s:%s:%s", g.Group, g.ProtocolType, g.GroupState, g.GroupType))
		}
		return out
	}
	for v := int16(0); v <= 5; v++ {
		state, kind := func(s string) string { return "" }, ""
		if v >= 4 {
			state = func(s string) string { return s }
		}
		if v >= 5 {
			kind = "classic"
		}
		want := fmt.Sprintf("[live:consumer:%s:%s simple::%s:%s]", state("Stable"), kind, state("Empty"), kind)
		if got := fmt.Sprint(list(v, nil, nil)); got != want {
			t.Errorf("v%d: %s, want %s", v, got, want)
		}
	}
	for _, tc := range []struct {
		states, types []string
		want          int
	}{
		{[]string{"stable"}, nil, 1}, {[]string{"EMPTY", "Stable"}, nil, 2}, {[]string{"Nonsense"}, nil, 0},
		{nil, []string{"Classic"}, 2}, {nil, []string{"consumer"}, 0}, {[]string{"Empty"}, []string{"classic", "share"}, 1},
	} {
		if got := list(5, tc.states, tc.types); len(got) != tc.want {
			t.Errorf("states %v, types %v: %v, want %d", tc.states, tc.types, got, tc.want)
		}
	}
}

func TestDeleteGroups(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir)
	c.createTopic("t")
	c.member("live")
	for v := int16(0); v <= 3; v++ {
		c.commitOne("simple", "t", 1)
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Groups = []string{"live", "simple", "none", "simple"}
		got := ask[*kmsg.DeleteGroupsResponse](c, v, r).Groups
		if len(got) != 3 || got[0].ErrorCode != kerr.NonEmptyGroup.Code || got[1].ErrorCode != 0 || got[2].ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("v%d: %+v", v, got)
		}
		if o := c.fetchOne("simple", "t").Offset; o != -1 {
			t.Errorf("v%d: offset %d is left", v, o)
		}
	}
	b.stopClean()
	b, _ = groupBroker(t, dir)
	waitFor(t, func() bool { return b.describeGroup("live", 0).State == "Stable" })
	if got := b.describeGroup("simple", 0).State; got != "Dead" {
		t.Errorf("after a restart the deleted group is %s", got)
	}
}
