package raw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	groupSession     = 5 * time.Minute // members live through a workload without heartbeats
	coordinatorLimit = 60 * time.Second
)

// Member is a member of a stable group.
type Member struct {
	Group      string
	ID         string
	Generation int32
}

// FindCoordinator waits until there is a coordinator for the group and it is ready: Kafka makes the topic first and then loads it.
func (c *Conn) FindCoordinator(group string) error {
	for deadline := time.Now().Add(coordinatorLimit); ; time.Sleep(20 * time.Millisecond) {
		code, err := c.coordinatorCode(group)
		if err != nil || code == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("coordinator of %s: error code %d", group, code)
		}
	}
}

// coordinatorCode is 0 when the group is served.
func (c *Conn) coordinatorCode(group string) (int16, error) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.SetVersion(2)
	find.CoordinatorKey = group
	resp, err := c.Do(find)
	if err != nil {
		return 0, err
	}
	if code := resp.(*kmsg.FindCoordinatorResponse).ErrorCode; code != 0 {
		return code, nil
	}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.SetVersion(5)
	fetch.Group = group
	if resp, err = c.Do(fetch); err != nil {
		return 0, err
	}
	return resp.(*kmsg.OffsetFetchResponse).ErrorCode, nil
}

// JoinTogether makes a group of as many members as there are connections. They are sent off before any is answered, so that the initial delay
// that brokers have brings them into one generation. The connections may be closed afterwards.
func JoinTogether(group, topic string, conns []*Conn) ([]Member, error) {
	join := kmsg.NewPtrJoinGroupRequest()
	join.SetVersion(3) // the newest that needs no second request for a member id
	join.Group, join.ProtocolType = group, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(groupSession.Milliseconds()), 60_000
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{topic}
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: meta.AppendTo(nil)}}
	for _, c := range conns {
		if err := c.Send(join); err != nil {
			return nil, err
		}
	}
	members := make([]Member, len(conns))
	leader := -1
	for i, c := range conns {
		resp, err := c.Receive(join)
		if err != nil {
			return nil, err
		}
		j := resp.(*kmsg.JoinGroupResponse)
		if j.ErrorCode != 0 {
			return nil, fmt.Errorf("JoinGroup %s: error code %d", group, j.ErrorCode)
		}
		members[i] = Member{group, j.MemberID, j.Generation}
		if len(j.Members) == len(conns) {
			leader = i
		}
	}
	if leader < 0 {
		return nil, errors.New("JoinGroup " + group + ": its members are not in one generation")
	}
	return members, assign(members, conns, leader)
}

// assign gives every member an assignment and waits until each has it.
func assign(members []Member, conns []*Conn, leader int) error {
	requests := make([]*kmsg.SyncGroupRequest, len(conns))
	for i, m := range members {
		r := kmsg.NewPtrSyncGroupRequest()
		r.SetVersion(2)
		r.Group, r.MemberID, r.Generation = m.Group, m.ID, m.Generation
		if i == leader {
			for _, to := range members {
				r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: to.ID, MemberAssignment: make([]byte, 32)})
			}
		}
		requests[i] = r
		if err := conns[i].Send(r); err != nil {
			return err
		}
	}
	for i, r := range requests {
		resp, err := conns[i].Receive(r)
		if err != nil {
			return err
		}
		if code := resp.(*kmsg.SyncGroupResponse).ErrorCode; code != 0 {
			return fmt.Errorf("SyncGroup %s: error code %d", r.Group, code)
		}
	}
	return nil
}

// Leave takes members of one group out of it.
func (c *Conn) Leave(members []Member) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.SetVersion(3)
	for _, m := range members {
		req.Group = m.Group
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = m.ID
		req.Members = append(req.Members, one)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.LeaveGroupResponse).ErrorCode; code != 0 {
		return fmt.Errorf("LeaveGroup %s: error code %d", req.Group, code)
	}
	return nil
}

// HeartbeatRequest is one encoded Heartbeat v3.
func HeartbeatRequest(m Member) []byte {
	req := kmsg.NewPtrHeartbeatRequest()
	req.SetVersion(3)
	req.Group, req.MemberID, req.Generation = m.Group, m.ID, m.Generation
	return Encode(req, 1)
}

// CheckHeartbeat checks the answer to a HeartbeatRequest.
func CheckHeartbeat(frame []byte) error {
	if len(frame) != 10 { // correlation id, throttle, error
		return fmt.Errorf("%w to Heartbeat: %d bytes", ErrFrame, len(frame))
	}
	if code := int16(binary.BigEndian.Uint16(frame[8:])); code != 0 {
		return fmt.Errorf("Heartbeat: error code %d", code)
	}
	return nil
}

// CommitRequest is one encoded OffsetCommit v7 of one partition by a member.
func CommitRequest(m Member, topic string, partition int32, offset int64) []byte {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.SetVersion(7)
	req.Group, req.MemberID, req.Generation = m.Group, m.ID, m.Generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch = partition, offset, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return Encode(req, 1)
}

// CheckCommit checks the answer to a CommitRequest.
func CheckCommit(frame []byte) error {
	// correlation id, throttle, one topic with its name, one partition, its number and error
	if len(frame) < 14 {
		return fmt.Errorf("%w to OffsetCommit: %d bytes", ErrFrame, len(frame))
	}
	at := 14 + int(binary.BigEndian.Uint16(frame[12:]))
	if len(frame) != at+4+4+2 {
		return fmt.Errorf("%w to OffsetCommit: %d bytes", ErrFrame, len(frame))
	}
	if code := int16(binary.BigEndian.Uint16(frame[at+8:])); code != 0 {
		return fmt.Errorf("OffsetCommit: error code %d", code)
	}
	return nil
}
