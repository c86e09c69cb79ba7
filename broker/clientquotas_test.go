package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/quota"
	"gregor/log/batch"
)

// setQuota sets one quota of a client id, or of all ("<default>").
func setQuota(c *client, clientID string, k quota.Kind, v float64) {
	c.t.Helper()
	r := kmsg.NewPtrAlterClientQuotasRequest()
	e := kmsg.NewAlterClientQuotasRequestEntry()
	part := kmsg.NewAlterClientQuotasRequestEntryEntity()
	part.Type = entityClient
	if clientID != quota.Default {
		part.Name = &clientID
	}
	e.Entity = append(e.Entity, part)
	e.Ops = append(e.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: k.String(), Value: v})
	r.Entries = append(r.Entries, e)
	if got := ask[*kmsg.AlterClientQuotasResponse](c, 1, r).Entries[0]; got.ErrorCode != 0 {
		c.t.Fatalf("quota %s of %s: error %d %s", k, clientID, got.ErrorCode, *got.ErrorMessage)
	}
}

// quotas describes all, one line for each entity.
func quotas(c *client) (lines []string) {
	for _, e := range ask[*kmsg.DescribeClientQuotasResponse](c, 1, kmsg.NewPtrDescribeClientQuotasRequest()).Entries {
		line := ""
		for _, part := range e.Entity {
			name := quota.Default
			if part.Name != nil {
				name = *part.Name
			}
			line += part.Type + "=" + name + " "
		}
		for _, v := range e.Values {
			line += fmt.Sprint(v.Key, " ", v.Value)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestQuotasAreKept: they are there after a restart, under names that are not those of the tree.
func TestQuotasAreKept(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	r := kmsg.NewPtrAlterClientQuotasRequest()
	user, id, ip := "a user/ü", "c*1", "10.0.0.1"
	for _, parts := range [][]kmsg.AlterClientQuotasRequestEntryEntity{
		{{Type: "user", Name: &user}, {Type: "client-id", Name: &id}}, {{Type: "user"}}, {{Type: "client-id", Name: &id}}, {{Type: "ip", Name: &ip}},
	} {
		key := quota.Produce
		if parts[0].Type == "ip" {
			key = quota.Connection
		}
		r.Entries = append(r.Entries, kmsg.AlterClientQuotasRequestEntry{Entity: parts,
			Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: key.String(), Value: 1 << 30}}})
	}
	for version := int16(0); version <= 1; version++ {
		for i, e := range ask[*kmsg.AlterClientQuotasResponse](c, version, r).Entries {
			if e.ErrorCode != 0 {
				t.Fatalf("v%d entry %d: error %d %s", version, i, e.ErrorCode, *e.ErrorMessage)
			}
		}
	}
	want := []string{
		"client-id=c*1 producer_byte_rate 1.073741824e+09", "ip=10.0.0.1 connection_creation_rate 1.073741824e+09",
		"user=<default> producer_byte_rate 1.073741824e+09", "user=a user/ü client-id=c*1 producer_byte_rate 1.073741824e+09",
	}
	if got := quotas(c); !slices.Equal(got, want) {
		t.Errorf("described %q, want %q", got, want)
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	if got := quotas(c); !slices.Equal(got, want) {
		t.Errorf("after a restart %q, want %q", got, want)
	}
	for i := range r.Entries {
		r.Entries[i].Ops[0].Remove = true
	}
	ask[*kmsg.AlterClientQuotasResponse](c, 1, r)
	if got := quotas(c); len(got) != 0 {
		t.Errorf("after all were removed %q", got)
	}
}

// TestQuotaRefusals has the texts of Kafka 4.4.0.
func TestQuotaRefusals(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	u, ip, empty, odd := "u", "10.0.0.1", "", "not an ip!"
	for _, tc := range []struct {
		parts []kmsg.AlterClientQuotasRequestEntryEntity
		key   string
		value float64
		want  string
	}{
		{nil, "producer_byte_rate", 1, "Invalid empty client quota entity"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &empty}}, "producer_byte_rate", 1, "Empty user not supported"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "group", Name: &u}}, "producer_byte_rate", 1, "Unhandled client quota entity type: group"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &u}, {Type: "ip", Name: &ip}}, "producer_byte_rate", 1,
			"Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "ip", Name: &odd}}, "connection_creation_rate", 1,
			"not an ip! is not a valid IP address; host names are not looked up here"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "ip", Name: &ip}}, "producer_byte_rate", 1, "Invalid configuration key producer_byte_rate"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &u}}, "nothing", 1, "Invalid configuration key nothing"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &u}}, "producer_byte_rate", 0, "Quota producer_byte_rate must be greater than 0"},
		{[]kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &u}}, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."},
	} {
		r := kmsg.NewPtrAlterClientQuotasRequest()
		r.Entries = append(r.Entries, kmsg.AlterClientQuotasRequestEntry{Entity: tc.parts,
			Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: tc.key, Value: tc.value}}})
		got := ask[*kmsg.AlterClientQuotasResponse](c, 1, r).Entries[0]
		if got.ErrorCode != kerr.InvalidRequest.Code || got.ErrorMessage == nil || *got.ErrorMessage != tc.want {
			t.Errorf("%s: error %d %v, want %q", tc.key, got.ErrorCode, got.ErrorMessage, tc.want)
		}
	}
	if got := quotas(c); len(got) != 0 {
		t.Errorf("set all the same: %q", got)
	}
}

