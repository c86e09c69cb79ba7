package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// quickGroups are settings with which a group of one does not wait for others.
func quickGroups(more ...string) []string {
	return append([]string{"group.initial.rebalance.delay.ms", "0", "offsets.topic.num.partitions", "4"}, more...)
}

// groupBroker is a broker with the coordinator's topic.
func groupBroker(t *testing.T, dir string, settings ...string) (*testBroker, *client) {
	t.Helper()
	b := startBroker(t, dir, quickGroups(settings...)...)
	c := b.dial()
	c.findCoordinator("g")
	return b, c
}

func (c *client) findCoordinator(key string) kmsg.FindCoordinatorResponseCoordinator {
	c.t.Helper()
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.CoordinatorKeys = []string{key}
	resp := ask[*kmsg.FindCoordinatorResponse](c, 4, r)
	if len(resp.Coordinators) != 1 || resp.Coordinators[0].ErrorCode != 0 {
		c.t.Fatalf("coordinator of %s: %+v", key, resp)
	}
	return resp.Coordinators[0]
}

func joinRequest(id, member string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.MemberID, r.ProtocolType = id, member, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 60_000, 60_000
	// A subscription to the topics "t": version, topics, user data.
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}}}
	return r
}

// join takes the two steps of version 4 and later.
func (c *client) join(version int16, r *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	c.t.Helper()
	resp := ask[*kmsg.JoinGroupResponse](c, version, r)
	if version >= 4 && resp.ErrorCode == kerr.MemberIDRequired.Code {
		r.MemberID = resp.MemberID
		resp = ask[*kmsg.JoinGroupResponse](c, version, r)
	}
	if resp.ErrorCode != 0 {
		c.t.Fatalf("join v%d: error %d", version, resp.ErrorCode)
	}
	return resp
}

func syncRequest(j *kmsg.JoinGroupResponse, id, assignment string) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	consumer, protocol := "consumer", "range"
	r.Group, r.Generation, r.MemberID, r.ProtocolType, r.Protocol = id, j.Generation, j.MemberID, &consumer, &protocol
	for _, m := range j.Members {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: []byte(assignment)})
	}
	return r
}

// leaveRequest names members by id, or static ones as @instance.
func leaveRequest(id string, members ...string) *kmsg.LeaveGroupRequest {
	l := kmsg.NewPtrLeaveGroupRequest()
	l.Group, l.MemberID = id, members[0]
	for _, m := range members {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = m
		if instance, ok := strings.CutPrefix(m, "@"); ok {
			one.MemberID, one.InstanceID = "", &instance
		}
		l.Members = append(l.Members, one)
	}
	return l
}

// member makes c the only member of a stable group.
func (c *client) member(id string) *kmsg.JoinGroupResponse {
	c.t.Helper()
	j := c.join(9, joinRequest(id, ""))
	if s := ask[*kmsg.SyncGroupResponse](c, 5, syncRequest(j, id, "all")); s.ErrorCode != 0 || string(s.MemberAssignment) != "all" {
		c.t.Fatalf("sync: %+v", s)
	}
	return j
}

// TestGroupVersions walks one member through the group protocol at every version.
func TestGroupVersions(t *testing.T) {
	b, _ := groupBroker(t, t.TempDir())
	for v := int16(0); v <= 9; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			c := b.dial()
			id := fmt.Sprint("versions-", v)
			j := c.join(v, joinRequest(id, ""))
			if j.Generation != 1 || j.LeaderID != j.MemberID || len(j.Members) != 1 || *j.Protocol != "range" || !strings.HasPrefix(j.MemberID, "test-") {
				t.Fatalf("join: %+v", j)
			}
			if v >= 7 != (j.ProtocolType != nil) {
				t.Errorf("protocol type is %v", j.ProtocolType)
			}
			s := ask[*kmsg.SyncGroupResponse](c, min(v, 5), syncRequest(j, id, "mine"))
			if s.ErrorCode != 0 || string(s.MemberAssignment) != "mine" || (v >= 5) != (s.Protocol != nil) {
				t.Fatalf("sync: %+v", s)
			}
			h := kmsg.NewPtrHeartbeatRequest()
			h.Group, h.Generation, h.MemberID = id, j.Generation, j.MemberID
			if got := ask[*kmsg.HeartbeatResponse](c, min(v, 4), h); got.ErrorCode != 0 {
				t.Errorf("heartbeat: error %d", got.ErrorCode)
			}
			l := kmsg.NewPtrLeaveGroupRequest()
			l.Group, l.MemberID = id, j.MemberID
			m := kmsg.NewLeaveGroupRequestMember()
			m.MemberID = j.MemberID
			l.Members = append(l.Members, m)
			left := ask[*kmsg.LeaveGroupResponse](c, min(v, 5), l)
			if left.ErrorCode != 0 || v >= 3 && (len(left.Members) != 1 || left.Members[0].ErrorCode != 0) {
				t.Errorf("leave: %+v", left)
			}
		})
	}
}

