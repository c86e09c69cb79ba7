package group

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFormats: the bytes of records are those that Apache Kafka writes (fields by hand from its message definitions).
func TestFormats(t *testing.T) {
	for _, tc := range []struct {
		what string
		got  []byte
		want string
	}{
		{"offset key v1", offsetKey("g", Partition{"t", 2}), "0001" + "000167" + "000174" + "00000002"},
		{"group key v2", groupKey("g"), "0002" + "000167"},
		{"offset v3", offsetValue(&Offset{Offset: 5, LeaderEpoch: 7, Metadata: "m", Committed: 9, Expires: -1}),
			"0003" + "0000000000000005" + "00000007" + "00016d" + "0000000000000009"},
		{"offset v1", offsetValue(&Offset{Offset: 5, LeaderEpoch: 7, Metadata: "", Committed: 9, Expires: 10}),
			"0001" + "0000000000000005" + "0000" + "0000000000000009" + "000000000000000a"},
	} {
		if got := hex.EncodeToString(tc.got); got != tc.want {
			t.Errorf("%s is %s, want %s", tc.what, got, tc.want)
		}
	}
}

func TestGroupFormat(t *testing.T) {
	conf := Config{MaxSize: 9, MaxSession: time.Hour}
	g := New("g", &conf)
	g.state, g.since, g.generation, g.protocolType, g.protocol, g.leader = Stable, 6, 3, "consumer", "r", "m"
	g.order = []*member{{id: "m", instance: "i", clientID: "c", host: "/h", session: 2 * time.Second, rebalance: time.Second, protocols: []protocol{{"r", []byte{8}}}}}
	want := "0003" + "0008" + hex.EncodeToString([]byte("consumer")) + "00000003" + "000172" + "00016d" + "0000000000000006" + "00000001" +
		"00016d" + "000169" + "000163" + "00022f68" + "000003e8" + "000007d0" + "0000000108" + "0000000109"
	if got := hex.EncodeToString(g.value(map[string][]byte{"m": {9}})); got != want {
		t.Errorf("group v3 is\n%s, want\n%s", got, want)
	}
	g.order, g.state = nil, Empty
	want = "0003" + "0008" + hex.EncodeToString([]byte("consumer")) + "00000003" + "ffff" + "ffff" + "0000000000000006" + "00000000"
	if got := hex.EncodeToString(g.value(nil)); got != want {
		t.Errorf("empty group is\n%s, want\n%s", got, want)
	}
}

// TestOldFormats: every version of values is read.
func TestOldFormats(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		v := kmsg.OffsetCommitValue{Version: version, Offset: 5, LeaderEpoch: 7, Metadata: "m", CommitTimestamp: 9, ExpireTimestamp: 10, TopicID: [16]byte{1}}
		o, err := parseOffset(v.AppendTo(nil))
		want := Offset{Offset: 5, LeaderEpoch: -1, Metadata: "m", Committed: 9, Expires: -1}
		if version >= 3 {
			want.LeaderEpoch = 7
		}
		if version == 1 {
			want.Expires = 10
		}
		if err != nil || o != want {
			t.Errorf("offset v%d reads as %+v, want %+v: %v", version, o, want, err)
		}
	}
	for version := int16(0); version <= 4; version++ {
		g := loadedGroup(t, groupValueOf(version))
		if g.state != Stable || g.generation != 4 || g.leader != "m2" || g.protocol != "r" || len(g.members) != 2 {
			t.Errorf("group v%d reads as %v generation %d leader %s", version, g.state, g.generation, g.leader)
		}
		rebalance, instance := time.Second, "i"
		if version < 1 {
			rebalance = 2 * time.Second
		}
		if version < 3 {
			instance = ""
		}
		if m := g.members["m1"]; m.rebalance != rebalance || m.instance != instance || m.session != 2*time.Second || string(m.assignment) != "a" {
			t.Errorf("group v%d has member %+v", version, m)
		}
	}
}

