package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitRequest commits one offset as a consumer without membership.
func commitRequest(id, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group = id
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// commitOne commits for partition 0; in a group with members it must be the one that the caller has.
func (c *client) commitOne(id, topic string, offset int64) int16 {
	c.t.Helper()
	resp := ask[*kmsg.OffsetCommitResponse](c, 8, commitRequest(id, topic, 0, offset))
	return resp.Topics[0].Partitions[0].ErrorCode
}

func fetchOffsetsRequest(id, topic string, partitions ...int32) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Group = id
	r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: partitions}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = id
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: partitions}}
	r.Groups = append(r.Groups, g)
	return r
}

// fetchOne reads the committed offset of partition 0.
func (c *client) fetchOne(id, topic string) kmsg.OffsetFetchResponseTopicPartition {
	c.t.Helper()
	// Version 1 has the coordinator's errors where the offset would be.
	return ask[*kmsg.OffsetFetchResponse](c, 1, fetchOffsetsRequest(id, topic, 0)).Topics[0].Partitions[0]
}

// flat brings answers of all versions into one form: "name/partition=offset epoch metadata error".
func flat(r *kmsg.OffsetFetchResponse, nameOf func([16]byte) string) []string {
	var out []string
	line := func(topic string, p kmsg.OffsetFetchResponseTopicPartition) {
		metadata := "null"
		if p.Metadata != nil {
			metadata = fmt.Sprintf("%q", *p.Metadata)
		}
		out = append(out, fmt.Sprintf("%s/%d=%d %d %s %d", topic, p.Partition, p.Offset, p.LeaderEpoch, metadata, p.ErrorCode))
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			line(t.Topic, p)
		}
	}
	for _, g := range r.Groups {
		for _, t := range g.Topics {
			name := t.Topic
			if r.Version >= 10 {
				name = nameOf(t.TopicID)
			}
			for _, p := range t.Partitions {
				line(name, kmsg.OffsetFetchResponseTopicPartition{Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode})
			}
		}
	}
	return out
}

// TestOffsetVersions commits and fetches at every version, all in one store.
func TestOffsetVersions(t *testing.T) {
	b, c := groupBroker(t, t.TempDir(), "num.partitions", "3")
	c.createTopic("t")
	id := b.topics.name("t").id
	nameOf := func(id [16]byte) string { return b.topics.id(id).name }
	for v := int16(0); v <= 10; v++ {
		r := commitRequest("g", "t", 1, int64(v)*10)
		note, epoch := fmt.Sprint("note ", v), int32(-1)
		r.Topics[0].TopicID = id
		p := &r.Topics[0].Partitions[0]
		p.Metadata, p.LeaderEpoch = &note, 6
		if v >= 6 {
			epoch = 6
		}
		if got := ask[*kmsg.OffsetCommitResponse](c, v, r).Topics[0]; got.Partitions[0].ErrorCode != 0 || got.Partitions[0].Partition != 1 || v < 10 && got.Topic != "t" || v >= 10 && got.TopicID != id {
			t.Fatalf("commit v%d: %+v", v, got)
		}
		for f := int16(0); f <= 10; f++ {
			r := fetchOffsetsRequest("g", "t", 1, 2)
			r.Groups[0].Topics[0].TopicID = id
			seen := epoch
			if f < 5 {
				seen = -1
			}
			want := fmt.Sprintf(`[t/1=%d %d %q 0 t/2=-1 -1 "" 0]`, v*10, seen, note)
			if got := fmt.Sprint(flat(ask[*kmsg.OffsetFetchResponse](c, f, r), nameOf)); got != want {
				t.Errorf("commit v%d, fetch v%d: %s, want %s", v, f, got, want)
			}
			if f < 2 {
				continue
			}
			r.Topics, r.Groups[0].Topics = nil, nil
			want = fmt.Sprintf(`[t/1=%d %d %q 0]`, v*10, seen, note)
			if got := fmt.Sprint(flat(ask[*kmsg.OffsetFetchResponse](c, f, r), nameOf)); got != want {
				t.Errorf("commit v%d, fetch all v%d: %s, want %s", v, f, got, want)
			}
		}
	}
}

// TestUnknownOffsets: what was never committed is -1 without error, for unknown groups, topics and partitions, at every version.
func TestUnknownOffsets(t *testing.T) {
	b, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	c.commitOne("known", "t", 1)
	for v := int16(0); v <= 10; v++ {
		for _, id := range []string{"never", "known", ""} {
			for _, topic := range []string{"t", "nowhere"} {
				r := fetchOffsetsRequest(id, topic, 7)
				if v >= 10 {
					if topic == "nowhere" {
						continue
					}
					r.Groups[0].Topics[0].TopicID = b.topics.name(topic).id
				}
				got := flat(ask[*kmsg.OffsetFetchResponse](c, v, r), func([16]byte) string { return topic })
				if want := topic + `/7=-1 -1 "" 0`; len(got) != 1 || got[0] != want {
					t.Errorf("v%d %q %s: %v, want %s", v, id, topic, got, want)
				}
			}
		}
	}
	r := fetchOffsetsRequest("known", "", 0)
	r.Groups[0].Topics[0].TopicID = [16]byte{9}
	got := ask[*kmsg.OffsetFetchResponse](c, 10, r).Groups[0].Topics[0]
	if got.TopicID != ([16]byte{9}) || got.Partitions[0].ErrorCode != kerr.UnknownTopicID.Code || got.Partitions[0].Offset != -1 {
		t.Errorf("unknown id: %+v", got)
	}
}

