package broker

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/adopt"
	"gregor/broker/meta"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// kafkaState is expected.json in the zip files of testdata: what Apache Kafka said of a directory before it was stopped. They are made by the
// tests of compat/interop, with -keep.
type kafkaState struct {
	Records map[string][]struct {
		Offset     int64
		Key, Value string
		NullValue  bool
		Headers    []string
		Millis     int64
		Control    bool
	}
	Offsets      map[string]map[string]int64
	Starts, Ends map[string]int64
	Configs      map[string]map[string]string
	IDs          map[string]string
}

// unpack puts a data directory of Apache Kafka into a folder of its own.
func unpack(t *testing.T, name string) (dir string, s *kafkaState) {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir = t.TempDir()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		path, ours := strings.CutPrefix(f.Name, "data/")
		if !ours {
			if err := json.Unmarshal(b, &s); err != nil {
				t.Fatal(err)
			}
			continue
		}
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

// split takes "topic-0" apart.
func split(t *testing.T, name string) (string, int32) {
	t.Helper()
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[i+1:])
	if err != nil {
		t.Fatal(err)
	}
	return name[:i], int32(n)
}

// verify compares what clients see with what Kafka had.
func (s *kafkaState) verify(t *testing.T, b *testBroker) {
	t.Helper()
	from, left := map[string]map[int32]kgo.Offset{}, 0
	for name, records := range s.Records {
		topic, n := split(t, name)
		p := b.topics.name(topic).partition(n)
		if p.log.StartOffset() != s.Starts[name] || p.log.EndOffset() != s.Ends[name] || p.log.HighWatermark() != s.Ends[name] {
			t.Errorf("%s is %d to %d, was %d to %d", name, p.log.StartOffset(), p.log.EndOffset(), s.Starts[name], s.Ends[name])
		}
		if from[topic] == nil {
			from[topic] = map[int32]kgo.Offset{}
		}
		from[topic][n] = kgo.NewOffset().At(s.Starts[name])
		left += len(records)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumePartitions(from), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := map[string]int{}
	for ; left > 0; left = max(left, 0) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			name := fmt.Sprintf("%s-%d", r.Topic, r.Partition)
			want := s.Records[name][seen[name]]
			seen[name]++
			left--
			if r.Offset != want.Offset || r.Attrs.IsControl() != want.Control {
				t.Fatalf("%s: offset %d, want %d", name, r.Offset, want.Offset)
			}
			if !want.Control && (string(r.Key) != want.Key || string(r.Value) != want.Value || (r.Value == nil) != want.NullValue ||
				r.Timestamp.UnixMilli() != want.Millis || len(r.Headers) != len(want.Headers)) {
				t.Fatalf("%s: record at %d is %q=%.80q, want %q=%.80q", name, r.Offset, r.Key, r.Value, want.Key, want.Value)
			}
		}
	}
	s.verifyOffsets(t, b)
}

// verifyOffsets asks for the committed offsets of every group.
func (s *kafkaState) verifyOffsets(t *testing.T, b *testBroker) {
	t.Helper()
	c := b.dial()
	for group, want := range s.Offsets {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Group, r.Topics = group, nil
		var resp *kmsg.OffsetFetchResponse
		waitFor(t, func() bool {
			resp = ask[*kmsg.OffsetFetchResponse](c, 7, r)
			return resp.ErrorCode != 14 // COORDINATOR_LOAD_IN_PROGRESS
		})
		found := 0
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				found++
				if name := fmt.Sprintf("%s-%d", topic.Topic, p.Partition); want[name] != p.Offset {
					t.Errorf("group %s: %s is %d, want %d", group, name, p.Offset, want[name])
				}
			}
		}
		if found != len(want) || resp.ErrorCode != 0 {
			t.Errorf("group %s: %d offsets and error %d, want %d", group, found, resp.ErrorCode, len(want))
		}
	}
}

func TestKafkaDirectoriesAreTakenOver(t *testing.T) {
	for _, name := range []string{"kafka-2.8.2/0.8.2.zip", "kafka-2.8.2/0.10.0.zip", "kafka-2.8.2/2.8.zip", "kafka-4.4.0/kraft.zip"} {
		t.Run(name, func(t *testing.T) {
			dir, want := unpack(t, name)
			before, err := logdir.Look(vfs.OS(), dir)
			if err != nil {
				t.Fatal(err)
			}
			b := startBroker(t, dir)
			want.verify(t, b)
			if b.nodeID != before.Identity.BrokerID || b.ClusterID() != before.Identity.ClusterID {
				t.Errorf("broker %d of cluster %s, was %d of %s", b.nodeID, b.ClusterID(), before.Identity.BrokerID, before.Identity.ClusterID)
			}
			for topic, keys := range want.Configs {
				own := b.topics.name(topic).ownKeys()
				for k, v := range keys {
					if before.Identity.Version == 1 && own[k] != v {
						t.Errorf("topic %s: %s=%s, was %s", topic, k, own[k], v)
					}
				}
				if own["retention.ms"] != "-1" {
					t.Errorf("topic %s would lose records: %v", topic, own)
				}
			}
			b.stopClean()
			again := startBroker(t, dir)
			want.verify(t, again)
		})
	}
}