func groupValueOf(version int16) []byte {
	v := kmsg.NewGroupMetadataValue()
	protocol, leader, instance := "r", "m2", "i"
	v.Version, v.ProtocolType, v.Generation, v.Protocol, v.Leader, v.CurrentStateTimestamp = version, "consumer", 4, &protocol, &leader, 77
	for _, id := range []string{"m1", "m2"} {
		m := kmsg.NewGroupMetadataValueMember()
		m.MemberID, m.RebalanceTimeoutMillis, m.SessionTimeoutMillis, m.Subscription, m.Assignment = id, 1000, 2000, []byte("s"), []byte("a")
		if id == "m1" {
			m.InstanceID = &instance
		}
		v.Members = append(v.Members, m)
	}
	return v.AppendTo(nil)
}

func loadedGroup(t *testing.T, value []byte) *Group {
	t.Helper()
	conf := Config{MaxSize: 9, MinSession: time.Second, MaxSession: time.Hour}
	g := New("g", &conf)
	if err := g.Replay(Key{Kind: GroupKind, Group: "g"}, value); err != nil {
		t.Fatal(err)
	}
	g.Loaded(Instant{})
	return g
}

func TestBadRecords(t *testing.T) {
	for _, key := range [][]byte{nil, {0}, {0, 1}, {0, 2, 0}, {0, 1, 0, 1, 'g', 0, 9}} {
		if _, err := ParseKey(key); !errors.Is(err, ErrFormat) {
			t.Errorf("key %x: %v", key, err)
		}
	}
	for _, id := range []byte{3, 8, 17, 200} {
		if k, err := ParseKey([]byte{0, id, 1, 2, 3}); err != nil || k.Kind != OtherKind {
			t.Errorf("key of schema %d: %v, %v", id, k, err)
		}
	}
	conf := Config{MaxSize: 9}
	g := New("g", &conf)
	for _, kind := range []Kind{OffsetKind, GroupKind} {
		for _, value := range [][]byte{{}, {0}, {0, 3}, {0, 9, 1, 2}, {0xff, 0xff}} {
			if err := g.Replay(Key{Kind: kind, Group: "g"}, value); !errors.Is(err, ErrFormat) {
				t.Errorf("kind %d value %x: %v", kind, value, err)
			}
		}
	}
	if g.Exists() {
		t.Error("bad records make a group")
	}
}

// FuzzReplay: records come from files that anything may have written.
func FuzzReplay(f *testing.F) {
	f.Add(offsetKey("g", Partition{"t", 2}), offsetValue(&Offset{Offset: 5, Metadata: "m", Expires: -1}))
	f.Add(groupKey("g"), groupValueOf(3))
	f.Add(groupKey("g"), groupValueOf(4))
	f.Add(groupKey("g"), groupValueOf(0))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		k, err := ParseKey(key)
		if err != nil || k.Kind == OtherKind {
			return
		}
		conf := Config{MaxSize: 9, MinSession: time.Second, MaxSession: time.Hour}
		g := New(k.Group, &conf)
		if g.Replay(k, value) != nil {
			return
		}
		g.Loaded(Instant{})
		again := New(k.Group, &conf)
		for r := range g.Snapshot {
			k, err := ParseKey(r.Key)
			if err == nil {
				err = again.Replay(k, r.Value)
			}
			if err != nil {
				t.Fatalf("what was read is not read again: %v", err)
			}
		}
		again.Loaded(Instant{})
		if again.state != g.state || again.generation != g.generation || again.stored != g.stored || !bytes.Equal(again.meta, g.meta) {
			t.Fatalf("%v is %v after a snapshot", g.state, again.state)
		}
		for at := time.Duration(0); g.Next() != never && at < 1<<62; at += time.Hour * 24 * 365 {
			g.Tick(Instant{Timer: at})
		}
	})
}

