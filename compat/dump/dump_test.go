package dump

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 2

// TestDumpLogSegments: several clients, several segments, two kinds of end, no complaint.
func TestDumpLogSegments(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	topics := []string{harness.Topic("dump-a"), harness.Topic("dump-b")}
	b.Create(t, partitions, []string{"segment.bytes=1048576"}, topics...)
	fill(t, b, topics)
	client := javaView(t, b, topics)
	metadataFiles(t, b, topics)
	b.Stop(t)
	t.Run("after a clean stop", func(t *testing.T) { check(t, b, topics, client, true) })

	b.Up(t)
	fill(t, b, topics)
	b.Kill(t)
	b.Up(t) // recovers
	client = javaView(t, b, topics)
	b.Stop(t)
	t.Run("after SIGKILL, recovery and a stop", func(t *testing.T) { check(t, b, topics, client, true) })
}

// TestDumpAfterKill looks at the logs as SIGKILL left them: every batch that was acked is whole. Indexes are left out:
// they are hints, rebuilt at the next start.
func TestDumpAfterKill(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	topics := []string{harness.Topic("dump-k")}
	b.Create(t, partitions, []string{"segment.bytes=1048576"}, topics...)
	fill(t, b, topics)
	client := javaView(t, b, topics)
	b.Kill(t)
	check(t, b, topics, client, false)
}

// fill writes about 3 MB into every partition, a batch at a time, by four clients and five codecs.
func fill(t *testing.T, b *harness.Broker, topics []string) {
	t.Helper()
	for _, topic := range topics {
		for p := range int32(partitions) {
			for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
				byFranz(t, b, topic, p, codec, 900+i*100)
			}
			bySarama(t, b, topic, p)
			byKcat(t, b, topic, p)
		}
	}
}

// text is n printable bytes, since the tool prints payloads by the line. Its last third repeats its first, so that every
// codec finds something to do and the logs stay big nevertheless.
func text(n, salt int) []byte {
	b := make([]byte, n)
	x := uint32(salt)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = 'A' + byte(x>>24)%58
	}
	copy(b[n-n/3:], b)
	return b
}

func byFranz(t *testing.T, b *harness.Broker, topic string, p int32, codec kgo.CompressionCodec, n int) {
	t.Helper()
	cl := b.Client(t, kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(100_000))
	defer cl.Close()
	var recs []*kgo.Record
	for i := range n {
		recs = append(recs, &kgo.Record{Topic: topic, Partition: p, Key: fmt.Appendf(nil, "key-%d", i), Value: text(1200, i),
			Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Appendf(nil, "%d", i)}}, Timestamp: time.Now().Add(-time.Duration(i%7) * time.Second)})
	}
	for start := 0; start < n; start += 50 {
		if err := cl.ProduceSync(t.Context(), recs[start:min(n, start+50)]...).FirstErr(); err != nil {
			t.Fatalf("franz-go into %s-%d: %v", topic, p, err)
		}
	}
}

func bySarama(t *testing.T, b *harness.Broker, topic string, p int32) {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	cfg.Producer.Compression = sarama.CompressionSnappy
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	prod, err := sarama.NewSyncProducer([]string{b.Addr()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer prod.Close()
	var msgs []*sarama.ProducerMessage
	for i := range 200 {
		msgs = append(msgs, &sarama.ProducerMessage{Topic: topic, Partition: p, Value: sarama.ByteEncoder(text(900, i))})
	}
	if err := prod.SendMessages(msgs); err != nil {
		t.Fatalf("sarama into %s-%d: %v", topic, p, err)
	}
}

func byKcat(t *testing.T, b *harness.Broker, topic string, p int32) {
	t.Helper()
	kcat, err := deps.Kcat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&in, "k%d|%s\n", i, strings.ReplaceAll(string(text(300, i)), "|", "-"))
	}
	cmd := exec.CommandContext(t.Context(), kcat, "-P", "-b", b.Addr(), "-t", topic, "-p", fmt.Sprint(p), "-z", "gzip", "-K", "|", "-X", "batch.num.messages=100")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kcat into %s-%d: %v: %s", topic, p, err, out)
	}
}

// seenRecord is what Kafka's client told of one record.
type seenRecord struct{ offset, timestamp int64 }

