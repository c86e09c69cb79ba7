package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pages asks for partitions with a limit, from a cursor "topic/partition" on ("" for none), and shows the answer as "topic:partitions" and the cursor.
func (c *client) pages(limit int32, cursor string, topics ...string) (string, *kmsg.DescribeTopicPartitionsResponse) {
	c.t.Helper()
	r := kmsg.NewPtrDescribeTopicPartitionsRequest()
	r.ResponsePartitionLimit = limit
	for _, name := range topics {
		rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
		rt.Topic = name
		r.Topics = append(r.Topics, rt)
	}
	if name, partition, ok := strings.Cut(cursor, "/"); ok {
		at := kmsg.NewDescribeTopicPartitionsRequestCursor()
		at.Topic = name
		fmt.Sscan(partition, &at.Partition)
		r.Cursor = &at
	}
	resp := ask[*kmsg.DescribeTopicPartitionsResponse](c, 0, r)
	var out []string
	for _, got := range resp.Topics {
		s := text(got.Topic) + ":"
		if got.ErrorCode != 0 {
			s += fmt.Sprint("error ", got.ErrorCode)
		}
		for _, p := range got.Partitions {
			s += fmt.Sprint(p.Partition)
		}
		out = append(out, s)
	}
	if resp.NextCursor != nil {
		out = append(out, fmt.Sprintf("next %s/%d", resp.NextCursor.Topic, resp.NextCursor.Partition))
	}
	return strings.Join(out, " "), resp
}

func TestDescribeTopicPartitions(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("bb", 2)
	created := c.create("aa", 2)
	c.create("cc", 1)
	tests := []struct {
		limit  int32
		cursor string
		topics []string
		want   string
	}{
		{2000, "", nil, "aa:01 bb:01 cc:0"},
		{3, "", nil, "aa:01 bb:0 next bb/1"},
		{3, "bb/1", nil, "bb:1 cc:0"},
		{2, "", nil, "aa:01 next bb/0"},
		{0, "", []string{"aa"}, "aa:0 next aa/1"},
		{-5, "", []string{"cc"}, "cc:0"},
		{2000, "", []string{"cc", "nothere", "aa", "a b", ""}, ":error 17 a b:error 17 aa:01 cc:0 nothere:error 3"},
		{2000, "", []string{"aa", "aa"}, "aa:01"},
		{2000, "bb/1", []string{"bb", "aa"}, "bb:1"},
		{2000, "bb/7", []string{"bb"}, "bb:"},
		{2000, "b/0", nil, "bb:01 cc:0"},
		{2000, "zz/0", nil, ""},
		{2000, "zz/0", []string{"bb", "aa"}, "bb:error 42 aa:error 42"},
		{2000, "bb/-1", []string{"bb", "aa"}, "bb:error 42 aa:error 42"},
	}
	for _, tt := range tests {
		if got, _ := c.pages(tt.limit, tt.cursor, tt.topics...); got != tt.want {
			t.Errorf("limit %d cursor %q topics %q: got %q, want %q", tt.limit, tt.cursor, tt.topics, got, tt.want)
		}
	}
	_, resp := c.pages(1, "", "aa")
	got := resp.Topics[0]
	if got.TopicID != created.TopicID || got.IsInternal || got.AuthorizedOperations != 3576 {
		t.Errorf("topic is %+v", got)
	}
	if p := got.Partitions[0]; p.LeaderID != b.nodeID || p.LeaderEpoch != 0 || len(p.Replicas) != 1 || len(p.ISR) != 1 || len(p.OfflineReplicas) != 0 || p.ErrorCode != 0 {
		t.Errorf("partition is %+v", p)
	}
}

// TestDescribedPartitionsAreLimited: the broker's limit counts where it is below the client's.
func TestDescribedPartitionsAreLimited(t *testing.T) {
	c := startBroker(t, t.TempDir(), "max.request.partition.size.limit", "2").dial()
	c.create("a", 3)
	if got, _ := c.pages(2000, ""); got != "a:01 next a/2" {
		t.Error(got)
	}
}
