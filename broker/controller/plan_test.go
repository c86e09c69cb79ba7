package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func auto(name string, partitions int32, replication int16) NewTopic {
	return NewTopic{Name: name, Partitions: partitions, Replication: replication}
}

// manual makes a topic with chosen replicas. Each is "partition:broker,broker".
func manual(name string, assignment ...string) NewTopic {
	n := auto(name, -1, -1)
	for _, s := range assignment {
		var a Assignment
		number, brokers, _ := strings.Cut(s, ":")
		fmt.Sscan(number, &a.Partition)
		for b := range strings.SplitSeq(brokers, ",") {
			var id int32
			if _, err := fmt.Sscan(b, &id); err == nil {
				a.Replicas = append(a.Replicas, id)
			}
		}
		n.Assignment = append(n.Assignment, a)
	}
	return n
}

func testCluster(brokers ...int32) *cluster {
	conf := &Config{Partitions: 4, Replication: 1, CheckConfig: func(own map[string]string) error {
		if _, ok := own["nope"]; ok {
			return errors.New("Unknown topic config name: nope")
		}
		return nil
	}}
	return &cluster{topics: map[string]struct{}{"old": {}, "a.b": {}}, brokers: brokers, conf: conf}
}

// wantRefusal checks an error against Kafka's code and text.
func wantRefusal(t *testing.T, err error, code *kerr.Error, message string) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Kafka != code || refused.Message != message || !errors.Is(err, code) {
		t.Errorf("got %v, want %s: %q", err, code.Message, message)
	}
}