// javaView reads the topics with kafka-clients 4.4.0 and returns offsets and timestamps by partition directory.
func javaView(t *testing.T, b *harness.Broker, topics []string) map[string][]seenRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	classPath, err := jars.Matrix(ctx, harness.CompatDir(t), "4.4.0")
	if err != nil {
		t.Fatal(err)
	}
	list, out := filepath.Join(t.TempDir(), "topics"), filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(list, []byte(strings.Join(topics, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := jars.Java(ctx, classPath, "Matrix", "consume", b.Addr(), list, out, "0").CombinedOutput(); err != nil {
		t.Fatalf("kafka-clients 4.4.0: %v\n%s", err, text)
	}
	lines, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	view := map[string][]seenRecord{}
	for line := range strings.Lines(string(lines)) {
		f := strings.Split(line, "\t")
		switch f[0] {
		case "?":
			continue
		case "!":
			t.Fatalf("kafka-clients 4.4.0: %s", line)
		}
		offset, err1 := strconv.ParseInt(f[2], 10, 64)
		timestamp, err2 := strconv.ParseInt(f[3], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("bad line %q", line)
		}
		dir := f[0] + "-" + f[1]
		view[dir] = append(view[dir], seenRecord{offset, timestamp})
	}
	return view
}

// metadataFiles: partition.metadata holds the topic id that clients are told, leader-epoch-checkpoint is Kafka's format.
func metadataFiles(t *testing.T, b *harness.Broker, topics []string) {
	t.Helper()
	told, err := kadm.NewClient(b.Client(t)).ListTopics(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		id := told[topic].ID
		want := "version: 0\ntopic_id: " + base64.RawURLEncoding.EncodeToString(id[:])
		for p := range partitions {
			dir := filepath.Join(b.Dir(), fmt.Sprintf("%s-%d", topic, p))
			got, err := os.ReadFile(filepath.Join(dir, "partition.metadata"))
			if err != nil || strings.TrimRight(string(got), "\n") != want {
				t.Errorf("partition.metadata of %s-%d: %q %v, want %q", topic, p, got, err, want)
			}
			epochs, err := os.ReadFile(filepath.Join(dir, "leader-epoch-checkpoint"))
			if err != nil || string(epochs) != "0\n1\n0 0\n" {
				t.Errorf("leader-epoch-checkpoint of %s-%d: %q %v, want one entry, epoch 0 at offset 0", topic, p, epochs, err)
			}
		}
	}
}

// check runs both tools over all files and compares what they print with the client's view.
func check(t *testing.T, b *harness.Broker, topics []string, client map[string][]seenRecord, indexes bool) {
	t.Helper()
	var files, indexFiles []string
	for _, topic := range topics {
		for p := range partitions {
			for _, f := range filesOf(t, filepath.Join(b.Dir(), fmt.Sprintf("%s-%d", topic, p))) {
				isIndex := strings.HasSuffix(f, "index")
				if isIndex {
					indexFiles = append(indexFiles, f)
				}
				if !isIndex || indexes {
					files = append(files, f)
				}
			}
		}
	}
	for _, tool := range tools {
		dumps := parseDump(t, runTool(t, tool, files, "--deep-iteration", "--print-data-log"))
		if len(dumps) != len(topics)*partitions {
			t.Errorf("DumpLogSegments %s saw %d partitions, want %d", tool.version, len(dumps), len(topics)*partitions)
		}
		for dir, d := range dumps {
			compare(t, tool.version+" "+dir, d, client[dir], indexes)
		}
		if !indexes {
			continue
		}
		sane := runTool(t, tool, indexFiles, "--index-sanity-check")
		if got := strings.Count(sane, "passed sanity check."); got != len(indexFiles) {
			t.Errorf("DumpLogSegments %s: %d of %d index files passed the sanity check:\n%.2000s", tool.version, got, len(indexFiles), sane)
		}
	}
}

func compare(t *testing.T, name string, d *dump, client []seenRecord, stopped bool) {
	t.Helper()
	if len(d.records) != len(client) {
		t.Errorf("%s: the files hold %d records, Kafka's client read %d", name, len(d.records), len(client))
	}
	for i := range min(len(d.records), len(client)) {
		r, c := d.records[i], client[i]
		if r.offset != int64(i) || c.offset != r.offset || c.timestamp != r.timestamp {
			t.Errorf("%s: record %d: the file says offset %d, time %d; Kafka's client %d, %d", name, i, r.offset, r.timestamp, c.offset, c.timestamp)
			break
		}
	}
	if d.segments < 3 {
		t.Errorf("%s: %d segments, the test wants rolls", name, d.segments)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		if !d.codecs[codec] {
			t.Errorf("%s: no batch with codec %s: %v", name, codec, d.codecs)
		}
	}
	if stopped && d.producer == 0 {
		t.Errorf("%s: no producer in any .snapshot file, though idempotent producers wrote", name)
	}
	t.Logf("%s: %d records in %d batches and %d segments, %d producer entries", name, len(d.records), d.batches, d.segments, d.producer)
}
