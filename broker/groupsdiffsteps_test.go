package broker

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// life takes one group from its first member to its deletion, all at one version or the newest below it.
func (p *groupPlay) life(v int16) {
	id := fmt.Sprint("play-life-", v)
	p.group = id
	j, ok := p.enter(id, v, nil)
	if !ok {
		return
	}
	p.commits(id, v, j, "not synced")
	p.upTo("generation of the future", min(v, 5), syncRequest(&kmsg.JoinGroupResponse{MemberID: j.MemberID, Generation: 9}, id, ""))
	p.upTo("of nobody", min(v, 5), syncRequest(&kmsg.JoinGroupResponse{MemberID: "bogus", Generation: 1}, id, ""))
	if v >= 5 {
		other, s := "other", syncRequest(j, id, "")
		s.Protocol = &other
		p.upTo("other protocol", 5, s)
		s = syncRequest(j, id, "")
		s.Protocol, s.ProtocolType = nil, nil
		p.upTo("no protocol", 5, s)
	}
	p.beats(id, v, j, "not synced")
	p.admin(id, v, "not synced")
	p.upTo("again, not synced", v, joinRequest(id, j.MemberID))
	p.upTo("leader", min(v, 5), syncRequest(j, id, "assigned"))
	p.upTo("leader again", min(v, 5), syncRequest(j, id, ""))
	p.beats(id, v, j, "stable")
	p.commits(id, v, j, "stable")
	p.admin(id, v, "stable")
	p.second(id, v, j)
	p.upTo("several leave", min(v, 5), leaveRequest(id, "bogus", "@bogus", j.MemberID))
	if v < 3 {
		p.upTo("leaves", min(v, 5), leaveRequest(id, j.MemberID))
	}
	p.beats(id, v, j, "empty")
	p.commits(id, v, j, "empty")
	p.upTo("again, empty", v, joinRequest(id, j.MemberID))
	p.deleteOffsets(id, "empty")
	p.admin(id, v, "empty")
	p.admin(id, v, "deleted")
}

// enter takes the first member in.
func (p *groupPlay) enter(id string, v int16, instance *string) (*kmsg.JoinGroupResponse, bool) {
	bad := joinRequest(id, "")
	bad.ProtocolType = ""
	p.step("no protocol type", v, bad)
	r := joinRequest(id, "")
	r.InstanceID = instance
	resp := p.step("first", v, r)
	if resp == nil {
		return nil, false
	}
	j := resp.(*kmsg.JoinGroupResponse)
	if j.Generation < 0 {
		r.MemberID = j.MemberID
		j = p.step("first, with its id", v, r).(*kmsg.JoinGroupResponse)
	}
	if j.ErrorCode != 0 {
		p.t.Fatalf("join v%d: %+v", v, j)
	}
	return j, true
}

// second is another member that comes and leaves; the first joins again twice.
func (p *groupPlay) second(id string, v int16, j *kmsg.JoinGroupResponse) {
	other := joinRequest(id, "")
	other.ProtocolType = "connect"
	p.upTo("other type", v, other)
	other = joinRequest(id, "")
	other.Protocols[0].Name = "unheard of"
	p.upTo("other protocols", v, other)
	c := &client{t: p.t, conn: p.dial().conn, id: "second"}
	r := joinRequest(id, "")
	r.SetVersion(v)
	if v >= 4 {
		c.send(r)
		first := c.receive(r, c.next).(*kmsg.JoinGroupResponse)
		p.note("second", first)
		r.MemberID = first.MemberID
	}
	c.send(r)
	// The join is parked when heartbeats tell the first member of it.
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.Generation, h.MemberID = id, j.Generation, j.MemberID
	waitFor(p.t, func() bool { return ask[*kmsg.HeartbeatResponse](p.c, 0, h).ErrorCode != 0 })
	p.beats(id, v, j, "rebalance")
	p.commits(id, v, j, "rebalance")
	p.admin(id, v, "rebalance")
	p.upTo("rebalance", min(v, 5), syncRequest(j, id, ""))
	again := p.upTo("again, rebalance", v, joinRequest(id, j.MemberID)).(*kmsg.JoinGroupResponse)
	joined := c.receive(r, c.next).(*kmsg.JoinGroupResponse)
	p.remember(joined.MemberID)
	p.note("second, with its id", joined)
	p.upTo("old generation", min(v, 5), syncRequest(j, id, ""))
	*j = *again
	if len(again.Members) == 0 {
		*j = *joined
	}
	p.upTo("of two", min(v, 5), syncRequest(j, id, "both"))
	p.upTo("second leaves", min(v, 5), leaveRequest(id, joined.MemberID))
	*j = *p.upTo("alone again", v, joinRequest(id, again.MemberID)).(*kmsg.JoinGroupResponse)
}

func (p *groupPlay) beats(id string, v int16, j *kmsg.JoinGroupResponse, when string) {
	for _, one := range []struct {
		what, member string
		generation   int32
	}{{"good", j.MemberID, j.Generation}, {"old generation", j.MemberID, j.Generation - 1}, {"of nobody", "bogus", j.Generation}} {
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.Generation, h.MemberID = id, one.generation, one.member
		p.upTo(fmt.Sprintf("%s, %s, %s", id, when, one.what), min(v, 4), h)
	}
}

