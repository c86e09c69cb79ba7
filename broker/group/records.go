package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions that are written. Readers outside choke on version 4 of offsets, which has the topic's id.
const (
	offsetKeyVersion     = 1
	groupKeyVersion      = 2
	offsetVersion        = 3
	expiringVersion      = 1
	groupVersion         = 3
	newestReadable       = 4
	newestReadableOfKeys = groupKeyVersion
)

// ErrFormat is a record of __consumer_offsets that does not parse.
var ErrFormat = errors.New("record of __consumer_offsets is not valid")

// Kind is what a record of __consumer_offsets is about.
type Kind int8

// Kinds of records.
const (
	// OtherKind are the records of other group types. They are left alone.
	OtherKind Kind = iota
	OffsetKind
	GroupKind
)

// Key is a parsed key of __consumer_offsets.
type Key struct {
	Kind      Kind
	Group     string
	Partition Partition // of OffsetKind
}

// ParseKey reads a record's key. Nothing of b is kept.
func ParseKey(b []byte) (Key, error) {
	if len(b) < 2 {
		return Key{}, fmt.Errorf("%w: key of %d bytes", ErrFormat, len(b))
	}
	version := int16(binary.BigEndian.Uint16(b))
	switch {
	case version < 0 || version > newestReadableOfKeys:
		return Key{Kind: OtherKind}, nil
	case version == groupKeyVersion:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(b); err != nil {
			return Key{}, fmt.Errorf("%w: group key: %w", ErrFormat, err)
		}
		return Key{Kind: GroupKind, Group: k.Group}, nil
	}
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(b); err != nil {
		return Key{}, fmt.Errorf("%w: offset key: %w", ErrFormat, err)
	}
	return Key{Kind: OffsetKind, Group: k.Group, Partition: Partition{k.Topic, k.Partition}}, nil
}

func offsetKey(group string, p Partition) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: p.Topic, Partition: p.Number}
	return k.AppendTo(make([]byte, 0, 10+len(group)+len(p.Topic)))
}

func groupKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: group}
	return k.AppendTo(nil)
}

func offsetValue(o *Offset) []byte {
	v := kmsg.OffsetCommitValue{Version: offsetVersion, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata,
		CommitTimestamp: o.Committed, ExpireTimestamp: o.Expires}
	if o.Expires >= 0 {
		v.Version = expiringVersion
	}
	return v.AppendTo(make([]byte, 0, 32+len(o.Metadata)))
}

