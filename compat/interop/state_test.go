package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// state is all that a client can see: every record of every topic, and every committed offset.
type state struct {
	// Records are those of each partition ("topic-0"), with control records, as read_uncommitted sees them; Committed are the offsets that
	// read_committed sees.
	Records   map[string][]record
	Committed map[string][]int64
	// Offsets are the committed offsets of each group, "topic-0" to offset.
	Offsets map[string]map[string]int64
	// Starts and Ends are log start and end offsets, Stable the last stable ones.
	Starts, Ends, Stable map[string]int64
	// Configs are the own keys of each topic, and IDs their ids.
	Configs map[string]map[string]string
	IDs     map[string]string
	// Quotas are the client quotas, a line each, sorted.
	Quotas []string
}

// record is one record; Control says that it is a transaction marker, whose content does not count.
type record struct {
	Offset    int64
	Key       string
	Value     string
	NullValue bool     `json:",omitempty"`
	Headers   []string `json:",omitempty"`
	Millis    int64
	Control   bool `json:",omitempty"`
}

func partitionName(topic string, p int32) string { return fmt.Sprintf("%s-%d", topic, p) }

// capture reads everything.
func capture(t *testing.T, b *harness.Broker) *state {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	adm := kadm.NewClient(b.Client(t))
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &state{Records: map[string][]record{}, Committed: map[string][]int64{}, Offsets: map[string]map[string]int64{}, Starts: map[string]int64{}, Ends: map[string]int64{},
		Stable: map[string]int64{}}
	names := topics.Names()
	starts, err := adm.ListStartOffsets(ctx, names...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends, err := adm.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	starts.Each(func(o kadm.ListedOffset) { s.Starts[partitionName(o.Topic, o.Partition)] = o.Offset })
	ends.Each(func(o kadm.ListedOffset) { s.Ends[partitionName(o.Topic, o.Partition)] = o.Offset })
	stable, err := adm.ListCommittedOffsets(ctx, names...)
	if err == nil {
		err = stable.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	stable.Each(func(o kadm.ListedOffset) { s.Stable[partitionName(o.Topic, o.Partition)] = o.Offset })
	s.readAll(ctx, t, b, s.Ends, kgo.ReadUncommitted(), func(r *kgo.Record) {
		name := partitionName(r.Topic, r.Partition)
		s.Records[name] = append(s.Records[name], recordOf(r))
	})
	s.readAll(ctx, t, b, s.Stable, kgo.ReadCommitted(), func(r *kgo.Record) {
		if !r.Attrs.IsControl() {
			name := partitionName(r.Topic, r.Partition)
			s.Committed[name] = append(s.Committed[name], r.Offset)
		}
	})
	s.groups(ctx, t, adm)
	quotas, err := adm.DescribeClientQuotas(ctx, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range quotas {
		for _, v := range q.Values {
			s.Quotas = append(s.Quotas, fmt.Sprint(q.Entity, " ", v.Key, "=", v.Value))
		}
	}
	slices.Sort(s.Quotas)
	s.Configs, s.IDs = map[string]map[string]string{}, map[string]string{}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		s.IDs[c.Name], s.Configs[c.Name] = topics[c.Name].ID.String(), map[string]string{}
		for _, kv := range c.Configs {
			if kv.Source == kmsg.ConfigSourceDynamicTopicConfig {
				s.Configs[c.Name][kv.Key] = kv.MaybeValue()
			}
		}
	}
	return s
}

func recordOf(r *kgo.Record) record {
	if r.Attrs.IsControl() {
		return record{Offset: r.Offset, Control: true}
	}
	out := record{Offset: r.Offset, Key: string(r.Key), Value: string(r.Value), NullValue: r.Value == nil, Millis: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, h.Key+"="+string(h.Value))
	}
	return out
}

// readAll consumes every partition that has records, to the given end. The last record of a log is never compacted away, so it is seen.
func (s *state) readAll(ctx context.Context, t *testing.T, b *harness.Broker, ends map[string]int64, level kgo.IsolationLevel, each func(*kgo.Record)) {
	t.Helper()
	from := map[string]map[int32]kgo.Offset{}
	left := map[string]int64{}
	for name, end := range ends {
		i := strings.LastIndexByte(name, '-')
		topic := name[:i]
		p, err := strconv.Atoi(name[i+1:])
		if err != nil {
			t.Fatal(err)
		}
		if end == s.Starts[name] {
			continue
		}
		if from[topic] == nil {
			from[topic] = map[int32]kgo.Offset{}
		}
		from[topic][int32(p)] = kgo.NewOffset().At(s.Starts[name])
		left[name] = end
	}
	if len(left) == 0 {
		return
	}
	cl := b.Client(t, kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v are left: %v", left, err)
		}
		for r := range fetches.RecordsAll() {
			each(r)
			if name := partitionName(r.Topic, r.Partition); r.Offset >= left[name]-1 {
				delete(left, name)
			}
		}
	}
}

