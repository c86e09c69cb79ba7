package config

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// described is a line of the golden files: what a real Kafka answered to DescribeConfigs with synonyms.
type described struct {
	Name      string  `json:"name"`
	Value     *string `json:"value"`
	Source    Source  `json:"source"`
	Type      Type    `json:"type"`
	ReadOnly  bool    `json:"read_only"`
	Sensitive bool    `json:"sensitive"`
	Synonyms  []struct {
		Name   string  `json:"name"`
		Value  *string `json:"value"`
		Source Source  `json:"source"`
	} `json:"synonyms"`
}

func golden(t *testing.T, name string) map[string]described {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]described{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var d described
		if err := json.Unmarshal(s.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		all[d.Name] = d
	}
	return all
}

func newServer(t *testing.T, settings map[string]string) *Server {
	t.Helper()
	s, _, err := NewServer(Layer{Values: settings})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compare(t *testing.T, got Entry, want described) {
	t.Helper()
	var synonyms []Synonym
	for _, s := range want.Synonyms {
		if s.Source != SourceDynamicDefault { // KRaft sets min.insync.replicas so by itself
			synonyms = append(synonyms, Synonym(s))
		}
	}
	if want.Source == SourceDynamicDefault {
		want.Source = SourceDefault
	}
	ours := Entry{Name: want.Name, Value: want.Value, Source: want.Source, Type: want.Type, ReadOnly: want.ReadOnly, Sensitive: want.Sensitive,
		Synonyms: synonyms, Documentation: got.Documentation}
	if !reflect.DeepEqual(got, ours) {
		t.Errorf("%s\n got %s\nwant %s", want.Name, show(got), show(ours))
	}
	if got.Documentation == "" {
		t.Errorf("%s has no documentation", got.Name)
	}
}

func show(e Entry) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// These settings were given to the Kafka 4.4.0 that answered.
func kafkaSettings() map[string]string {
	return map[string]string{
		"log.retention.hours": "24", "log.roll.ms": "3600000", "log.roll.hours": "7", "log.flush.scheduler.interval.ms": "500",
		"message.max.bytes": "2000000", "log.segment.bytes": "2000000", "log.cleanup.policy": "delete,compact", "auto.create.topics.enable": "false",
		"num.partitions": "1", "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr": "1", "log.dirs": "/data", "node.id": "1",
		"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@127.0.0.1:47393", "process.roles": "broker,controller",
		"share.coordinator.state.topic.min.isr": "1", "share.coordinator.state.topic.replication.factor": "1",
	}
}

// durable are the keys whose default is not Kafka's.
func durable(name string) bool {
	switch name {
	case "flush.messages", "log.flush.interval.messages", "log.dir", "listeners", "advertised.listeners", "listener.security.protocol.map",
		"socket.receive.buffer.bytes":
		return true
	}
	return false
}

func TestDescribeTopicAsKafka(t *testing.T) {
	own := map[string]string{"preallocate": "TRUE", "retention.ms": " 7 ", "segment.ms": "+5", "min.cleanable.dirty.ratio": "1e-1",
		"cleanup.policy": "compact , delete", "compression.type": " gzip ", "leader.replication.throttled.replicas": "0:1,0:2", "flush.messages": "007"}
	for _, tc := range []struct {
		file      string
		overrides map[string]string
		settings  map[string]string
		missing   []string // keys that this version of Kafka does not have
	}{
		{"kafka-4.4.0-topic-plain.jsonl", nil, kafkaSettings(),
			[]string{"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}},
		{"kafka-4.4.0-topic-own-keys.jsonl", own, kafkaSettings(),
			[]string{"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}},
		{"kafka-3.9.1-topic-plain.jsonl", nil, nil, []string{"max.decompressed.message.bytes", "errors.deadletterqueue.group.enable", "remote.copy.lag.ms", "remote.copy.lag.bytes"}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			want := golden(t, tc.file)
			entries := newServer(t, tc.settings).DescribeTopic(tc.overrides, nil)
			for _, e := range entries {
				w, ok := want[e.Name]
				switch {
				case !ok && strings.Contains(strings.Join(tc.missing, " "), e.Name), durable(e.Name):
				case strings.HasPrefix(tc.file, "kafka-3.9.1") && e.Name == "message.timestamp.after.max.ms": // 4.0 changed the default
				case !ok:
					t.Errorf("Kafka has no %s", e.Name)
				default:
					compare(t, e, w)
				}
			}
			if len(entries) != len(want)+len(tc.missing) {
				t.Errorf("%d entries, want %d", len(entries), len(want)+len(tc.missing))
			}
		})
	}
}

func TestDescribeBrokerAsKafka(t *testing.T) {
	want := golden(t, "kafka-4.4.0-broker.jsonl")
	compared := 0
	for _, e := range newServer(t, kafkaSettings()).DescribeBroker(nil) {
		if w, ok := want[e.Name]; ok && !durable(e.Name) {
			compare(t, e, w)
			compared++
		}
	}
	if compared < 340 {
		t.Errorf("only %d keys compared", compared)
	}
}

func TestDescribeNamed(t *testing.T) {
	s := newServer(t, map[string]string{"num.partitions": "3"})
	got := s.DescribeBroker([]string{"num.partitions", "no.such.key", "default.replication.factor"})
	if len(got) != 2 || got[0].Name != "default.replication.factor" || got[1].Name != "num.partitions" || *got[1].Value != "3" || got[1].Source != SourceStatic {
		t.Errorf("got %+v", got)
	}
	if got := s.DescribeTopic(nil, []string{}); len(got) != 0 {
		t.Errorf("no names gave %d entries", len(got))
	}
	// R020: what tools ask for by name.
	for _, name := range []string{"num.partitions", "default.replication.factor", "auto.create.topics.enable", "min.insync.replicas", "log.retention.ms",
		"log.retention.hours", "message.max.bytes", "delete.topic.enable", "offsets.retention.minutes", "advertised.listeners", "authorizer.class.name"} {
		if len(s.DescribeBroker([]string{name})) != 1 {
			t.Errorf("broker has no %s", name)
		}
	}
}

func TestDescribeDynamic(t *testing.T) {
	s, _, err := NewServer(
		Layer{Source: SourceDynamicDefault, Values: map[string]string{"log.retention.ms": "2000", "message.max.bytes": "5"}},
		Layer{Values: map[string]string{"log.retention.ms": "3000"}},
		Layer{Source: SourceDynamicBroker, Values: map[string]string{"log.retention.ms": "1000"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	e := s.DescribeTopic(nil, []string{"retention.ms"})[0]
	if *e.Value != "1000" || e.Source != SourceDynamicBroker || len(e.Synonyms) < 3 || *e.Synonyms[1].Value != "2000" || e.Synonyms[2].Source != SourceStatic {
		t.Errorf("got %s", show(e))
	}
	if s.Defaults.RetentionMs != 1000 || s.Defaults.MaxMessageBytes != 5 {
		t.Errorf("defaults %+v", s.Defaults)
	}
}
