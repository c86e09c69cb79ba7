package meta

import (
	"errors"
	"reflect"
	"testing"
)

// The texts are what Apache Kafka 3.9.1 writes.
func TestChangeNodesAsKafka(t *testing.T) {
	for _, tc := range []struct {
		name   string
		node   any
		bytes  []byte
		decode func([]byte) (any, error)
		want   string
	}{
		{"config change", ConfigChange{"users/a%20b"}, ConfigChange{"users/a%20b"}.Encode(),
			func(b []byte) (any, error) { return DecodeConfigChange(b) }, `{"version":2,"entity_path":"users/a%20b"}`},
		{"isr change", []TopicPartition{{"t", 0}, {"u", 1}}, EncodeISRChange([]TopicPartition{{"t", 0}, {"u", 1}}),
			func(b []byte) (any, error) { return DecodeISRChange(b) }, `{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":1}]}`},
		{"election", []TopicPartition{{"t", 0}}, EncodePreferredElection([]TopicPartition{{"t", 0}}),
			func(b []byte) (any, error) { return DecodePreferredElection(b) }, `{"version":1,"partitions":[{"topic":"t","partition":0}]}`},
		{"reassignment", []Reassignment{{"t", 0, []int32{2, 1}}}, EncodeReassignment([]Reassignment{{"t", 0, []int32{2, 1}}}),
			func(b []byte) (any, error) { return DecodeReassignment(b) }, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}`},
		{"log directory event", LogDirEvent{1, 3, LogDirFailure}, LogDirEvent{Broker: 3}.Encode(),
			func(b []byte) (any, error) { return DecodeLogDirEvent(b) }, `{"version":1,"broker":3,"event":1}`},
		{"features", FeatureNode{2, true, map[string]FeatureLevels{}}, FeatureNode{Version: 2, Enabled: true}.Encode(),
			func(b []byte) (any, error) { return DecodeFeature(b) }, `{"features":{},"version":2,"status":1}`},
		{"features of version 1", FeatureNode{1, false, map[string]FeatureLevels{"f": {1, 2}}}, FeatureNode{1, false, map[string]FeatureLevels{"f": {1, 2}}}.Encode(),
			func(b []byte) (any, error) { return DecodeFeature(b) },
			`{"features":{"f":{"min_version_level":1,"max_version_level":2}},"version":1,"status":0}`},
		{"features of version 2", FeatureNode{2, true, map[string]FeatureLevels{"f": {0, 2}}}, FeatureNode{2, true, map[string]FeatureLevels{"f": {0, 2}}}.Encode(),
			func(b []byte) (any, error) { return DecodeFeature(b) }, `{"features":{"f":2},"version":2,"status":1}`},
	} {
		if string(tc.bytes) != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.name, tc.bytes, tc.want)
		}
		if back, err := tc.decode([]byte(tc.want)); err != nil || !reflect.DeepEqual(back, tc.node) {
			t.Errorf("%s is read as %+v, %v, want %+v", tc.name, back, err, tc.node)
		}
	}
	if n, err := DecodeConfigChange([]byte(`{"version":1,"entity_type":"topics","entity_name":"T"}`)); err != nil || n.Entity != "topics/T" {
		t.Errorf("version 1: %+v, %v", n, err)
	}
	if got := string(EncodeReassignment(nil)) + string(EncodeISRChange(nil)); got != `{"version":1,"partitions":[]}{"version":1,"partitions":[]}` {
		t.Error(got)
	}
}

func TestBadChangeNodes(t *testing.T) {
	decoders := map[string]func([]byte) error{
		"config change": func(b []byte) error { _, err := DecodeConfigChange(b); return err },
		"isr change":    func(b []byte) error { _, err := DecodeISRChange(b); return err },
		"election":      func(b []byte) error { _, err := DecodePreferredElection(b); return err },
		"reassignment":  func(b []byte) error { _, err := DecodeReassignment(b); return err },
		"event":         func(b []byte) error { _, err := DecodeLogDirEvent(b); return err },
		"features":      func(b []byte) error { _, err := DecodeFeature(b); return err },
	}
	for name, texts := range map[string][]string{
		"config change": {"", "{", `{"version":3,"entity_path":"topics/a"}`, `{"version":2}`, `{"version":2,"entity_path":"topics"}`, `{"version":2,"entity_path":"/a"}`,
			`{"version":2,"entity_path":"topics/a/"}`, `{"version":2,"entity_path":"topics//a"}`, `{"version":1,"entity_type":"topics"}`, `{"version":1,"entity_name":"a"}`},
		"isr change":   {"x", `{"version":1,"partitions":[{"topic":"","partition":0}]}`, `{"version":1,"partitions":[{"topic":"a","partition":-1}]}`},
		"election":     {"[]", `{"version":1,"partitions":{}}`},
		"reassignment": {"{", `{"version":1,"partitions":[{"topic":"a","partition":-1,"replicas":[1]}]}`, `{"version":1,"partitions":[{"replicas":[1]}]}`},
		"event":        {"", `{"version":1,"broker":1,"event":2}`, `{"version":1,"broker":-1,"event":1}`},
		"features":     {"", `{"version":3,"status":1}`, `{"version":2,"status":2}`, `{"version":2,"status":1,"features":{"f":{}}}`, `{"version":1,"status":1,"features":{"f":1}}`},
	} {
		for _, text := range texts {
			if err := decoders[name]([]byte(text)); !errors.Is(err, ErrBadNode) {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
	}
}

// What can be read can be written, and then reads the same.
func FuzzChangeNodes(f *testing.F) {
	for _, text := range []string{
		`{"version":2,"entity_path":"topics/t1"}`, `{"version":1,"entity_type":"topics","entity_name":"T"}`, `{"version":1,"broker":3,"event":1}`,
		`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}`, `{"version":1,"partitions":[{"topic":"t","partition":0}]}`,
		`{"features":{"f":{"min_version_level":1,"max_version_level":2}},"version":1,"status":0}`, `{"features":{"f":2},"version":2,"status":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := DecodeConfigChange(b); err == nil {
			again(t, n.Encode(), DecodeConfigChange, ConfigChange.Encode)
		}
		if n, err := DecodeISRChange(b); err == nil {
			again(t, EncodeISRChange(n), DecodeISRChange, EncodeISRChange)
		}
		if n, err := DecodePreferredElection(b); err == nil {
			again(t, EncodePreferredElection(n), DecodePreferredElection, EncodePreferredElection)
		}
		if n, err := DecodeReassignment(b); err == nil {
			again(t, EncodeReassignment(n), DecodeReassignment, EncodeReassignment)
		}
		if n, err := DecodeLogDirEvent(b); err == nil {
			again(t, n.Encode(), DecodeLogDirEvent, LogDirEvent.Encode)
		}
		if n, err := DecodeFeature(b); err == nil {
			again(t, n.Encode(), DecodeFeature, FeatureNode.Encode)
		}
	})
}