// FuzzSubscription: metadata comes from clients.
func FuzzSubscription(f *testing.F) {
	f.Add(subscription("t+u"))
	f.Add([]byte{0, 3, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics := map[string]struct{}{}
		if !addTopics(topics, b) {
			return
		}
		for topic := range topics {
			if !bytes.Contains(b, []byte(topic)) {
				t.Fatalf("topic %q is not in %x", topic, b)
			}
		}
	})
}

// TestManyProtocols: a client that names very many protocols, some twice, costs no more than reading them.
func TestManyProtocols(t *testing.T) {
	conf := Config{MinSession: time.Second, MaxSession: time.Hour, MaxSize: 9}
	g := New("g", &conf)
	r := kmsg.NewPtrJoinGroupRequest()
	r.ProtocolType, r.SessionTimeoutMillis = "consumer", 10_000
	for i := range 200_000 {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: fmt.Sprint(i % 150_000)})
	}
	begin := time.Now()
	g.Join(Instant{}, "one", Caller{Unique: "1"}, r)
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "none"}, {Name: "7"}, {Name: "7"}, {Name: "3"}}
	g.Join(Instant{}, "two", Caller{Unique: "2"}, r)
	for now := g.Next(); g.State() == PreparingRebalance; now = g.Next() {
		g.Tick(Instant{Timer: now})
	}
	if g.protocol != "3" || len(g.members) != 2 { // the first of the first that both speak
		t.Errorf("protocol is %q with %d members", g.protocol, len(g.members))
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestStorm: 200 members come at once, and again when one is lost; the answers are one for each, the work is done in time.
func TestStorm(t *testing.T) {
	const members = 200
	conf := Config{MinSession: time.Second, MaxSession: time.Hour, MaxSize: members, InitialDelay: 3 * time.Second}
	g := New("g", &conf)
	now := Instant{}
	answered := 0
	var generation int32
	take := func(e Effects) {
		for _, r := range e.Replies {
			if j, ok := r.Response.(*kmsg.JoinGroupResponse); ok && j.ErrorCode == 0 {
				answered++
				generation = j.Generation
			}
		}
		for _, w := range e.Writes {
			g.Stored(now, w.Seq, nil)
		}
	}
	join := func(i int, id string) {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Version, r.MemberID, r.ProtocolType, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 3, id, "consumer", 10_000, 60_000
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription("t")}}
		take(g.Join(now, fmt.Sprint(generation, i), Caller{ClientID: "c", Unique: fmt.Sprint(i)}, r))
	}
	for i := range members {
		join(i, "")
	}
	for now.Timer = g.Next(); answered == 0; now.Timer = g.Next() {
		take(g.Tick(now))
	}
	if answered != members || generation != 1 {
		t.Fatalf("%d of %d were answered, generation %d", answered, members, generation)
	}
	s := kmsg.NewPtrSyncGroupRequest()
	s.MemberID, s.Generation = g.leader, 1
	take(g.Sync(now, "leader", s))
	l := kmsg.NewPtrLeaveGroupRequest()
	l.MemberID = "c-7"
	take(g.Leave(now, "leaves", l))
	answered = 0
	for i := range members {
		if i != 7 {
			join(i, fmt.Sprint("c-", i))
		}
	}
	if answered != members-1 || generation != 2 || g.State() != CompletingRebalance {
		t.Errorf("%d of %d were answered, generation %d, %v", answered, members-1, generation, g.State())
	}
}

// TestTwoFailedWrites: when a write fails and the one after it too, the group's newest record is the one before both.
func TestTwoFailedWrites(t *testing.T) {
	p := newPlayer(t)
	for _, line := range []string{"hold", "join A v=3", "sync A id=c-A gen=1 assign=c-A:x", "leave A ids=c-A", "failed"} {
		p.play(strings.Fields(line))
	}
	if len(p.log) > 0 {
		t.Fatal("something is stored: this test proves nothing")
	}
	for r := range p.g.Snapshot {
		t.Errorf("a compaction would write %s", recordText(t, r))
	}
}