// TestProduceQuota: the answer that goes over says so, and the next request waits for so long.
func TestProduceQuota(t *testing.T) {
	c := startBroker(t, t.TempDir(), "quota.window.num", "2").dial()
	c.createTopic("slow")
	setQuota(c, quota.Default, quota.Produce, 10_000)
	records := batchOf(t, batch.None, record{value: string(make([]byte, 12_000)), ts: nowMillis()})
	began := time.Now() // the quiet begins after it
	resp := ask[*kmsg.ProduceResponse](c, 9, produceRequest("slow", 0, -1, records))
	if resp.ThrottleMillis < 100 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("throttled for %d ms, error %d", resp.ThrottleMillis, resp.Topics[0].Partitions[0].ErrorCode)
	}
	c.createTopic("behind")
	if waited := time.Since(began); waited < time.Duration(resp.ThrottleMillis)*time.Millisecond {
		t.Errorf("the next request was answered after %v, %d ms were asked for", waited, resp.ThrottleMillis)
	}
}

// TestFetchQuota: what goes over is not sent, and comes later; one answer is never larger than the quota allows at all.
func TestFetchQuota(t *testing.T) {
	b := startBroker(t, t.TempDir(), "quota.window.num", "2")
	c := b.dial()
	c.createTopic("slow")
	for range 40 {
		c.produce("slow", 0, batchOf(t, batch.None, record{value: string(make([]byte, 1000)), ts: nowMillis()}))
	}
	setQuota(c, quota.Default, quota.Consume, 10_000)
	got, throttled := 0, 0
	for offset := int64(0); got < 1000; { // over and over, since a slow machine may stay below the quota for a while
		offset %= 40
		r := fetchRequest("slow", 0, offset, 0)
		r.MinBytes = 1
		resp := ask[*kmsg.FetchResponse](c, 11, r)
		if resp.ThrottleMillis > 0 {
			throttled++
			if len(resp.Topics) != 0 {
				t.Fatal("a throttled answer has records")
			}
			continue
		}
		set := resp.Topics[0].Partitions[0].RecordBatches
		if len(set) > 12_000 {
			t.Fatalf("%d bytes at once", len(set))
		}
		n := len(values(t, set, offset))
		got, offset = got+n, offset+int64(n)
		if throttled > 0 && got >= 20 {
			return // seen often enough; the rest would take seconds
		}
	}
	t.Errorf("%d kB were read at 10 kB/s with %d throttled answers", got, throttled)
}

// TestRequestQuota counts the time of requests.
func TestRequestQuota(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	setQuota(c, quota.Default, quota.Request, 1e-9)
	if resp := ask[*kmsg.MetadataResponse](c, 9, kmsg.NewPtrMetadataRequest()); resp.ThrottleMillis != 1000 {
		t.Errorf("throttled for %d ms, want one window", resp.ThrottleMillis)
	}
}

// TestMutationQuota: clients since KIP-599 are refused, older ones held up. The quota is so small that nothing of it comes back during the test.
func TestMutationQuota(t *testing.T) {
	b := startBroker(t, t.TempDir(), "quota.window.num", "1", "quota.window.size.seconds", "1000")
	setQuota(b.dial(), quota.Default, quota.Mutation, 0.05)
	create := func(version int16, name string, partitions int32) *kmsg.CreateTopicsResponse {
		r := kmsg.NewPtrCreateTopicsRequest()
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, 1
		r.Topics = append(r.Topics, rt)
		return ask[*kmsg.CreateTopicsResponse](b.dial(), version, r) // the connection is held up, the client is refused
	}
	if resp := create(7, "first", 55); resp.Topics[0].ErrorCode != 0 || resp.ThrottleMillis != 100_000 {
		t.Fatalf("first: error %d, throttled for %d ms, want 100 s", resp.Topics[0].ErrorCode, resp.ThrottleMillis)
	}
	old := create(5, "second", 60)
	if old.Topics[0].ErrorCode != 0 || old.ThrottleMillis < 900_000 {
		t.Fatalf("an older client: error %d, throttled for %d ms", old.Topics[0].ErrorCode, old.ThrottleMillis)
	}
	resp := create(7, "third", 1)
	if resp.Topics[0].ErrorCode != kerr.ThrottlingQuotaExceeded.Code || resp.ThrottleMillis == 0 {
		t.Errorf("third: error %d, throttled for %d ms", resp.Topics[0].ErrorCode, resp.ThrottleMillis)
	}
}
