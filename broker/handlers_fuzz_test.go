package broker

import (
	"context"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// FuzzHandlers gives bodies that parse to the handlers that answer at once, and encodes what they answer. Bodies come from outside: whatever
// they say, nothing panics and every answer is whole.
func FuzzHandlers(f *testing.F) {
	add := func(version int16, r kmsg.Request) {
		r.SetVersion(version)
		f.Add(r.Key(), version, r.AppendTo(nil))
	}
	add(7, createRequest(newTopic("a", 2, 1, "flush.ms", "1"), newTopic("a", -1, -1)))
	add(7, createRequest(newTopic("vast", 10_000, 1)))
	add(0, createRequest(newTopic("vaster", 10_000, 1)))
	add(3, growRequest("a", 10_000))
	add(6, deleteRequest("a", [16]byte{1}, nil))
	add(3, growRequest("a", 3, []int32{0}))
	add(4, describeRequest(ofTopic, "a", "flush.ms"))
	add(1, incrementRequest(ofTopic, "a", appendToList(), set("flush.ms", "3")))
	add(2, alterRequest(ofBroker, "", "log.retention.ms", "3"))
	add(11, listRequest("a", timeMax, 0, 0))
	add(4, epochRequest("a", 0, -1, 0))
	add(5, idRequest(nil, -1, -1))
	add(6, initTwoPhase("t", true))
	add(2, kmsg.NewPtrDescribeClusterRequest())
	add(0, kmsg.NewPtrDescribeTopicPartitionsRequest())
	add(13, kmsg.NewPtrMetadataRequest())
	add(4, &kmsg.FindCoordinatorRequest{CoordinatorKeys: []string{"g"}})
	add(9, joinRequest("g", ""))
	add(3, joinRequest("g", ""))
	add(5, syncRequest(&kmsg.JoinGroupResponse{MemberID: "m", Generation: 1}, "g", "a"))
	add(5, leaveRequest("g", "m", "@i"))
	add(8, commitRequest("g", "a", 0, 1))
	add(10, fetchOffsetsRequest("g", "a", 0))
	add(6, &kmsg.DescribeGroupsRequest{Groups: []string{"g"}})
	add(5, &kmsg.ListGroupsRequest{StatesFilter: []string{"Empty"}})
	add(2, &kmsg.UpdateFeaturesRequest{FeatureUpdates: []kmsg.UpdateFeaturesRequestFeatureUpdate{toLevel(1, true, featureSafeDowngrade)}})
	add(0, &kmsg.UnregisterBrokerRequest{BrokerID: 1})
	add(0, &kmsg.GetTelemetrySubscriptionsRequest{ClientInstanceID: [16]byte{1}})
	add(0, &kmsg.PushTelemetryRequest{ClientInstanceID: [16]byte{2}, SubscriptionID: 1, Metrics: gaugeData("a", 1)})
	add(3, &kmsg.CreateACLsRequest{Creations: make([]kmsg.CreateACLsRequestCreation, 2)})
	add(3, &kmsg.CreateDelegationTokenRequest{})
	add(3, &kmsg.DeleteGroupsRequest{Groups: []string{"g", "h"}})

	b := fuzzBroker(f, false)
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		if key > 1 {
			handleFuzzed(t, b, key, version, body)
		}
	})
}

// FuzzOrders gives a broker of a cluster what a controller may say. Whatever it was told before, it answers.
func FuzzOrders(f *testing.F) {
	for version := range int16(9) {
		for _, r := range []kmsg.Request{leadRequest(version, "a", [16]byte{1}, alone(0, 0, 3)), tellRequest(version, "a", [16]byte{1}, toldOf(0, neighbour, 4)),
			tellRequest(version, "a", [16]byte{1}, toldOf(0, leaderDeleting, epochDeleting)), stopRequest(version, "a", 0, epochDeleting, true),
			&kmsg.ControlledShutdownRequest{BrokerID: 7}} {
			if r.SetVersion(version); version <= r.MaxVersion() {
				f.Add(r.Key(), version, r.AppendTo(nil))
			}
		}
	}
	b := fuzzBroker(f, true)
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		if key >= 4 && key <= 7 {
			b.obedience.epoch.Store(0)
			handleFuzzed(t, b, key, version, body)
		}
	})
}

// handleFuzzed has a body that parses handled, and the answer checked.
func handleFuzzed(t *testing.T, b *Broker, key, version int16, body []byte) {
	a := b.api(key)
	if a == nil || version < a.min || version > a.max {
		return
	}
	r := bodyFor(key, version)
	r.SetVersion(version)
	if r.ReadFrom(body) != nil {
		return
	}
	cheap(r)
	conn := &wire.ConnInfo{Listener: "PLAINTEXT", Local: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9092}, Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}}
	reply := b.Handle(t.Context(), &wire.Request{Key: key, Version: version, Body: r, Conn: conn, Wake: func() {}})
	if reply.Pending != nil {
		reply.Pending.Cancel()
		return
	}
	if reply.Body == nil {
		t.Fatalf("key %d v%d: no answer", key, version)
	}
	var p wire.Payload
	reply.Body.Encode(&p, version)
	resp := r.ResponseKind()
	if err := resp.ReadFrom(p.Buf); err != nil {
		t.Fatalf("key %d v%d: answer does not parse: %v", key, version, err)
	}
}

// cheap takes the cost out of requests that make thousands of partitions, as many as Kafka makes in one request: each is a directory with files that are
// synced, 10,000 take 13 seconds. They are checked to the last field and not carried out.
func cheap(r kmsg.Request) {
	const few = 8
	switch r := r.(type) {
	case *kmsg.CreateTopicsRequest:
		total := 0
		for i := range r.Topics {
			total += max(1, int(r.Topics[i].NumPartitions), len(r.Topics[i].ReplicaAssignment))
		}
		r.ValidateOnly = r.ValidateOnly || total > few
	case *kmsg.CreatePartitionsRequest:
		for i := range r.Topics {
			r.ValidateOnly = r.ValidateOnly || r.Topics[i].Count > few
		}
	case *kmsg.LeaderAndISRRequest:
		for _, t := range orderedTopics(r) {
			for i := range t.PartitionStates {
				t.PartitionStates[i].Partition %= few
			}
		}
	case *kmsg.UpdateMetadataRequest:
		for i := range r.PartitionStates {
			r.PartitionStates[i].Partition %= few
		}
		for _, t := range r.TopicStates {
			for i := range t.PartitionStates {
				t.PartitionStates[i].Partition %= few
			}
		}
	}
}

func appendToList() kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return add("cleanup.policy", "compact")
}

// fuzzBroker is a broker that is stopped at the end.
func fuzzBroker(f *testing.F, shared bool) *Broker {
	b, err := New(Config{Settings: map[string]string{"log.dirs": f.TempDir(), "listeners": "PLAINTEXT://127.0.0.1:0", twoPhaseKey: "true"}})
	if err != nil {
		f.Fatal(err)
	}
	b.share(shared)
	if err := b.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := b.Shutdown(context.Background()); err != nil {
			f.Error(err)
		}
	})
	return b
}