func (p *groupPlay) commits(id string, v int16, j *kmsg.JoinGroupResponse, when string) {
	for i, one := range []struct {
		what, member string
		generation   int32
	}{{"good", j.MemberID, j.Generation}, {"old generation", j.MemberID, j.Generation - 1}, {"of nobody", "bogus", j.Generation}, {"no member", "", -1}} {
		r := commitRequest(id, "play", 0, int64(10+i))
		note := when
		r.Topics[0].TopicID, r.Topics[0].Partitions[0].Metadata, r.Topics[0].Partitions[0].LeaderEpoch = p.topicID, &note, 3
		missing := kmsg.NewOffsetCommitRequestTopicPartition()
		missing.Partition = 7
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, missing)
		r.Generation, r.MemberID = one.generation, one.member
		p.upTo(fmt.Sprintf("%s, %s, %s", id, when, one.what), v+1, r) // so that 10 versions of JoinGroup go with 1 to 10
	}
	what := fmt.Sprintf("%s, %s", id, when)
	p.upTo(what, v, p.offsetFetch(id))
	p.upTo(what, v+1, p.offsetFetch(id))
	all := p.offsetFetch(id)
	if all.Topics, all.Groups[0].Topics = nil, nil; v >= 1 {
		p.upTo(what+", all", v+1, all)
	}
}

// admin describes, lists and tries to delete the group.
func (p *groupPlay) admin(id string, v int16, when string) {
	what := fmt.Sprintf("%s, %s", id, when)
	d := kmsg.NewPtrDescribeGroupsRequest()
	d.Groups, d.IncludeAuthorizedOperations = []string{id}, v >= 3
	p.upTo(what, min(v, 6), d)
	l := kmsg.NewPtrListGroupsRequest()
	p.upTo(what, min(v, 5), l)
	if v >= 4 {
		l.StatesFilter = []string{"sTable", "PreparingRebalance"}
		p.upTo(what+", by state", min(v, 5), l)
	}
	if when == "stable" {
		p.deleteOffsets(id, when)
	}
	x := kmsg.NewPtrDeleteGroupsRequest()
	x.Groups = []string{id}
	p.upTo(what, min(v, 3), x)
}

func (p *groupPlay) deleteOffsets(id, when string) {
	o := kmsg.NewPtrOffsetDeleteRequest()
	o.Group = id
	for _, topic := range []string{"play", "nowhere"} {
		o.Topics = append(o.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 1}}})
	}
	p.upTo(fmt.Sprintf("%s, %s", id, when), 0, o)
}

// static replaces a static member and tries what the old one may still do.
func (p *groupPlay) static(v int16) {
	id, instance := fmt.Sprint("play-static-", v), "i"
	p.group = id
	j, ok := p.enter(id, v, &instance)
	if !ok {
		return
	}
	s := syncRequest(j, id, "mine")
	s.InstanceID = &instance
	p.upTo("static", min(v, 5), s)
	r := joinRequest(id, "")
	r.InstanceID = &instance
	again := p.upTo("static again", v, r).(*kmsg.JoinGroupResponse)
	for _, one := range []struct{ what, member, instance string }{{"new", again.MemberID, "i"}, {"old", j.MemberID, "i"}, {"other", again.MemberID, "other"}} {
		what := fmt.Sprintf("%s, %s id", id, one.what)
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.Generation, h.MemberID, h.InstanceID = id, j.Generation, one.member, &one.instance
		p.upTo(what, min(v, 4), h)
		s := syncRequest(&kmsg.JoinGroupResponse{MemberID: one.member, Generation: j.Generation}, id, "")
		s.InstanceID = &one.instance
		p.upTo(what, min(v, 5), s)
		c := commitRequest(id, "play", 0, 5)
		c.Topics[0].TopicID, c.Generation, c.MemberID, c.InstanceID = p.topicID, j.Generation, one.member, &one.instance
		p.upTo(what, max(7, v+1), c)
		if one.what == "new" {
			continue
		}
		r := joinRequest(id, one.member)
		r.InstanceID = &one.instance
		p.upTo(what, v, r)
		l := leaveRequest(id, one.member)
		l.Members[0].InstanceID = &one.instance
		p.upTo(what, min(v, 5), l)
	}
	p.admin(id, v, "replaced")
	p.upTo(id+", removed by an admin", min(v, 5), leaveRequest(id, "@i", "@i"))
	p.admin(id, v, "empty")
}

// offsetsOnly is a group that only commits.
func (p *groupPlay) offsetsOnly() {
	for v := int16(0); v <= 10; v++ {
		id := fmt.Sprint("play-simple-", v)
		p.group = id
		r := commitRequest(id, "play", 1, int64(v))
		r.Topics[0].TopicID = p.topicID
		p.step("simple", v, r)
		p.step(id, v, p.offsetFetch(id))
		p.admin(id, min(v, 6), "simple")
		bad := commitRequest(id, "nowhere", 1, 1)
		bad.Topics[0].TopicID = [16]byte{1}
		p.step("simple, no such topic", v, bad)
	}
}