func parseOffset(b []byte) (Offset, error) {
	if err := readable(b); err != nil {
		return Offset{}, err
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(b); err != nil {
		return Offset{}, fmt.Errorf("%w: offset: %w", ErrFormat, err)
	}
	o := Offset{Offset: v.Offset, LeaderEpoch: v.LeaderEpoch, Metadata: v.Metadata, Committed: v.CommitTimestamp, Expires: -1}
	if v.Version < 3 {
		o.LeaderEpoch = -1
	}
	if v.Version == expiringVersion {
		o.Expires = v.ExpireTimestamp
	}
	return o, nil
}

// readable checks the version that a value begins with.
func readable(b []byte) error {
	if len(b) < 2 {
		return fmt.Errorf("%w: value of %d bytes", ErrFormat, len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > newestReadable {
		return fmt.Errorf("%w: value version is %d, the newest known is %d", ErrFormat, v, newestReadable)
	}
	return nil
}

// writeGroup stores the group as it is.
func (g *Group) writeGroup(s *step, done func(*step, *kerr.Error)) {
	assignment := make(map[string][]byte, len(g.order))
	for _, m := range g.order {
		assignment[m.id] = m.assignment
	}
	g.writeGroupWith(s, assignment, done)
}

// writeGroupWith stores the group with an assignment that the members do not have yet.
func (g *Group) writeGroupWith(s *step, assignment map[string][]byte, done func(*step, *kerr.Error)) {
	value := g.value(assignment)
	g.meta = value
	g.write(s, []Record{{groupKey(g.id), value}}, func(s *step, err *kerr.Error) {
		switch {
		case err == nil:
			g.metaKept = value
		case len(g.meta) > 0 && &g.meta[0] == &value[0]:
			g.meta = g.metaKept // those before are durable or failed too
		}
		if done != nil {
			done(s, err)
		}
	})
}

// value is the group as a value of __consumer_offsets.
func (g *Group) value(assignment map[string][]byte) []byte {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = groupVersion, g.protocolType, g.generation, g.since
	if len(g.order) > 0 {
		v.Protocol, v.Leader = &g.protocol, &g.leader
	}
	for _, m := range g.order {
		out := kmsg.NewGroupMetadataValueMember()
		out.MemberID, out.InstanceID, out.ClientID, out.ClientHost = m.id, m.instanceID(), m.clientID, m.host
		out.RebalanceTimeoutMillis, out.SessionTimeoutMillis = int32(m.rebalance.Milliseconds()), int32(m.session.Milliseconds())
		out.Subscription, out.Assignment = m.metadata(g.protocol), assignmentOf(assignment, m.id)
		v.Members = append(v.Members, out)
	}
	return v.AppendTo(nil)
}

// Replay takes over a record of the group from the log; a nil value is a tombstone. It is for groups that had no event yet. Nothing of value is kept.
func (g *Group) Replay(k Key, value []byte) error {
	switch {
	case k.Kind == OffsetKind && value == nil:
		g.seq++
		g.bury(k.Partition, g.seq)
		e := g.entry(k.Partition)
		if e.has {
			e.has = false
			g.stored--
		}
		g.settle(k.Partition, e, 0)
	case k.Kind == OffsetKind:
		o, err := parseOffset(value)
		if err != nil {
			return err
		}
		g.seq++
		g.place(k.Partition, o, g.seq)
	case k.Kind == GroupKind:
		return g.replayGroup(value)
	}
	return nil
}

func (g *Group) replayGroup(value []byte) error {
	offsets, stored, txns := g.offsets, g.stored, g.txns
	if value == nil {
		g.reset()
		g.offsets, g.stored, g.txns = offsets, stored, txns
		return nil
	}
	if err := readable(value); err != nil {
		return err
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return fmt.Errorf("%w: group %q: %w", ErrFormat, g.id, err)
	}
	g.reset()
	g.offsets, g.stored, g.txns = offsets, stored, txns
	g.meta = append([]byte{}, value...)
	g.metaKept = g.meta
	g.state, g.generation, g.protocolType, g.since = Empty, v.Generation, v.ProtocolType, v.CurrentStateTimestamp
	for i := range v.Members {
		g.replayMember(&v.Members[i], v.Protocol)
	}
	if len(g.order) > 0 {
		g.state = Stable
		g.leader = g.order[0].id
		if v.Leader != nil && g.members[*v.Leader] != nil {
			g.leader = *v.Leader
		}
		if v.Protocol != nil {
			g.protocol = *v.Protocol
		}
	}
	return nil
}

func (g *Group) replayMember(in *kmsg.GroupMetadataValueMember, name *string) {
	m := &member{
		id: in.MemberID, instance: instanceOf(in.InstanceID), clientID: in.ClientID, host: in.ClientHost,
		session: millis(in.SessionTimeoutMillis), rebalance: millis(in.RebalanceTimeoutMillis),
		assignment: append([]byte{}, in.Assignment...), knowsID: true, deadline: never,
	}
	if m.rebalance < 0 {
		m.rebalance = m.session
	}
	if name != nil {
		m.protocols = []protocol{{*name, append([]byte{}, in.Subscription...)}}
	}
	if g.members[m.id] != nil {
		return
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	if m.instance != "" {
		g.static[m.instance] = m
	}
}

// Loaded ends the replay: the members' sessions begin. A group that nothing is left of does not exist.
func (g *Group) Loaded(at Instant) Effects {
	s := step{Instant: at}
	if g.meta == nil {
		if len(g.offsets) > 0 || len(g.txns) > 0 {
			g.state = Empty
		}
		return s.Effects
	}
	g.learnTopics()
	for _, m := range g.order {
		g.touch(&s, m)
	}
	if len(g.members) > g.conf.MaxSize {
		g.prepareRebalance(&s)
	}
	return s.Effects
}

// Snapshot calls yield with records that give the group as its newest appended records do, until that returns false.
func (g *Group) Snapshot(yield func(Record) bool) {
	if g.deleting {
		return
	}
	if g.meta != nil && !yield(Record{groupKey(g.id), g.meta}) {
		return
	}
	for topic, parts := range g.offsets {
		for n, e := range parts {
			o, ok := e.latest()
			if ok && !yield(Record{offsetKey(g.id, Partition{topic, n}), offsetValue(&o)}) {
				return
			}
		}
	}
}

// latest is the offset as of the newest appended record.
func (e *entry) latest() (Offset, bool) {
	if e.newest != 0 {
		return e.next, !e.gone
	}
	return e.stored, e.has
}

// wallAfter reports if a time in milliseconds since 1970 is more than d ago.
func wallAfter(now, then int64, d time.Duration) bool { return now-then >= d.Milliseconds() }
