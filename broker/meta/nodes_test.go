package meta

import (
	"errors"
	"reflect"
	"testing"
)

// The texts are what Apache Kafka 3.9.1 wrote.
func TestNodesAsKafka(t *testing.T) {
	id := [16]byte{0x93, 0x12, 0x46, 0x7a, 0x33, 0x55, 0x41, 0x6f, 0xa3, 0xfe, 0x8b, 0xbf, 0x9c, 0xb8, 0x3e, 0xb2}
	for _, tc := range []struct {
		name   string
		node   any
		decode func([]byte) (any, error)
		want   string
	}{
		{"topic", TopicNode{ID: id, Replicas: Replicas{0: {1}, 10: {2, 1}, 2: {1}}, Adding: Replicas{}, Removing: Replicas{}},
			func(b []byte) (any, error) { return DecodeTopic(b) },
			`{"partitions":{"0":[1],"2":[1],"10":[2,1]},"topic_id":"kxJGejNVQW-j_ou_nLg-sg","adding_replicas":{},"removing_replicas":{},"version":3}`},
		{"state", PartitionState{ControllerEpoch: 1, Leader: 1, Version: 1, LeaderEpoch: 0, ISR: []int32{1}},
			func(b []byte) (any, error) { return DecodePartitionState(b) },
			`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`},
		{"controller", ControllerNode{Broker: 1, Timestamp: 1796078724207},
			func(b []byte) (any, error) { return DecodeController(b) },
			`{"version":2,"brokerid":1,"timestamp":"1796078724207","kraftControllerEpoch":-1}`},
		{"producer ids", ProducerIDBlock{Broker: 1, Start: 1000, End: 1999},
			func(b []byte) (any, error) { return DecodeProducerIDBlock(b) },
			`{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}`},
		{"broker", BrokerNode{Endpoints: []Endpoint{{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 25392}}, Rack: "r1", Timestamp: 1796079714579},
			func(b []byte) (any, error) { return DecodeBroker(b) },
			`{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:25392"],"rack":"r1","jmx_port":-1,"port":25392,"host":"127.0.0.1","version":5,"timestamp":"1796079714579"}`},
	} {
		if got := string(tc.node.(interface{ Encode() []byte }).Encode()); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.name, got, tc.want)
		}
		back, err := tc.decode([]byte(tc.want))
		if err != nil || !reflect.DeepEqual(back, tc.node) {
			t.Errorf("%s is read as %+v, %v, want %+v", tc.name, back, err, tc.node)
		}
	}
	if got := string(EncodeConfig(map[string]string{"retention.ms": "1000", "cleanup.policy": "compact,delete", "x": "<&>"})); got !=
		`{"version":1,"config":{"cleanup.policy":"compact,delete","retention.ms":"1000","x":"<&>"}}` {
		t.Error(got)
	}
	if got := string(EncodeConfig(nil)); got != `{"version":1,"config":{}}` {
		t.Error(got)
	}
	if got := string(EncodeClusterID("Y0YoI55FQqC5Q7sKYKCzbQ")); got != `{"version":"1","id":"Y0YoI55FQqC5Q7sKYKCzbQ"}` {
		t.Error(got)
	}
	if got := string(EncodeEpoch(7)); got != "7" {
		t.Error(got)
	}
}

