package interop

import (
	"archive/zip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keep is where TestOldFormats leaves the directories that it made, for the test in broker that needs no Kafka:
//
//	go test ./interop -run TestOldFormats -keep ../../broker/testdata/kafka-2.8.2
var keep = flag.String("keep", "", "folder for the data directories that Kafka made, as zip files")

// TestOldFormats opens directories that Kafka 2.8.2 wrote in each message format.
func TestOldFormats(t *testing.T) {
	if harness.Foreign(t, "that directories with old message formats open in gregor") {
		return
	}
	zk := peer.ZooKeeper(t)
	for _, format := range []string{"0.8.2", "0.10.0", "2.8"} {
		t.Run(format, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kafka")
			theirs := peer.StartOn(t, "2.8.2", zk+"/format-"+format, dir, "log.message.format.version="+format, "offsets.topic.num.partitions=3",
				"offsets.topic.segment.bytes=1048576", "transaction.state.log.num.partitions=2", "log.index.size.max.bytes=4096")
			all := []string{"none", "gzip", "snappy", "lz4"}
			if format == "0.8.2" {
				all = all[:3] // franz-go does not read the lz4 of message format 0, whose header checksum Kafka writes wrong
			}
			fillOld(t, theirs.Broker, all)
			want := capture(t, theirs.Broker)
			topics := describe(t, "2.8.2", "kafka.admin.TopicCommand", theirs.Broker)
			theirs.Stop(t)
			if *keep != "" {
				pack(t, dir, want, filepath.Join(*keep, format+".zip"))
			}
			gregor(t, "import", "--from", dir, "--configs", topics)
			ours := harness.Start(t, harness.Config{Dir: dir})
			want.equal(t, capture(t, ours), "in gregor")
			goOnOld(t, ours)
			ours.Stop(t)
			ours.Up(t)
			now := capture(t, ours)
			if now.Ends["old-0"] != want.Ends["old-0"]+10 {
				t.Errorf("end of old-0 is %d, want %d", now.Ends["old-0"], want.Ends["old-0"]+10)
			}
			ours.Stop(t)
			if format == "2.8" { // on to Kafka in KRaft mode, which does not take the topic's segment.bytes
				gregor(t, "export-kraft", "--data-dir", dir)
				now.Configs["old"]["segment.bytes"] = "1048576"
				delete(now.Configs["old"], "message.format.version") // which it does not know
				latest := peer.Start(t, "4.4.0", dir)
				settleGroups(t, latest.Broker, len(now.Offsets))
				now.equal(t, capture(t, latest.Broker), "in Kafka 4.4.0")
			}
		})
	}
}

// fillOld writes with each codec, over several segments, and commits offsets of two groups.
func fillOld(t *testing.T, b *harness.Broker, with []string) {
	t.Helper()
	b.Create(t, 2, []string{"segment.bytes=8192"}, "old")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, codec := range with {
		cl := b.Client(t, kgo.ProducerBatchCompression(codecs[codec]), kgo.DisableIdempotentWrite(), kgo.MaxBufferedRecords(1000))
		for i := range 120 {
			r := &kgo.Record{Topic: "old", Partition: int32(i % 2), Key: fmt.Appendf(nil, "k%d", i), Value: []byte(codec + strings.Repeat(fmt.Sprint(" ", i), 30)),
				Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i))}
			if i%10 == 0 {
				r.Value = nil
			}
			cl.Produce(ctx, r, nil)
			if i%20 == 19 {
				if err := cl.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		cl.Close()
	}
	commit(t, b, "first", "old", map[int32]int64{0: 17, 1: 100})
	commit(t, b, "second", "old", map[int32]int64{0: 180})
}

// commit stores offsets of a group.
func commit(t *testing.T, b *harness.Broker, group, topic string, at map[int32]int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	offsets := kadm.Offsets{}
	for p, o := range at {
		offsets.Add(kadm.Offset{Topic: topic, Partition: p, At: o, LeaderEpoch: -1, Metadata: "by " + group})
	}
	if err := kadm.NewClient(b.Client(t)).CommitAllOffsets(ctx, group, offsets); err != nil {
		t.Fatalf("committing offsets of %s: %v", group, err)
	}
}

// goOnOld writes after what is there, and has a consumer of a group go on where it was.
func goOnOld(t *testing.T, b *harness.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := b.Client(t, kgo.DisableIdempotentWrite()) // which the old formats have no room for
	for i := range 10 {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "old", Partition: 0, Value: fmt.Append(nil, "new ", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cl.Close()
	reads(t, b, "first", "old", map[int32]int64{0: 17, 1: 100})
}

// reads joins a group and demands that the first record of each partition is the one that was committed.
func reads(t *testing.T, b *harness.Broker, group, topic string, want map[int32]int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := b.Client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.KeepControlRecords())
	defer cl.Close()
	seen := map[int32]bool{}
	for len(seen) < len(want) {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("group %s: %v", group, err)
		}
		for r := range fetches.RecordsAll() {
			if first, ok := want[r.Partition]; ok && !seen[r.Partition] && r.Offset != first {
				t.Errorf("group %s goes on at offset %d of partition %d, committed was %d", group, r.Offset, r.Partition, first)
			}
			seen[r.Partition] = true
		}
	}
}

// pack makes a zip file of a data directory, with what is in it as expected.json.
func pack(t *testing.T, dir string, s *state, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	add := func(name string, b []byte) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	add("expected.json", b)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		add("data/"+filepath.ToSlash(name), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
