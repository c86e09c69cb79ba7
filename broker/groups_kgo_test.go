package broker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// groupMember is a franz-go consumer in a group, which counts what it gets.
type groupMember struct {
	client *kgo.Client
	done   chan struct{}
	cancel context.CancelFunc
}

// tally is what all members of a group got, by value.
type tally struct {
	mu   sync.Mutex
	seen map[string]int
	by   map[*groupMember]int
}

func (y *tally) values() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.seen)
}

func (y *tally) of(m *groupMember) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.by[m]
}

// consume starts a member that polls and commits until it is stopped.
func (y *tally) consume(t *testing.T, b *testBroker, opts ...kgo.Opt) *groupMember {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.ConsumerGroup("kgo"), kgo.ConsumeTopics("work"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(50 * time.Millisecond),
		kgo.SessionTimeout(time.Minute), kgo.FetchMaxWait(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &groupMember{client: client, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			y.mu.Lock()
			fetches.EachRecord(func(r *kgo.Record) {
				y.seen[string(r.Value)]++
				y.by[m]++
			})
			y.mu.Unlock()
			if fetches.NumRecords() > 0 {
				_ = client.CommitUncommittedOffsets(ctx) // one that fails is made up for by the next
			}
		}
	}()
	t.Cleanup(m.stop)
	return m
}

// stop ends the member; it leaves the group unless it is static.
func (m *groupMember) stop() {
	m.cancel()
	<-m.done
	m.client.Close()
}

// TestGroupOfClients: two members share a topic, one leaves, the broker is restarted, and the other goes on from what was committed.
func TestGroupOfClients(t *testing.T) {
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()} {
		t.Run(balancer.ProtocolName(), func(t *testing.T) { groupOfClients(t, kgo.Balancers(balancer)) })
	}
}

func groupOfClients(t *testing.T, opts ...kgo.Opt) {
	dir := t.TempDir()
	settings := quickGroups("num.partitions", "6")
	b := startBroker(t, dir, settings...)
	c := b.dial()
	c.createTopic("work")
	sent := 0
	send := func(c *client, n int) {
		for range n {
			if got := c.produce("work", int32(sent%6), batchOf(t, batch.None, record{"k", fmt.Sprint(sent), nowMillis()})); got.ErrorCode != 0 {
				t.Fatalf("produce: error %d", got.ErrorCode)
			}
			sent++
		}
	}
	y := &tally{seen: map[string]int{}, by: map[*groupMember]int{}}
	one, two := y.consume(t, b, opts...), y.consume(t, b, opts...)
	waitFor(t, func() bool { d := b.describeGroup("kgo", 0); return d.State == "Stable" && len(d.Members) == 2 })
	waitFor(t, func() bool {
		send(c, 6)
		return y.of(one) > 0 && y.of(two) > 0
	})
	waitFor(t, func() bool { return y.values() == sent })
	two.stop()
	send(c, 60)
	waitFor(t, func() bool { return y.values() == sent && committed(c, "kgo", "work", 6) == int64(sent) })
	one.stop()
	waitFor(t, func() bool { return b.describeGroup("kgo", 0).State == "Empty" })
	b.stopClean()

	b = startBroker(t, dir, settings...)
	c = b.dial()
	send(c, 60)
	after := &tally{seen: map[string]int{}, by: map[*groupMember]int{}}
	after.consume(t, b, opts...)
	waitFor(t, func() bool { return after.values() >= 60 })
	for value, n := range after.seen {
		if y.seen[value] > 0 || n != 1 {
			t.Errorf("record %s came %d times after it was committed", value, n+y.seen[value])
		}
	}
}

// committed is the sum of a group's offsets in the first n partitions of a topic.
func committed(c *client, group, topic string, n int32) (sum int64) {
	for i := range n {
		sum += max(ask[*kmsg.OffsetFetchResponse](c, 1, fetchOffsetsRequest(group, topic, i)).Topics[0].Partitions[0].Offset, 0)
	}
	return sum
}

// TestStaticClient: a static member that is restarted within its session timeout comes back without a rebalance.
func TestStaticClient(t *testing.T) {
	b := startBroker(t, t.TempDir(), quickGroups("num.partitions", "2")...)
	b.dial().createTopic("work")
	y := &tally{seen: map[string]int{}, by: map[*groupMember]int{}}
	first := y.consume(t, b, kgo.InstanceID("i"))
	waitFor(t, func() bool { return b.describeGroup("kgo", 0).State == "Stable" })
	before := b.describeGroup("kgo", 0).Members[0]
	first.stop()
	if d := b.describeGroup("kgo", 0); d.State != "Stable" || len(d.Members) != 1 {
		t.Fatalf("after the member stopped: %s, %d members", d.State, len(d.Members))
	}
	y.consume(t, b, kgo.InstanceID("i"))
	waitFor(t, func() bool {
		d := b.describeGroup("kgo", 0)
		return d.State == "Stable" && d.Members[0].MemberID != before.MemberID
	})
	if after := b.describeGroup("kgo", 0).Members[0]; string(after.MemberAssignment) != string(before.MemberAssignment) {
		t.Errorf("assignment is %x, was %x", after.MemberAssignment, before.MemberAssignment)
	}
}
