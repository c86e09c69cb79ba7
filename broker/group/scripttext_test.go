package group

import (
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

func (p *player) joinRequest(a args) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version = int16(a.number(p.t, "v", 9))
	r.MemberID, r.InstanceID = a["id"], a.pointer("instance")
	r.SessionTimeoutMillis = int32(a.duration(p.t, "session", 10*time.Second).Milliseconds())
	r.RebalanceTimeoutMillis = int32(a.duration(p.t, "rebalance", time.Minute).Milliseconds())
	r.ProtocolType = "consumer"
	if s, ok := a["type"]; ok {
		r.ProtocolType = s
	}
	protocols, ok := a["protocols"]
	if !ok {
		protocols = "range"
	}
	for _, name := range strings.Split(protocols, ",") {
		if name == "" {
			continue
		}
		name, topics, _ := strings.Cut(name, ":")
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscription(topics)})
	}
	return r
}

// subscription is what a consumer sends for topics with + between them.
func subscription(topics string) []byte {
	if topics == "" {
		return []byte{}
	}
	names := strings.Split(topics, "+")
	b := kbin.AppendInt16(nil, 0)
	b = kbin.AppendInt32(b, int32(len(names)))
	for _, n := range names {
		b = kbin.AppendString(b, n)
	}
	return kbin.AppendInt32(b, -1)
}

func (p *player) syncRequest(a args) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version = int16(a.number(p.t, "v", 4))
	r.MemberID, r.InstanceID, r.Generation = a["id"], a.pointer("instance"), int32(a.number(p.t, "gen", 0))
	r.ProtocolType, r.Protocol = a.pointer("type"), a.pointer("protocol")
	for _, one := range strings.Split(a["assign"], ",") {
		if id, what, ok := strings.Cut(one, ":"); ok {
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(what)})
		}
	}
	return r
}

func (p *player) leaveRequest(a args) *kmsg.LeaveGroupRequest {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version = int16(a.number(p.t, "v", 5))
	if r.Version < leavesMany {
		r.MemberID = a["id"]
		return r
	}
	for _, one := range strings.Split(a["ids"], ",") {
		m := kmsg.NewLeaveGroupRequestMember()
		id, instance, ok := strings.Cut(one, "@")
		if m.MemberID = id; ok {
			m.InstanceID = &instance
		}
		r.Members = append(r.Members, m)
	}
	return r
}

func (p *player) commit(a args) *Commit {
	c := &Commit{MemberID: a["id"], InstanceID: a.pointer("instance"), Generation: int32(a.number(p.t, "gen", -1)), Version: int16(a.number(p.t, "v", 8))}
	for _, one := range strings.Split(a["offsets"], ",") {
		name, at, ok := strings.Cut(one, "@")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		o := Offset{Offset: n, LeaderEpoch: int32(a.number(p.t, "epoch", -1)), Metadata: a["metadata"], Committed: p.now.Wall, Expires: -1}
		if _, ok := a["keep"]; ok {
			o.Expires = p.now.Wall + a.duration(p.t, "keep", 0).Milliseconds()
		}
		c.Offsets = append(c.Offsets, PartitionOffset{partitionOf(p.t, name), o})
	}
	return c
}

func partitionOf(t *testing.T, s string) Partition {
	topic, number, _ := strings.Cut(s, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return Partition{topic, int32(n)}
}

func errorName(code int16) string {
	if code == 0 {
		return "NONE"
	}
	return kerr.ErrorForCode(code).(*kerr.Error).Message
}

func answerText(r Reply) string {
	switch a := r.Response.(type) {
	case *kmsg.JoinGroupResponse:
		return joinText(a)
	case *kmsg.SyncGroupResponse:
		if a.ErrorCode != 0 {
			return errorName(a.ErrorCode)
		}
		return fmt.Sprintf("NONE type=%s protocol=%s assignment=%q", *a.ProtocolType, *a.Protocol, a.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return errorName(a.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		out := errorName(a.ErrorCode)
		for _, m := range a.Members {
			out += fmt.Sprintf(" %s%s=%s", m.MemberID, instanceText(m.InstanceID), errorName(m.ErrorCode))
		}
		return out
	}
	return errorName(code(r.Err))
}

func joinText(a *kmsg.JoinGroupResponse) string {
	if a.ErrorCode != 0 {
		return fmt.Sprintf("%s id=%q", errorName(a.ErrorCode), a.MemberID)
	}
	out := fmt.Sprintf("NONE id=%s generation=%d protocol=%s leader=%s", a.MemberID, a.Generation, *a.Protocol, a.LeaderID)
	if a.SkipAssignment {
		out += " skip"
	}
	if len(a.Members) > 0 {
		out += " members="
		for i, m := range a.Members {
			if i > 0 {
				out += ","
			}
			out += m.MemberID + instanceText(m.InstanceID)
		}
	}
	return out
}

func instanceText(id *string) string {
	if id == nil {
		return ""
	}
	return "@" + *id
}

func recordText(t *testing.T, r Record) string {
	k, err := ParseKey(r.Key)
	if err != nil {
		t.Fatal(err)
	}
	name := "group"
	if k.Kind == OffsetKind {
		name = fmt.Sprintf("offset %s/%d", k.Partition.Topic, k.Partition.Number)
	}
	if r.Value == nil {
		return name + " tombstone"
	}
	if k.Kind == OffsetKind {
		o, err := parseOffset(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		if o.Expires >= 0 {
			name += fmt.Sprintf(" expires=%d", o.Expires)
		}
		return fmt.Sprintf("%s=%d", name, o.Offset)
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(r.Value); err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprintf("%s generation=%d type=%q", name, v.Generation, v.ProtocolType)
	for _, m := range v.Members {
		out += fmt.Sprintf(" %s%s:%q", m.MemberID, instanceText(m.InstanceID), m.Assignment)
	}
	return out
}