func (s *state) groups(ctx context.Context, t *testing.T, adm *kadm.Client) {
	t.Helper()
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range listed.Groups() {
		offsets, err := adm.FetchOffsets(ctx, g)
		if err == nil {
			err = offsets.Error()
		}
		if err != nil {
			t.Fatalf("offsets of group %s: %v", g, err)
		}
		s.Offsets[g] = map[string]int64{}
		offsets.Each(func(o kadm.OffsetResponse) { s.Offsets[g][partitionName(o.Topic, o.Partition)] = o.At })
	}
}

// equal compares what was with what is.
func (s *state) equal(t *testing.T, now *state, where string) {
	t.Helper()
	if !maps.Equal(s.Starts, now.Starts) || !maps.Equal(s.Ends, now.Ends) || !maps.Equal(s.Stable, now.Stable) {
		t.Errorf("%s: log starts %v, ends %v, stable %v, were %v, %v and %v", where, now.Starts, now.Ends, now.Stable, s.Starts, s.Ends, s.Stable)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Records)) {
		was, is := s.Records[name], now.Records[name]
		for i := range min(len(was), len(is)) {
			if fmt.Sprint(was[i]) != fmt.Sprint(is[i]) {
				t.Errorf("%s: %s: record %d is %.300s, was %.300s", where, name, i, fmt.Sprint(is[i]), fmt.Sprint(was[i]))
				break
			}
		}
		if len(was) != len(is) {
			t.Errorf("%s: %s has %d records, had %d", where, name, len(is), len(was))
		}
		if !slices.Equal(s.Committed[name], now.Committed[name]) {
			t.Errorf("%s: %s: read_committed sees %d records, saw %d, or others", where, name, len(now.Committed[name]), len(s.Committed[name]))
		}
	}
	for _, g := range slices.Sorted(maps.Keys(s.Offsets)) {
		if !maps.Equal(s.Offsets[g], now.Offsets[g]) {
			t.Errorf("%s: group %s has committed %v, had %v", where, g, now.Offsets[g], s.Offsets[g])
		}
	}
	if !slices.Equal(now.Quotas, s.Quotas) {
		t.Errorf("%s: quotas %q, were %q", where, now.Quotas, s.Quotas)
	}
	for topic, id := range s.IDs {
		if now.IDs[topic] != id && id != (kadm.TopicID{}).String() {
			t.Errorf("%s: topic %s has id %s, had %s", where, topic, now.IDs[topic], id)
		}
		for key, value := range s.Configs[topic] { // what was the broker's may have become the topic's
			if now.Configs[topic][key] != value {
				t.Errorf("%s: topic %s has keys %v, had %v", where, topic, now.Configs[topic], s.Configs[topic])
			}
		}
	}
	if len(now.Offsets) != len(s.Offsets) {
		t.Errorf("%s: %d groups, were %d", where, len(now.Offsets), len(s.Offsets))
	}
}

// total is the number of records and of committed offsets.
func (s *state) total() (records, offsets int) {
	for _, r := range s.Records {
		records += len(r)
	}
	for _, o := range s.Offsets {
		offsets += len(o)
	}
	return records, offsets
}
