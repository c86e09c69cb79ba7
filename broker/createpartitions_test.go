package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func growRequest(name string, count int32, assignment ...[]int32) *kmsg.CreatePartitionsRequest {
	r := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, count
	for _, replicas := range assignment {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = replicas
		t.Assignment = append(t.Assignment, a)
	}
	r.Topics = append(r.Topics, t)
	return r
}

func TestCreatePartitionsAtEveryVersion(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.create("a", 1)
	c.produce("a", 0, batchOf(t, 0, record{"k", "old", 1}))
	for v := int16(0); v <= 3; v++ {
		count := int32(v) + 2
		got := ask[*kmsg.CreatePartitionsResponse](c, v, growRequest("a", count)).Topics[0]
		if got.Topic != "a" || got.ErrorCode != 0 || got.ErrorMessage != nil {
			t.Fatalf("v%d: %+v", v, got)
		}
		if n := len(c.described("a").Partitions); n != int(count) {
			t.Errorf("v%d: %d partitions, want %d", v, n, count)
		}
		if got := c.produce("a", count-1, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 {
			t.Errorf("v%d: produce to the new partition: error %d", v, got.ErrorCode)
		}
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	if n := len(c.described("a").Partitions); n != 5 {
		t.Errorf("%d partitions after a restart, want 5", n)
	}
	if got := values(t, c.fetch("a", 0, 0, 0).RecordBatches, 0); len(got) != 1 || got[0] != "old" {
		t.Errorf("partition 0 has %q", got)
	}
}

func TestCreatePartitionsRefusals(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 3)
	twice := growRequest("a", 9)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	only := growRequest("a", 9)
	only.ValidateOnly = true
	tests := []struct {
		r    *kmsg.CreatePartitionsRequest
		code int16
		text string
	}{
		{growRequest("a", 3), 37, "Topic already has 3 partition(s)."},
		{growRequest("a", 2), 37, "The topic a currently has 3 partition(s); 2 would not be an increase."},
		{growRequest("a", -1), 37, "The topic a currently has 3 partition(s); -1 would not be an increase."},
		{growRequest("b", 3), 3, "<null>"},
		{growRequest("a", 100000), 44, "Excessively large number of additional partitions per request."},
		{growRequest("a", 5, []int32{b.nodeID}), 39, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."},
		{growRequest("a", 4, []int32{99}), 39, "The manual partition assignment includes broker 99, but no such broker is registered."},
		{twice, 42, "Duplicate topic name."},
		{only, 0, "<null>"},
	}
	for i, tt := range tests {
		resp := ask[*kmsg.CreatePartitionsResponse](c, 3, tt.r)
		if len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != tt.code || text(resp.Topics[0].ErrorMessage) != tt.text {
			t.Errorf("%d: %+v %s, want %d %q", i, resp.Topics, text(resp.Topics[0].ErrorMessage), tt.code, tt.text)
		}
	}
	if n := len(c.described("a").Partitions); n != 3 {
		t.Errorf("%d partitions after refusals", n)
	}
	if got := ask[*kmsg.CreatePartitionsResponse](c, 3, growRequest("a", 4, []int32{b.nodeID})).Topics[0]; got.ErrorCode != 0 {
		t.Errorf("with an assignment: %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
}