// TestKafkaDirectoryAfterAKill: no marker, no checkpoints.
func TestKafkaDirectoryAfterAKill(t *testing.T) {
	dir, want := unpack(t, "kafka-4.4.0/kraft.zip")
	for _, name := range []string{".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	want.verify(t, startBroker(t, dir))
}

// TestStartThatEndedBeforeTheTreeWasFilled finds a tree with nothing in it.
func TestStartThatEndedBeforeTheTreeWasFilled(t *testing.T) {
	dir, want := unpack(t, "kafka-2.8.2/2.8.zip")
	tree, err := meta.OpenLocal(filepath.Join(dir, meta.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	want.verify(t, startBroker(t, dir))
}

// TestKafkaDirectoryWithoutIdentity is of a broker before clusters had ids.
func TestKafkaDirectoryWithoutIdentity(t *testing.T) {
	for _, imported := range []bool{false, true} {
		dir, want := unpack(t, "kafka-2.8.2/0.8.2.zip")
		if err := os.WriteFile(filepath.Join(dir, "meta.properties"), []byte("version=0\nbroker.id=4\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if imported {
			if _, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}, NodeID: -1}); err != nil {
				t.Fatal(err)
			}
		}
		b := startBroker(t, dir)
		if b.nodeID != 4 || len(b.ClusterID()) != 22 {
			t.Errorf("broker %d of cluster %q", b.nodeID, b.ClusterID())
		}
		want.verify(t, b)
	}
}

// TestNothingChangesWhenSomethingIsInTheWay starts and imports; neither may touch the directory.
func TestNothingChangesWhenSomethingIsInTheWay(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"partition 0 of 2": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "t0-0")) },
		"belongs to topic id": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "t0-0", "partition.metadata"), []byte("version: 0\ntopic_id: kALPolkCTO2ScoCqTgFPoQ"), 0o644)
		},
		"is damaged": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "t0-0", "00000000000000000000.log"), make([]byte, 500), 0o644)
		},
		"in none of the directories": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "__cluster_metadata-0")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := unpack(t, "kafka-4.4.0/kraft.zip")
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			before := fingerprint(t, dir)
			var blocked *adopt.BlockedError
			says := strings.ReplaceAll(name, "partition 0 of 2", "partitions 0 of 2")
			if err := newBroker(t, Config{}, dir).Start(t.Context()); !errors.As(err, &blocked) || !strings.Contains(err.Error(), says) {
				t.Errorf("start: %v", err)
			}
			if _, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}}); !errors.As(err, &blocked) || !strings.Contains(err.Error(), says) {
				t.Errorf("import: %v", err)
			}
			sameFiles(t, dir, before)
		})
	}
}

func TestImport(t *testing.T) {
	dir, want := unpack(t, "kafka-2.8.2/2.8.zip")
	before := fingerprint(t, dir)
	configs := "Topic: old\tTopicId: kALPolkCTO2ScoCqTgFPoQ\tPartitionCount: 2\tConfigs: retention.ms=-1,segment.bytes=8192\n"
	plan, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}, DryRun: true, Configs: strings.NewReader(configs)})
	if err != nil {
		t.Fatalf("dry run: %v", err)
	}
	sameFiles(t, dir, before)
	if plan.Groups.Groups != 2 || plan.Groups.Offsets != 3 || len(plan.Topics) != 2 || plan.Topics[1].Partitions[0].End != 240 {
		t.Errorf("plan %+v", plan)
	}
	var text strings.Builder
	if err := plan.Print(&text); err != nil || !strings.Contains(text.String(), "old, id kALPolkCTO2ScoCqTgFPoQ: 2 partitions") {
		t.Errorf("%v\n%s", err, text.String())
	}
	lock, err := logdir.Lock(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}}); !errors.Is(err, logdir.ErrInUse) {
		t.Errorf("while Kafka runs: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}, Configs: strings.NewReader(configs)}); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportKafka(t.Context(), Import{Dirs: []string{dir}}); !errors.Is(err, ErrImported) {
		t.Errorf("twice: %v", err)
	}
	b := startBroker(t, dir)
	want.verify(t, b)
	if own := b.topics.name("old").ownKeys(); own["segment.bytes"] != "8192" || len(own) != 2 {
		t.Errorf("keys %v", own)
	}
	if id, err := b.producerIDs.next(t.Context(), b.control.AllocateProducerIDs); err != nil || id < plan.NextProducerID {
		t.Errorf("producer id %d %v, the plan says %d", id, err, plan.NextProducerID)
	}
}

// fingerprint is a hash of what is in each file.
func fingerprint(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameFiles names the files that came, went or changed.
func sameFiles(t *testing.T, dir string, before map[string][32]byte) {
	t.Helper()
	after := fingerprint(t, dir)
	delete(before, filepath.Join(dir, ".lock")) // has the id of who held it last
	delete(after, filepath.Join(dir, ".lock"))
	for name, sum := range after {
		if was, ok := before[name]; !ok || was != sum {
			t.Errorf("%s was made or changed", name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}