func TestOlderNodes(t *testing.T) {
	topic, err := DecodeTopic([]byte(`{"version":1,"partitions":{"0":[3,1]},"later":{"a":1}}`))
	if err != nil || topic.ID != [16]byte{} || !reflect.DeepEqual(topic.Replicas, Replicas{0: {3, 1}}) {
		t.Errorf("%+v, %v", topic, err)
	}
	if got := string(topic.Encode()); got != `{"partitions":{"0":[3,1]},"adding_replicas":{},"removing_replicas":{},"version":2}` {
		t.Error(got)
	}
	for _, text := range []string{
		`{"jmx_port":-1,"timestamp":"5","host":"h","version":1,"port":9092}`,
		`{"jmx_port":-1,"timestamp":5,"endpoints":["PLAINTEXT://h:9092"],"host":"h","version":2,"port":9092}`,
		`{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],"host":null,"version":4,"port":-1,"timestamp":"5"}`,
	} {
		n, err := DecodeBroker([]byte(text))
		want := BrokerNode{Endpoints: []Endpoint{{"PLAINTEXT", "PLAINTEXT", "h", 9092}}, Timestamp: 5}
		if err != nil || !reflect.DeepEqual(n, want) {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
	}
}

func TestBadNodes(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"partitions":{"-1":[1]}}`, `{"partitions":{"0":[]}}`, `{"partitions":{"x":[1]}}`,
		`{"partitions":{"0":[1]},"topic_id":"short"}`, `{"partitions":{"0":[99999999999]}}`} {
		if n, err := DecodeTopic([]byte(text)); !errors.Is(err, ErrBadNode) {
			t.Errorf("topic %q: %+v, %v", text, n, err)
		}
	}
	for _, text := range []string{"{", `{"leader":-2}`, `{"leader_epoch":-1}`} {
		if n, err := DecodePartitionState([]byte(text)); !errors.Is(err, ErrBadNode) {
			t.Errorf("state %q: %+v, %v", text, n, err)
		}
	}
	for _, text := range []string{`{"block_start":"5","block_end":"4"}`, `{"block_start":"x"}`, `{"block_start":"-1"}`} {
		if n, err := DecodeProducerIDBlock([]byte(text)); !errors.Is(err, ErrBadNode) {
			t.Errorf("block %q: %+v, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "-1", "x", "99999999999"} {
		if _, err := DecodeEpoch([]byte(text)); !errors.Is(err, ErrBadNode) {
			t.Errorf("epoch %q: %v", text, err)
		}
	}
	if _, err := DecodeClusterID([]byte(`{"version":"1"}`)); !errors.Is(err, ErrBadNode) {
		t.Error(err)
	}
	if _, err := DecodeBroker([]byte(`{"endpoints":["PLAINTEXT:h:1"]}`)); !errors.Is(err, ErrBadNode) {
		t.Error(err)
	}
	if _, err := DecodeConfig([]byte(`{"config":[]}`)); !errors.Is(err, ErrBadNode) {
		t.Error(err)
	}
}

// What can be read can be written, and then reads the same.
func FuzzNodes(f *testing.F) {
	for _, text := range []string{
		`{"partitions":{"0":[1]},"topic_id":"kxJGejNVQW-j_ou_nLg-sg","adding_replicas":{},"removing_replicas":{"1":[2]},"version":3}`,
		`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`,
		`{"version":2,"brokerid":1,"timestamp":"1796078724207","kraftControllerEpoch":-1}`,
		`{"features":{},"listener_security_protocol_map":{"A":"SSL"},"endpoints":["A://[::1]:25392"],"rack":"r1","jmx_port":-1,"host":null,"version":5}`,
		`{"version":1,"broker":1,"block_start":"0","block_end":"999"}`, `{"version":1,"config":{"a":"b"}}`, `{"version":"1","id":"x"}`, "7",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := DecodeTopic(b); err == nil {
			again(t, n.Encode(), DecodeTopic, TopicNode.Encode)
		}
		if n, err := DecodePartitionState(b); err == nil {
			again(t, n.Encode(), DecodePartitionState, PartitionState.Encode)
		}
		if n, err := DecodeController(b); err == nil {
			again(t, n.Encode(), DecodeController, ControllerNode.Encode)
		}
		if n, err := DecodeBroker(b); err == nil {
			again(t, n.Encode(), DecodeBroker, BrokerNode.Encode)
		}
		if n, err := DecodeProducerIDBlock(b); err == nil {
			again(t, n.Encode(), DecodeProducerIDBlock, ProducerIDBlock.Encode)
		}
		if n, err := DecodeConfig(b); err == nil {
			again(t, EncodeConfig(n), DecodeConfig, EncodeConfig)
		}
		if n, err := DecodeClusterID(b); err == nil {
			again(t, EncodeClusterID(n), DecodeClusterID, EncodeClusterID)
		}
		if n, err := DecodeEpoch(b); err == nil {
			again(t, EncodeEpoch(n), DecodeEpoch, EncodeEpoch)
		}
	})
}

func again[N any](t *testing.T, b []byte, decode func([]byte) (N, error), encode func(N) []byte) {
	t.Helper()
	n, err := decode(b)
	if err != nil {
		t.Fatalf("%s was written and cannot be read: %v", b, err)
	}
	if got := encode(n); string(got) != string(b) {
		t.Fatalf("%s was written, read and written as %s", b, got)
	}
}
