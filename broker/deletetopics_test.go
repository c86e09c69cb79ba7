package broker

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteRequest names topics: a string is a name, 16 bytes are an id, nil is neither.
func deleteRequest(topics ...any) *kmsg.DeleteTopicsRequest {
	r := kmsg.NewPtrDeleteTopicsRequest()
	for _, wanted := range topics {
		t := kmsg.NewDeleteTopicsRequestTopic()
		switch x := wanted.(type) {
		case string:
			t.Topic = &x
			r.TopicNames = append(r.TopicNames, x)
		case [16]byte:
			t.TopicID = x
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

func TestDeleteTopicsAtEveryVersion(t *testing.T) {
	c := startBroker(t, t.TempDir(), "auto.create.topics.enable", "false").dial()
	for v := int16(0); v <= 6; v++ {
		created := c.create("gone", 2)
		resp := ask[*kmsg.DeleteTopicsResponse](c, v, deleteRequest("gone", "never"))
		good, bad := &resp.Topics[0], &resp.Topics[1]
		if good.ErrorCode != 0 || text(good.Topic) != "gone" || bad.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("v%d: %+v", v, resp.Topics)
		}
		if (bad.ErrorMessage != nil) != (v >= 5) || v >= 6 && good.TopicID != created.TopicID {
			t.Errorf("v%d: message %s, id %x", v, text(bad.ErrorMessage), good.TopicID)
		}
		if got := c.described("gone").ErrorCode; got != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("v%d: deleted topic has error %d", v, got)
		}
	}
}

func TestDeleteTopicsByID(t *testing.T) {
	c := startBroker(t, t.TempDir(), "auto.create.topics.enable", "false").dial()
	one, two, three := c.create("one", 1), c.create("two", 1), c.create("three", 1)
	both := deleteRequest("three")
	both.Topics[0].TopicID = three.TopicID
	if got := ask[*kmsg.DeleteTopicsResponse](c, 6, both).Topics[0]; got.ErrorCode != 42 || text(got.ErrorMessage) != "You may not specify both topic name and topic id." {
		t.Errorf("name and id in one: %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	unknown := [16]byte{1, 2, 3}
	resp := ask[*kmsg.DeleteTopicsResponse](c, 6, deleteRequest(one.TopicID, unknown, nil, "two", two.TopicID, "three", "three", [16]byte{7}, [16]byte{7}))
	want := []struct {
		name string
		id   [16]byte
		code int16
		text string
	}{
		{"one", one.TopicID, 0, "<null>"},
		{"<null>", unknown, 100, "This server does not host this topic ID."},
		{"<null>", [16]byte{}, 42, "Neither topic name nor id were specified."},
		{"two", two.TopicID, 42, "The provided topic name maps to an ID that was already supplied."},
		{"three", [16]byte{}, 42, "Duplicate topic name."},
		{"<null>", [16]byte{7}, 42, "Duplicate topic id."},
	}
	if len(resp.Topics) != len(want) {
		t.Fatalf("%d answers, want %d", len(resp.Topics), len(want))
	}
	for i, w := range want {
		got := resp.Topics[i]
		if text(got.Topic) != w.name || got.TopicID != w.id || got.ErrorCode != w.code || text(got.ErrorMessage) != w.text {
			t.Errorf("answer %d is %s %x %d %q, want %+v", i, text(got.Topic), got.TopicID, got.ErrorCode, text(got.ErrorMessage), w)
		}
	}
	for name, want := range map[string]int16{"one": 3, "two": 0, "three": 0} {
		if got := c.described(name).ErrorCode; got != want {
			t.Errorf("%s: error %d, want %d", name, got, want)
		}
	}
}

func TestDeleteTopicsDisabled(t *testing.T) {
	c := startBroker(t, t.TempDir(), "delete.topic.enable", "false").dial()
	c.create("kept", 1)
	for v := int16(0); v <= 6; v++ {
		want := kerr.TopicDeletionDisabled.Code
		if v < 3 {
			want = kerr.InvalidRequest.Code
		}
		if got := ask[*kmsg.DeleteTopicsResponse](c, v, deleteRequest("kept")).Topics[0].ErrorCode; got != want {
			t.Errorf("v%d: error %d, want %d", v, got, want)
		}
	}
	if got := c.described("kept"); got.ErrorCode != 0 {
		t.Errorf("topic is gone: %d", got.ErrorCode)
	}
}

// A name can be used again at once, and what has it then is another topic (KAFKA-12257).
func TestDeletedNameIsANewTopic(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	seen := map[[16]byte]bool{}
	for i := range 10 {
		created := c.create("again", 1)
		if seen[created.TopicID] {
			t.Fatal("a topic id came back")
		}
		seen[created.TopicID] = true
		if got := c.produce("again", 0, batchOf(t, 0, record{"k", fmt.Sprint(i), 1})); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Fatalf("round %d: %+v", i, got)
		}
		if got := ask[*kmsg.DeleteTopicsResponse](c, 6, deleteRequest(created.TopicID)).Topics[0].ErrorCode; got != 0 {
			t.Fatalf("round %d: delete has error %d", i, got)
		}
	}
	last := c.create("again", 1)
	b.stopClean()
	if got := startBroker(t, dir).dial().described("again"); got.ErrorCode != 0 || got.TopicID != last.TopicID {
		t.Errorf("after a restart: error %d, id %x, want %x", got.ErrorCode, got.TopicID, last.TopicID)
	}
}
