package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// setTopicKey sets one key of a topic, or fails with the code.
func setTopicKey(c *client, topic, key, value string) int16 {
	c.t.Helper()
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: &value})
	r.Resources = append(r.Resources, res)
	return ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0].ErrorCode
}

// TestClosedPartitions: a partition that is closed for writing refuses in a way that clients try again, can be drained, and goes on when it is
// opened; the others are left alone; a restart changes nothing.
func TestClosedPartitions(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "num.partitions", "3")
	c := b.dial()
	c.createTopic("t")
	one := func(partition int32) int16 {
		return c.produce("t", partition, batchOf(t, batch.None, record{value: "v", ts: nowMillis()})).ErrorCode
	}
	retriable := kerr.NotLeaderForPartition.Code
	if !kerr.IsRetriable(kerr.NotLeaderForPartition) {
		t.Fatal("clients would not try again")
	}
	for p := range int32(3) {
		if code := one(p); code != 0 {
			t.Fatalf("partition %d: error %d", p, code)
		}
	}
	if code := setTopicKey(c, "t", "gregor.write.enabled", "0,2-"); code != 0 {
		t.Fatalf("closing: error %d", code)
	}
	check := func(when string) {
		for p, want := range []int16{0, retriable, 0} {
			if code := one(int32(p)); code != want {
				t.Errorf("%s: partition %d: error %d, want %d", when, p, code, want)
			}
		}
		if got := c.fetch("t", 1, 0, 0); got.ErrorCode != 0 || len(values(t, got.RecordBatches, 0)) != 1 {
			t.Errorf("%s: the closed partition cannot be drained: error %d", when, got.ErrorCode)
		}
	}
	check("closed")
	b.stopClean()
	b = startBroker(t, dir, "num.partitions", "3")
	c = b.dial()
	check("after a restart")
	if code := setTopicKey(c, "t", "gregor.read.enabled", "false"); code != 0 {
		t.Fatalf("closing for readers: error %d", code)
	}
	if got := c.fetch("t", 1, 0, 0); got.ErrorCode != retriable {
		t.Errorf("reading a closed partition: error %d, want %d", got.ErrorCode, retriable)
	}
	for _, key := range []string{"gregor.read.enabled", "gregor.write.enabled"} {
		if code := setTopicKey(c, "t", key, "true"); code != 0 {
			t.Fatalf("opening: error %d", code)
		}
	}
	if code := one(1); code != 0 {
		t.Errorf("opened: error %d", code)
	}
	if got := c.fetch("t", 1, 0, 0); got.ErrorCode != 0 || len(values(t, got.RecordBatches, 0)) != 2 {
		t.Errorf("opened: fetch has error %d", got.ErrorCode)
	}
	if code := setTopicKey(c, "t", "gregor.write.enabled", "some"); code != kerr.InvalidConfig.Code {
		t.Errorf("a wrong value: error %d", code)
	}
}