// TestCommitRefusals: bad partitions are refused by themselves, a bad member for all.
func TestCommitRefusals(t *testing.T) {
	b, c := groupBroker(t, t.TempDir(), "num.partitions", "4")
	c.createTopic("t")
	long, longest := strings.Repeat("ü", 4097), strings.Repeat("ü", 4096)
	r := commitRequest("g", "t", 0, 5)
	add := func(topic string, partition int32, metadata *string) {
		more := commitRequest("g", topic, partition, 5).Topics[0]
		more.Partitions[0].Metadata = metadata
		r.Topics = append(r.Topics, more)
	}
	add("t", 9, nil)
	add("nowhere", 0, nil)
	add("t", 1, &long)
	add("t", 2, &longest)
	codes := func(v int16) (out []int16) {
		for _, topic := range ask[*kmsg.OffsetCommitResponse](c, v, r).Topics {
			out = append(out, topic.Partitions[0].ErrorCode)
		}
		return out
	}
	want := []int16{0, kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicOrPartition.Code, kerr.OffsetMetadataTooLarge.Code, 0}
	if got := codes(8); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
	if got := c.fetchOne("g", "t"); got.Offset != 5 {
		t.Errorf("the good partition has %+v", got)
	}
	r.Group, r.Generation, r.MemberID = "none", 3, "m"
	for v, group := range map[int16]int16{8: kerr.IllegalGeneration.Code, 9: kerr.GroupIDNotFound.Code} {
		want := []int16{group, kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicOrPartition.Code, group, group}
		if got := codes(v); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("v%d: errors are %v, want %v", v, got, want)
		}
	}
	byID := commitRequest("g", "", 0, 5)
	byID.Topics[0].TopicID = [16]byte{7}
	if got := ask[*kmsg.OffsetCommitResponse](c, 10, byID).Topics[0]; got.TopicID != ([16]byte{7}) || got.Partitions[0].ErrorCode != kerr.UnknownTopicID.Code {
		t.Errorf("unknown id: %+v", got)
	}
	c.member("live")
	if got := c.commitOne("live", "t", 5); got != kerr.UnknownMemberID.Code {
		t.Errorf("commit past the members: error %d", got)
	}
	_ = b
}

// TestTopicDeletionRemovesOffsets: a topic of the same name begins without offsets, also when the broker was away meanwhile.
func TestTopicDeletionRemovesOffsets(t *testing.T) {
	dir := t.TempDir()
	b, c := groupBroker(t, dir)
	c.createTopic("t")
	c.createTopic("u")
	c.commitOne("g", "t", 5)
	c.commitOne("g", "u", 6)
	if err := b.deleteTopics(t.Context(), []*topic{b.topics.name("t")}); err != nil {
		t.Fatal(err)
	}
	c.createTopic("t")
	waitFor(t, func() bool { return c.fetchOne("g", "t").Offset == -1 })
	if got := c.fetchOne("g", "u").Offset; got != 6 {
		t.Errorf("the other topic has %d", got)
	}
}

// TestOffsetDelete: what members use stays.
func TestOffsetDelete(t *testing.T) {
	_, c := groupBroker(t, t.TempDir())
	c.createTopic("t")
	c.createTopic("u")
	request := func(id string) *kmsg.OffsetDeleteRequest {
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = id
		for _, topic := range []string{"t", "u", "nowhere"} {
			r.Topics = append(r.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
		}
		return r
	}
	if got := ask[*kmsg.OffsetDeleteResponse](c, 0, request("none")); got.ErrorCode != kerr.GroupIDNotFound.Code || len(got.Topics) != 0 {
		t.Errorf("unknown group: %+v", got)
	}
	j := c.member("g")
	for _, topic := range []string{"t", "u"} {
		r := commitRequest("g", topic, 0, 5)
		r.Generation, r.MemberID = j.Generation, j.MemberID
		if got := ask[*kmsg.OffsetCommitResponse](c, 7, r).Topics[0].Partitions[0].ErrorCode; got != 0 {
			t.Fatalf("commit: error %d", got)
		}
	}
	got := ask[*kmsg.OffsetDeleteResponse](c, 0, request("g"))
	want := []int16{kerr.GroupSubscribedToTopic.Code, 0, kerr.UnknownTopicOrPartition.Code}
	for i, topic := range got.Topics {
		if topic.Partitions[0].ErrorCode != want[i] {
			t.Errorf("%s: error %d, want %d", topic.Topic, topic.Partitions[0].ErrorCode, want[i])
		}
	}
	if t0, u0 := c.fetchOne("g", "t").Offset, c.fetchOne("g", "u").Offset; t0 != 5 || u0 != -1 {
		t.Errorf("offsets are %d and %d", t0, u0)
	}
}