// TestGroupRefusals: every error at every version is an answer with all of its fields (old clients fail on null).
func TestGroupRefusals(t *testing.T) {
	_, c := groupBroker(t, t.TempDir())
	for v := int16(0); v <= 9; v++ {
		for _, tc := range []struct {
			what          string
			group, member string
			want          *kerr.Error
		}{
			{"no group id", "", "", kerr.InvalidGroupID},
			{"no such group", "none", "m", kerr.UnknownMemberID},
		} {
			j := ask[*kmsg.JoinGroupResponse](c, v, joinRequest(tc.group, tc.member))
			if j.ErrorCode != tc.want.Code || j.Generation != -1 || j.MemberID != tc.member || len(j.Members) != 0 || v < 7 && j.Protocol == nil {
				t.Errorf("%s: join v%d is %+v", tc.what, v, j)
			}
			s := ask[*kmsg.SyncGroupResponse](c, min(v, 5), syncRequest(&kmsg.JoinGroupResponse{MemberID: tc.member}, tc.group, ""))
			if s.ErrorCode != tc.want.Code && tc.member != "" || s.MemberAssignment == nil || s.ErrorCode == 0 {
				t.Errorf("%s: sync v%d is %+v", tc.what, min(v, 5), s)
			}
			h := kmsg.NewPtrHeartbeatRequest()
			h.Group, h.MemberID = tc.group, tc.member
			if got := ask[*kmsg.HeartbeatResponse](c, min(v, 4), h); got.ErrorCode != tc.want.Code {
				t.Errorf("%s: heartbeat v%d is error %d", tc.what, min(v, 4), got.ErrorCode)
			}
			l := kmsg.NewPtrLeaveGroupRequest()
			l.Group, l.MemberID = tc.group, tc.member
			l.Members = []kmsg.LeaveGroupRequestMember{{MemberID: tc.member}}
			left := ask[*kmsg.LeaveGroupResponse](c, min(v, 5), l)
			got := left.ErrorCode
			if v >= 3 && tc.group != "" {
				got = left.Members[0].ErrorCode
			}
			if got != tc.want.Code {
				t.Errorf("%s: leave v%d is %+v", tc.what, min(v, 5), left)
			}
		}
	}
	early := joinRequest("early", "")
	early.SessionTimeoutMillis = 5999
	if got := ask[*kmsg.JoinGroupResponse](c, 3, early).ErrorCode; got != kerr.InvalidSessionTimeout.Code {
		t.Errorf("session timeout below the limit: error %d", got)
	}
}

// TestNoCoordinatorYet: before __consumer_offsets is there, clients are sent to FindCoordinator, which makes it.
func TestNoCoordinatorYet(t *testing.T) {
	b := startBroker(t, t.TempDir(), "offsets.topic.num.partitions", "3")
	c := b.dial()
	if got := ask[*kmsg.JoinGroupResponse](c, 3, joinRequest("g", "")).ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("join: error %d", got)
	}
	if got := ask[*kmsg.ListGroupsResponse](c, 4, kmsg.NewPtrListGroupsRequest()); got.ErrorCode != 0 || len(got.Groups) != 0 {
		t.Errorf("list: %+v", got)
	}
	for v := int16(0); v <= 6; v++ {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorKey, r.CoordinatorKeys = "g", []string{"g", "h"}
		resp := ask[*kmsg.FindCoordinatorResponse](c, v, r)
		if v < 4 {
			resp.Coordinators = []kmsg.FindCoordinatorResponseCoordinator{{NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port, ErrorCode: resp.ErrorCode}}
		} else if len(resp.Coordinators) != 2 || resp.Coordinators[1].Key != "h" {
			t.Fatalf("v%d: %+v", v, resp)
		}
		if got := resp.Coordinators[0]; got.ErrorCode != 0 || got.NodeID != b.nodeID || fmt.Sprintf("%s:%d", got.Host, got.Port) != b.Addr() {
			t.Errorf("v%d: %+v, want %s", v, got, b.Addr())
		}
		if v == 0 {
			continue
		}
		r.CoordinatorType = 2
		resp = ask[*kmsg.FindCoordinatorResponse](c, v, r)
		if v >= 4 {
			resp.ErrorCode, resp.NodeID = resp.Coordinators[0].ErrorCode, resp.Coordinators[0].NodeID
		}
		if resp.ErrorCode != kerr.InvalidRequest.Code || resp.NodeID != -1 {
			t.Errorf("v%d of a share group: %+v", v, resp)
		}
	}
	topic := b.topics.name(offsetsTopic)
	if topic == nil || !topic.internal || len(*topic.partitions.Load()) != 3 || !topic.config.Load().CleanupPolicy.Compact {
		t.Errorf("topic is %+v", topic)
	}
}

