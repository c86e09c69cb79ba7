package peers

import (
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

// recorded are the requests that compat/java/ControlRequests.java has Apache Kafka 3.9.1 write, by name and version.
func recorded(t *testing.T) map[string][][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]byte{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		b, err := hex.DecodeString(f[2])
		if err != nil {
			t.Fatal(err)
		}
		all[f[0]+" "+f[1]] = append(all[f[0]+" "+f[1]], b)
	}
	return all
}

func uuid(first byte) (id [16]byte) {
	for i := range id {
		id[i] = first + byte(i)
	}
	return id
}

// recordedStep is what ControlRequests.java has put into its requests.
func recordedStep() (*step, *sender) {
	plain := func(host string, port int32) meta.Endpoint {
		return meta.Endpoint{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: port}
	}
	t := known{uuid(1), false, &Partition{Number: 0, ControllerEpoch: 4, Leader: 2, LeaderEpoch: 3, ISR: []int32{2, 3}, Version: 6,
		Replicas: []int32{2, 3, 9}, Adding: []int32{9}, Removing: []int32{3}}}
	u := known{uuid(17), false, &Partition{Number: 1, ControllerEpoch: 5, Leader: -1, LeaderEpoch: 7, ISR: []int32{3}, Version: 8, Replicas: []int32{3}}}
	d := known{uuid(33), true, &Partition{Number: 0, ControllerEpoch: 5, Leader: 3, LeaderEpoch: 2, ISR: []int32{3}, Version: 1, Replicas: []int32{3}}}
	told := *t.Partition
	told.ControllerEpoch, told.ISR = 5, []int32{3}
	s := newStep()
	s.leaders[place{"t", 0}], s.leaders[place{"u", 1}] = leading{t, true}, leading{u, false}
	s.metadata[place{"t", 0}], s.metadata[place{"u", 1}], s.metadata[place{"a", 0}] = known{t.id, false, &told}, u, d
	s.stops[place{"t", 0}], s.stops[place{"a", 0}], s.stops[place{"a", 1}] = stopping{3, false}, stopping{-2, true}, stopping{-2, true}
	s.update = true
	live := []Broker{
		{ID: 2, Rack: "r", Endpoints: []meta.Endpoint{plain("h2", 92), {Listener: "OUT", Protocol: "SASL_SSL", Host: "o2", Port: 93}}},
		{ID: 3, Endpoints: []meta.Endpoint{plain("h3", 94)}},
	}
	return s, &sender{1, 5, "", live, &Broker{ID: 3, Epoch: 0x1122334455}}
}

// TestRequestsAsKafka compares every version of what a controller sends with the bytes that Apache Kafka writes.
func TestRequestsAsKafka(t *testing.T) {
	want := recorded(t)
	s, from := recordedStep()
	got := map[string][]kmsg.Request{}
	add := func(name string, version int16, reqs ...kmsg.Request) { got[fmt.Sprint(name, " ", version)] = reqs }
	for v := range int16(8) {
		add("LeaderAndIsr", v, from.leaderAndISR(v, s.leaders)...)
	}
	for v := range int16(9) {
		add("UpdateMetadata", v, from.updateMetadata(v, s.metadata))
	}
	for v := range int16(5) {
		add("StopReplica", v, from.stopReplica(v, s.stops)...)
	}
	kraft := from.oneStopReplica(4, false, s.stops)
	kraft.IsKRaftController = true
	add("StopReplicaOfKRaft", 4, kraft)
	for v := range int16(4) {
		add("ControlledShutdown", v, &kmsg.ControlledShutdownRequest{Version: v, BrokerID: 7, BrokerEpoch: 0x1122334455})
	}
	if len(got) != len(want) {
		t.Errorf("%d requests, recorded are %d", len(got), len(want))
	}
	for name, reqs := range got {
		if len(reqs) != len(want[name]) {
			t.Errorf("%s: %d requests, recorded are %d", name, len(reqs), len(want[name]))
			continue
		}
		for i, req := range reqs {
			if b := appendRequest(nil, req, 9, "1")[4:]; !slices.Equal(b, want[name][i]) {
				t.Errorf("%s:\n got %x\nwant %x", name, b, want[name][i])
			}
			again := reflect.New(reflect.TypeOf(req).Elem()).Interface().(kmsg.Request)
			again.SetVersion(req.GetVersion())
			if err := again.ReadFrom(req.AppendTo(nil)); err != nil {
				t.Errorf("%s: reading it again: %v", name, err)
			} else if b := again.AppendTo(nil); !slices.Equal(b, req.AppendTo(nil)) {
				t.Errorf("%s: read and written again %x, was %x", name, b, req.AppendTo(nil))
			}
		}
	}
}