func TestRefusals(t *testing.T) {
	with := func(n NewTopic, f func(*NewTopic)) NewTopic { f(&n); return n }
	bad := func(n *NewTopic) { n.Config = map[string]*string{"nope": new(string)} }
	long := strings.Repeat("x", 250)
	tests := []struct {
		topic   NewTopic
		code    *kerr.Error
		message string
	}{
		{auto("", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: the empty string is not allowed"},
		{auto(".", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: '.' is not allowed"},
		{auto("..", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: '..' is not allowed"},
		{auto(long, 1, 1), kerr.InvalidTopicException, "Topic name is invalid: the length of '" + long + "' is longer than the max allowed length 249"},
		{auto("a b", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{auto("ä", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: 'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{auto("a/b", 1, 1), kerr.InvalidTopicException, "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{auto("__cluster_metadata", 1, 1), kerr.InvalidRequest, "Creation of internal topic __cluster_metadata is prohibited."},
		{auto("old", 0, 0), kerr.TopicAlreadyExists, "Topic 'old' already exists."},
		{auto("a_b", 1, 1), kerr.InvalidTopicException, "Topic 'a_b' collides with existing topic: a.b"},
		{auto("n", 1, 0), kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value."},
		{auto("n", 0, -2), kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value."},
		{auto("n", 0, 1), kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value."},
		{auto("n", -2, 1), kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value."},
		{auto("n", 1, 3), kerr.InvalidReplicationFactor,
			"Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 2 broker(s) are registered."},
		{auto("n", 10001, 1), kerr.PolicyViolation, "Excessively large number of partitions per request."},
		{auto("n", 1<<31-1, 1), kerr.PolicyViolation, "Excessively large number of partitions per request."},
		{with(auto("n", 0, 0), bad), kerr.InvalidConfig, "Unknown topic config name: nope"},
		{with(auto("n", 1, 1), func(n *NewTopic) { n.Config = map[string]*string{"b": nil, "a": nil, "nope": new(string)} }),
			kerr.InvalidConfig, "Null value not supported for topic configs: a,b"},
		{with(manual("n", "0:1"), func(n *NewTopic) { n.Replication, n.Partitions = 1, 1 }), kerr.InvalidRequest,
			"A manual partition assignment was specified, but replication factor was not set to -1."},
		{with(manual("n", "0:1"), func(n *NewTopic) { n.Partitions = 1 }), kerr.InvalidRequest,
			"A manual partition assignment was specified, but numPartitions was not set to -1."},
		{manual("n", "0:3"), kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker 3, but no such broker is registered."},
		{manual("n", "0:1,1"), kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker 1 more than once."},
		{manual("n", "0:"), kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list."},
		{manual("n", "0:1", "0:2"), kerr.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition 0"},
		{manual("n", "0:1", "2:1"), kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence"},
		{manual("n", "-1:1"), kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence"},
		{manual("n", "0:1", "1:1,2"), kerr.InvalidReplicaAssignment,
			"The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with previous partitions, which have 1 replica(s)."},
	}
	for _, tt := range tests {
		plans := planTopics(testCluster(1, 2), []NewTopic{tt.topic, auto("fine", 1, 1)})
		if tt.topic.Partitions != 10001 && plans[1].err != nil {
			t.Errorf("%q: the other topic of the request failed: %v", tt.topic.Name, plans[1].err)
		}
		wantRefusal(t, plans[0].err, tt.code, tt.message)
	}
}

func TestPlanOfOneRequest(t *testing.T) {
	plans := planTopics(testCluster(1), []NewTopic{
		auto("one", -1, -1), manual("two", "1:1", "0:1"), auto("x.y", 1, 1), auto("x_y", 1, 1), auto("__consumer_offsets", 50, 3),
	})
	wantRefusal(t, plans[3].err, kerr.InvalidTopicException, "Topic 'x_y' collides with existing topic: x.y")
	sizes := []int{4, 2, 1, 0, 50}
	ids := map[[16]byte]bool{}
	for i, p := range plans {
		if i == 3 {
			continue
		}
		if p.err != nil || len(p.topic.Partitions) != sizes[i] || p.topic.Config == nil {
			t.Fatalf("plan %d: %+v, %v", i, p.topic, p.err)
		}
		ids[p.topic.ID] = true
		for n, part := range p.topic.Partitions {
			if part.Leader != 1 || part.LeaderEpoch != 0 || !slices.Equal(part.Replicas, []int32{1}) || !slices.Equal(part.ISR, []int32{1}) {
				t.Errorf("plan %d partition %d: %+v", i, n, part)
			}
		}
	}
	if len(ids) != 4 {
		t.Errorf("%d different topic ids, want 4", len(ids))
	}
}

func TestDefaultReplicationIsAtMostTheBrokers(t *testing.T) {
	for brokers, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3} {
		cl := testCluster([]int32{1, 2, 3, 4}[:brokers]...)
		cl.conf.Replication = 3
		p := planTopics(cl, []NewTopic{auto("n", 1, -1)})[0]
		if p.err != nil || len(p.topic.Partitions[0].Replicas) != want {
			t.Errorf("%d brokers: %+v, %v; want %d replicas", brokers, p.topic.Partitions, p.err, want)
		}
	}
}

func TestRequestWithTooManyPartitionsMakesNothing(t *testing.T) {
	for i, p := range planTopics(testCluster(1), []NewTopic{auto("a", 5000, 1), auto("b", 6000, 1)}) {
		if !errors.Is(p.err, kerr.PolicyViolation) {
			t.Errorf("topic %d: %v", i, p.err)
		}
	}
	if p := planTopics(testCluster(1), []NewTopic{auto("a", 5000, 1), auto("b", 5000, 1)}); p[0].err != nil || p[1].err != nil {
		t.Errorf("10000 partitions: %v, %v", p[0].err, p[1].err)
	}
}

func TestLeaderIsTheFirstLiveReplica(t *testing.T) {
	p := Partition{Replicas: []int32{3, 1, 2}}
	lead(&p, []int32{1, 2})
	if p.Leader != 1 || !slices.Equal(p.ISR, []int32{1, 2}) {
		t.Errorf("%+v", p)
	}
	lead(&p, nil)
	if p.Leader != -1 || p.ISR == nil || len(p.ISR) != 0 {
		t.Errorf("without brokers: %+v", p)
	}
}

func TestAssign(t *testing.T) {
	brokers := []int32{0, 1, 2, 3, 4}
	// The example in Kafka's documentation of its assignment: 10 partitions, 3 replicas, 5 brokers, start and shift 0.
	want := [][]int32{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}, {4, 0, 1}, {0, 2, 3}, {1, 3, 4}, {2, 4, 0}, {3, 0, 1}, {4, 1, 2}}
	if got := assign(brokers, 0, 10, 3, 0); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Partitions that are added later fit to the ones before.
	if got := assign(brokers, 6, 4, 3, 0); !slices.EqualFunc(got, want[6:], slices.Equal) {
		t.Errorf("got %v, want %v", got, want[6:])
	}
	for start := range 7 {
		counts := map[int32]int{}
		for p, replicas := range assign(brokers, 0, 25, 3, start) {
			seen := map[int32]bool{}
			for _, r := range replicas {
				counts[r]++
				if seen[r] {
					t.Fatalf("start %d partition %d has broker %d twice: %v", start, p, r, replicas)
				}
				seen[r] = true
			}
		}
		for b, n := range counts {
			if n != 15 {
				t.Errorf("start %d: broker %d has %d replicas, want 15", start, b, n)
			}
		}
	}
	if got := assign([]int32{7}, 0, 2, 1, 3); !slices.EqualFunc(got, [][]int32{{7}, {7}}, slices.Equal) {
		t.Errorf("one broker: %v", got)
	}
}

func TestIDs(t *testing.T) {
	seen := map[[16]byte]bool{}
	for range 1000 {
		id := NewID()
		s := FormatID(id)
		back, err := ParseID(s)
		if err != nil || back != id || len(s) != 22 || s[0] == '-' || seen[id] || id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Fatalf("id %x is %q and parses to %x, %v", id, s, back, err)
		}
		seen[id] = true
	}
	for _, s := range []string{"", "short", strings.Repeat("A", 23), strings.Repeat("!", 22)} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("%q is taken for an id", s)
		}
	}
}

func TestIsInternal(t *testing.T) {
	for name, want := range map[string]bool{"__consumer_offsets": true, "__transaction_state": true, "__share_group_state": true, "__x": false, "a": false} {
		if IsInternal(name) != want {
			t.Errorf("%s internal: %v", name, !want)
		}
	}
}

func TestHugeRequestIsNotPlanned(t *testing.T) {
	var topics []NewTopic
	for i := range 100000 {
		topics = append(topics, auto(fmt.Sprint("t", i), 10000, 1))
	}
	used := testing.AllocsPerRun(1, func() {
		for i, p := range planTopics(testCluster(1), topics) {
			if !errors.Is(p.err, kerr.PolicyViolation) {
				t.Fatalf("topic %d: %v", i, p.err)
			}
		}
	})
	if used > 1e6 {
		t.Errorf("%v allocations", used)
	}
}

// TestMaxReplication: replicas that nobody would fill are refused, and are not the default of Kafka's own topics.
func TestMaxReplication(t *testing.T) {
	cl := testCluster(1, 2, 3)
	cl.conf.MaxReplication, cl.conf.Replication = 1, 3
	for _, n := range []NewTopic{auto("a", 1, -1), auto("__consumer_offsets", 1, 3)} {
		if p := planTopics(cl, []NewTopic{n})[0]; p.err != nil || len(p.topic.Partitions[0].Replicas) != 1 {
			t.Errorf("%s: %+v", n.Name, p)
		}
	}
	const text = "Partitions with 2 replicas cannot be made: replication between brokers is not built, there can be 1."
	wantRefusal(t, planTopics(cl, []NewTopic{auto("b", 1, 2)})[0].err, kerr.InvalidReplicationFactor, text)
	wantRefusal(t, planTopics(cl, []NewTopic{manual("c", "0:1,2")})[0].err, kerr.InvalidReplicaAssignment, text)
}