// TestParkedRequests: a join waits for the others, a sync for the leader; what a lost connection waited for is given up.
func TestParkedRequests(t *testing.T) {
	b, one := groupBroker(t, t.TempDir())
	two, ghost := b.dial(), b.dial()
	first, second, lost := joinRequest("g", ""), joinRequest("g", ""), joinRequest("g", "")
	for _, r := range []*kmsg.JoinGroupRequest{first, second, lost} {
		r.SetVersion(2)
	}
	first.MemberID = one.join(2, first).MemberID
	two.send(second)
	waitFor(t, func() bool { return membersOf(b, "g") == 2 })
	ghost.send(lost)
	waitFor(t, func() bool { return membersOf(b, "g") == 3 })
	ghost.conn.Close()
	waitFor(t, func() bool { return membersOf(b, "g") == 2 })
	one.send(first) // both have waited for it
	a, z := one.receive(first, one.next).(*kmsg.JoinGroupResponse), two.receive(second, two.next).(*kmsg.JoinGroupResponse)
	if a.Generation != z.Generation || a.LeaderID != a.MemberID || z.LeaderID != a.MemberID || len(a.Members) != 2 || len(z.Members) != 0 {
		t.Fatalf("joined: %+v and %+v", a, z)
	}
	follow := syncRequest(z, "g", "")
	two.send(follow)
	if s := ask[*kmsg.SyncGroupResponse](one, 0, syncRequest(a, "g", "part")); s.ErrorCode != 0 {
		t.Fatalf("leader's sync: %+v", s)
	}
	if s := two.receive(follow, two.next).(*kmsg.SyncGroupResponse); s.ErrorCode != 0 || string(s.MemberAssignment) != "part" {
		t.Fatalf("follower's sync: %+v", s)
	}
}

// membersOf counts the members of a group.
func membersOf(b *testBroker, id string) int {
	return len(b.describeGroup(id, 0).Members)
}

// waitFor polls until something that another goroutine does has happened.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.After(patience); !ok(); {
		select {
		case <-deadline:
			t.Fatal("it does not happen")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestSessionTimeout: the timer of a silent member runs by itself.
func TestSessionTimeout(t *testing.T) {
	b, c := groupBroker(t, t.TempDir(), "group.min.session.timeout.ms", "1")
	r := joinRequest("g", "")
	r.SessionTimeoutMillis = 50
	c.join(3, r)
	waitFor(t, func() bool { return b.describeGroup("g", 0).State == "Empty" })
}

// TestPartitionForKey: as Java hashes strings.
func TestPartitionForKey(t *testing.T) {
	for _, tc := range []struct {
		key  string
		want int
	}{
		{"", 0}, {"a", 97 % 50}, {"kg", 20}, {"my-group", 12}, {"polygenelubricants", 0}, // whose hash is the smallest int
		{"grüße", partitionByUnits('g', 'r', 0xfc, 0xdf, 'e')}, {"😀", partitionByUnits(0xd83d, 0xde00)},
	} {
		if got := partitionForKey(tc.key, 50); got != tc.want {
			t.Errorf("%q is in partition %d, want %d", tc.key, got, tc.want)
		}
	}
}

func partitionByUnits(units ...int32) int {
	h := int32(0)
	for _, u := range units {
		h = 31*h + u
	}
	return int(max(h, -h)) % 50
}

// TestOffsetsTopicDeleted: the groups are gone with it, parked members are told, and it comes again.
func TestOffsetsTopicDeleted(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	j := c.member("g")
	c.commitOne("g", "t", 5)
	again, parked := b.dial(), joinRequest("g", "")
	parked.SetVersion(3)
	again.send(parked)
	waitFor(t, func() bool { return membersOf(b, "g") == 2 })
	if err := b.deleteTopics(t.Context(), []*topic{b.topics.name(offsetsTopic)}); err != nil {
		t.Fatal(err)
	}
	if got := again.receive(parked, again.next).(*kmsg.JoinGroupResponse).ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("parked join: error %d", got)
	}
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.Generation, h.MemberID = "g", j.Generation, j.MemberID
	if got := ask[*kmsg.HeartbeatResponse](c, 4, h).ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("heartbeat: error %d", got)
	}
	c.findCoordinator("g")
	if got := ask[*kmsg.HeartbeatResponse](c, 4, h).ErrorCode; got != kerr.UnknownMemberID.Code {
		t.Errorf("heartbeat: error %d", got)
	}
	if got := c.fetchOne("g", "t"); got.Offset != -1 || got.ErrorCode != 0 {
		t.Errorf("offset: %+v", got)
	}
	if got := c.produce("t", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != 0 {
		t.Errorf("produce: error %d", got.ErrorCode)
	}
}
