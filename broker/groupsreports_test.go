package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What clients in the field did to other brokers.

// TestRetriedJoins: a client of old does not know its member id when its connection ends; what it leaves is gone when it joins again, time after time.
func TestRetriedJoins(t *testing.T) {
	b, _ := groupBroker(t, t.TempDir(), "group.initial.rebalance.delay.ms", "60000")
	for range 20 {
		c := b.dial()
		r := joinRequest("g", "")
		r.SetVersion(2)
		c.send(r)
		waitFor(t, func() bool { return membersOf(b, "g") == 1 })
		c.conn.Close()
		waitFor(t, func() bool { return membersOf(b, "g") == 0 })
	}
}

// TestHalfVanish: of 50 members that join again half vanish in the middle of it; the others get their generation, again and again.
func TestHalfVanish(t *testing.T) {
	const members = 50
	b, _ := groupBroker(t, t.TempDir(), "group.initial.rebalance.delay.ms", "50", "group.min.session.timeout.ms", "100")
	const session = 2 * time.Second
	for range 5 {
		began := time.Now()
		var clients []*client
		var joins []*kmsg.JoinGroupRequest
		for i := range members {
			c, r := b.dial(), joinRequest("g", "")
			r.SetVersion(3)
			if i < members/2 { // these vanish; the others have all the time that a slow machine takes
				r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(session.Milliseconds())
			}
			c.send(r)
			clients, joins = append(clients, c), append(joins, r)
			waitFor(t, func() bool { return membersOf(b, "g") > min(i, members/2) || time.Since(began) > session })
		}
		for _, c := range clients[:members/2] {
			c.conn.Close()
		}
		var generation int32
		for i := members / 2; i < members; i++ {
			j := clients[i].receive(joins[i], clients[i].next).(*kmsg.JoinGroupResponse)
			if j.ErrorCode != 0 {
				t.Fatalf("member %d: error %d", i, j.ErrorCode)
			}
			generation = max(generation, j.Generation)
			joins[i].MemberID = j.MemberID
		}
		// Those that vanished after they were answered are lost with their session; what is left joins again without them.
		for i := members / 2; i < members; i++ {
			clients[i].send(joins[i])
		}
		for i := members / 2; i < members; i++ {
			if j := clients[i].receive(joins[i], clients[i].next).(*kmsg.JoinGroupResponse); j.ErrorCode != 0 || j.Generation < generation {
				t.Fatalf("member %d again: error %d, generation %d", i, j.ErrorCode, j.Generation)
			}
		}
		for i := members / 2; i < members; i++ {
			ask[*kmsg.LeaveGroupResponse](clients[i], 0, leaveRequest("g", joins[i].MemberID))
			clients[i].conn.Close()
		}
		waitFor(t, func() bool { return membersOf(b, "g") == 0 })
	}
}

// TestOffsetsOfARecreatedTopic: version 10 names topics by id, so that what belongs to a topic of before is not taken for one of now.
func TestOffsetsOfARecreatedTopic(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	old := b.topics.name("t").id
	commit := func(id [16]byte) int16 {
		r := commitRequest("g", "t", 0, 5)
		r.Topics[0].TopicID = id
		return ask[*kmsg.OffsetCommitResponse](c, 10, r).Topics[0].Partitions[0].ErrorCode
	}
	fetch := func(id [16]byte) kmsg.OffsetFetchResponseGroupTopicPartition {
		r := fetchOffsetsRequest("g", "t", 0)
		r.Groups[0].Topics[0].TopicID = id
		return ask[*kmsg.OffsetFetchResponse](c, 10, r).Groups[0].Topics[0].Partitions[0]
	}
	if code := commit(old); code != 0 || fetch(old).Offset != 5 {
		t.Fatalf("commit: error %d, then %+v", code, fetch(old))
	}
	if err := b.deleteTopics(t.Context(), []*topic{b.topics.name("t")}); err != nil {
		t.Fatal(err)
	}
	c.createTopic("t")
	if code := commit(old); code != kerr.UnknownTopicID.Code {
		t.Errorf("commit for the old topic: error %d", code)
	}
	if got := fetch(old); got.ErrorCode != kerr.UnknownTopicID.Code || got.Offset != -1 {
		t.Errorf("offset of the old topic: %+v", got)
	}
	waitFor(t, func() bool { return fetch(b.topics.name("t").id).Offset == -1 })
	if got := fetch(b.topics.name("t").id); got.ErrorCode != 0 {
		t.Errorf("offset of the new topic: %+v", got)
	}
}