// TestNewBody reads what Kafka wrote of the version that kmsg has wrong.
func TestNewBody(t *testing.T) {
	for name, kraft := range map[string]bool{"StopReplica 4": false, "StopReplicaOfKRaft 4": true} {
		b := recorded(t)[name][0][4+4+2+1+1:] // key and version, correlation id, client id, tags
		for _, read := range []func(*StopReplicaRequest, []byte) error{(*StopReplicaRequest).ReadFrom, (*StopReplicaRequest).UnsafeReadFrom} {
			req := NewBody(keyStopReplica, 4).(*StopReplicaRequest)
			req.SetVersion(4)
			if err := read(req, b); err != nil || req.ControllerID != 1 || req.ControllerEpoch != 5 || req.BrokerEpoch != 0x1122334455 ||
				req.IsKRaftController != kraft || len(req.Topics) != 2 {
				t.Errorf("%s: %+v, %v", name, req, err)
			}
		}
	}
	if NewBody(keyStopReplica, 3) != nil || NewBody(keyLeaderAndISR, 4) != nil {
		t.Error("a body that kmsg has right is made")
	}
}

// TestStopReplicaTruncated reads every beginning of a request of version 4, where the order of fields is put right.
func TestStopReplicaTruncated(t *testing.T) {
	s, from := recordedStep()
	whole := from.oneStopReplica(4, false, s.stops).AppendTo(nil)
	for n := range len(whole) {
		req := &StopReplicaRequest{}
		req.SetVersion(4)
		if err := req.ReadFrom(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are read without an error", n, len(whole))
		}
	}
}

// TestTopicsWithoutIDs: they go at version 4, which names them, beside others with ids.
func TestTopicsWithoutIDs(t *testing.T) {
	s, from := recordedStep()
	l := s.leaders[place{"u", 1}]
	l.id = [16]byte{}
	s.leaders[place{"u", 1}] = l
	for version, want := range map[int16]string{7: "7:t 4:u", 5: "5:t 4:u", 4: "4:t,u", 2: "2:t,u"} {
		var got []string
		for _, req := range from.leaderAndISR(version, s.leaders) {
			var topics []string
			for _, ts := range req.(*kmsg.LeaderAndISRRequest).TopicStates {
				topics = append(topics, ts.Topic)
			}
			got = append(got, fmt.Sprintf("%d:%s", req.GetVersion(), strings.Join(topics, ",")))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("version %d: %s, want %s", version, s, want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	plain := meta.Endpoint{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "p", Port: 1}
	inner := meta.Endpoint{Listener: "INNER", Protocol: "PLAINTEXT", Host: "i", Port: 2}
	outer := meta.Endpoint{Listener: "OUTER", Protocol: "SSL", Host: "o", Port: 3}
	for _, c := range []struct {
		listener string
		of       []meta.Endpoint
		want     string // host, or part of the error
	}{
		{"", []meta.Endpoint{outer, inner, plain}, "p"},
		{"", []meta.Endpoint{outer, inner}, "i"},
		{"INNER", []meta.Endpoint{plain, inner}, "i"},
		{"", []meta.Endpoint{outer}, "[OUTER://o:3]; add a PLAINTEXT listener"},
		{"", nil, "no usable"},
		{"OUTER", []meta.Endpoint{plain, outer}, "OUTER of the broker has protocol SSL"},
		{"OTHER", []meta.Endpoint{plain}, "no listener OTHER (inter.broker.listener.name), it has [PLAINTEXT://p:1]"},
	} {
		got, err := Endpoint(c.listener, c.of)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.Host != c.want {
			t.Errorf("%q of %v: %v, %v, want %q", c.listener, c.of, got, err, c.want)
		}
	}
}
