package broker

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gregor/broker/adopt"
	"gregor/broker/kraft"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// TestExportKRaft: the metadata that Kafka left says afterwards what the broker has.
func TestExportKRaft(t *testing.T) {
	dir, want := unpack(t, "kafka-4.4.0/kraft.zip")
	b := startBroker(t, dir)
	b.dial().create("made.here", 3, "segment.bytes", "65536")
	made := b.topics.name("made.here").id
	epoch := b.topics.name("t0").partition(1).epoch()
	if _, err := ExportKRaft(t.Context(), Export{Dirs: []string{dir}}); !errors.Is(err, logdir.ErrInUse) {
		t.Errorf("while the broker runs: %v", err)
	}
	b.stopClean()
	before := readKRaft(t, dir)
	left, err := ExportKRaft(t.Context(), Export{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if left.Records == 0 || left.NodeID != 1 || len(left.Changed) != 1 || !strings.Contains(left.Changed[0], "made.here: segment.bytes is 65536") {
		t.Errorf("%+v", left)
	}
	m := readKRaft(t, dir)
	for topic, keys := range want.Configs {
		for k, v := range keys {
			if got := m.Configs[kraft.Resource{Type: kraft.TopicResource, Name: topic}][k]; got != v {
				t.Errorf("topic %s: %s=%s, was %s", topic, k, got, v)
			}
		}
	}
	here := m.Topic("made.here")
	if here == nil || here.ID != made || len(here.Partitions) != 3 {
		t.Fatalf("made.here is %+v", here)
	}
	if m.Configs[kraft.Resource{Type: kraft.TopicResource, Name: "made.here"}]["segment.bytes"] != "1048576" {
		t.Errorf("keys %v", m.Configs)
	}
	if p := m.Topic("t0").Partitions[1]; p.LeaderEpoch != epoch || p.Leader != -1 || len(p.ISR) != 1 || p.Directories[0] != here.Partitions[0].Directories[0] {
		t.Errorf("t0-1 is %+v, the broker led it in epoch %d", p, epoch)
	}
	if m.NextProducerID < before.NextProducerID || m.Brokers[1].Epoch != before.Brokers[1].Epoch {
		t.Errorf("next producer id %d, was %d; broker %+v, was %+v", m.NextProducerID, before.NextProducerID, m.Brokers[1], before.Brokers[1])
	}
	s, err := logdir.Look(vfs.OS(), dir)
	if err != nil || s.BrokerEpoch != m.Brokers[1].Epoch {
		t.Errorf("marker has epoch %d, the registration %d: %v", s.BrokerEpoch, m.Brokers[1].Epoch, err)
	}
	want.verify(t, startBroker(t, dir)) // nothing of it keeps us from going on
}

func readKRaft(t *testing.T, dir string) *kraft.Image {
	t.Helper()
	st, err := kraft.Read(vfs.OS(), kraft.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	return st.Image
}

// TestExportOfOurOwn: a directory that Kafka never had, to KRaft, then to ZooKeeper.
func TestExportOfOurOwn(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "broker.id", "5")
	b.dial().create("mine", 2, "cleanup.policy", "compact")
	id := b.topics.name("mine").id
	rate := "1024"
	if _, err := b.control.AlterEntity(t.Context(), "/config/users/u/clients/c", map[string]*string{"producer_byte_rate": &rate}); err != nil {
		t.Fatal(err)
	}
	b.stopClean()
	left, err := ExportKRaft(t.Context(), Export{Dirs: []string{dir}, Release: "4.1"})
	if err != nil {
		t.Fatal(err)
	}
	m := readKRaft(t, dir)
	s, err := logdir.Look(vfs.OS(), dir)
	if err != nil || s.Identity.Version != 1 || s.Identity.BrokerID != 5 || s.Identity.DirectoryID == "" || s.BrokerEpoch != m.Brokers[5].Epoch {
		t.Errorf("%+v, broker %+v: %v", s, m.Brokers[5], err)
	}
	if left.Topics != 1 || m.Features["metadata.version"] != 27 || m.Topic("mine").ID != id || m.Topic("mine").Partitions[1].ISR[0] != 5 {
		t.Errorf("%+v, %+v", left, m)
	}
	var script strings.Builder
	if _, err := ExportZooKeeper(t.Context(), Export{Dirs: []string{dir}}, &script); err != nil {
		t.Fatal(err)
	}
	s, err = logdir.Look(vfs.OS(), dir)
	if err != nil || s.Identity.Version != 0 || s.Identity.BrokerID != 5 || s.Identity.ClusterID != b.ClusterID() {
		t.Errorf("%+v: %v", s.Identity, err)
	}
	nodes := map[string]string{}
	for line := range strings.Lines(script.String()) {
		if rest, ok := strings.CutPrefix(line, "set "); ok {
			path, data, _ := strings.Cut(strings.TrimSuffix(rest, "'\n"), " '")
			nodes[path] = data
		}
	}
	for path, part := range map[string]string{
		"/cluster/id": b.ClusterID(), "/config/topics/mine": `"cleanup.policy":"compact"`, "/brokers/topics/mine": `"partitions":{"0":[5],"1":[5]}`,
		"/brokers/topics/mine/partitions/1/state": `"leader":5`, "/config/users/u/clients/c": `"producer_byte_rate":"1024"`,
	} {
		if !json.Valid([]byte(nodes[path])) || !strings.Contains(nodes[path], part) {
			t.Errorf("%s is %q, want %q in it", path, nodes[path], part)
		}
	}
}

func TestExportRefuses(t *testing.T) {
	if _, err := ExportKRaft(t.Context(), Export{Dirs: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "no metadata of gregor") {
		t.Errorf("empty directory: %v", err)
	}
	dir := t.TempDir()
	b := startBroker(t, dir)
	b.dial().create("plain", 1)
	b.stopClean()
	if _, err := ExportKRaft(t.Context(), Export{Dirs: []string{dir}, Release: "1.0"}); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("release 1.0: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Fatal(err)
	}
	if _, err := ExportKRaft(t.Context(), Export{Dirs: []string{dir}}); !errors.Is(err, adopt.ErrNotClean) {
		t.Errorf("not clean: %v", err)
	}
	if _, err := os.Stat(kraft.Path(dir)); err == nil {
		t.Error("a refused export made metadata")
	}
}
