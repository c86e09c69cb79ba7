package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic      = "exchanged"
	partitions = 2
	perCodec   = 1200 // records of a partition with each codec
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// TestExchange writes on one side, moves the partition's directories to the other, reads there, and goes on writing
// there with the same topic. Both ends are made to check everything: no clean-shutdown marker goes along.
func TestExchange(t *testing.T) {
	if harness.Foreign(t, "that gregor's files open in Apache Kafka and the other way round") {
		return
	}
	for _, version := range []string{"4.4.0", "3.9.1"} {
		t.Run("to Kafka "+version, func(t *testing.T) {
			ours := harness.Start(t, harness.Config{})
			want := fill(t, ours)
			ours.Stop(t)
			toKafka(t, version, ours.Dir(), want)
		})
	}
	t.Run("from Kafka 4.4.0", func(t *testing.T) {
		theirs := peer.Start(t, "4.4.0", filepath.Join(t.TempDir(), "kafka"))
		want := fill(t, theirs.Broker)
		theirs.Stop(t)
		ours := harness.Start(t, harness.Config{})
		ours.Create(t, partitions, []string{"segment.bytes=1048576"}, topic)
		ours.Stop(t)
		move(t, theirs.Dir, ours.Dir(), topic, partitions)
		ours.Up(t)
		readBack(t, ours, want)
		goOn(t, ours, want)
	})
}

func toKafka(t *testing.T, version, from string, want [][]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kafka")
	theirs := peer.Start(t, version, dir)
	theirs.Create(t, partitions, []string{"segment.bytes=1048576"}, topic)
	theirs.Stop(t)
	move(t, from, dir, topic, partitions)
	theirs = peer.Start(t, version, dir)
	readBack(t, theirs.Broker, want)
	goOn(t, theirs.Broker, want)
	if out := theirs.Output(); bytes.Contains([]byte(out), []byte("CorruptRecord")) || bytes.Contains([]byte(out), []byte("corrupted index")) {
		t.Errorf("Kafka %s complains:\n%s", version, out)
	}
}

// move replaces the partitions' files in one log directory by those of another. partition.metadata stays, since it ties
// a directory to the topic id of its own cluster.
func move(t *testing.T, from, to, topic string, partitions int) {
	t.Helper()
	for _, marker := range []string{".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"} {
		if err := os.Remove(filepath.Join(to, marker)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for p := range partitions {
		name := fmt.Sprintf("%s-%d", topic, p)
		clearDir(t, filepath.Join(to, name))
		entries, err := os.ReadDir(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "partition.metadata" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(from, name, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, name, e.Name()), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func clearDir(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "partition.metadata" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// fill makes the topic and writes every codec over several segments; it returns each partition's values by offset.
func fill(t *testing.T, b *harness.Broker) [][]string {
	t.Helper()
	b.Create(t, partitions, []string{"segment.bytes=1048576"}, topic)
	want := make([][]string, partitions)
	for name, codec := range codecs {
		cl := b.Client(t, kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(50_000))
		for p := range int32(partitions) {
			write(t, cl, want, p, name, perCodec)
		}
		cl.Close()
	}
	return want
}

func write(t *testing.T, cl *kgo.Client, want [][]string, p int32, label string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var recs []*kgo.Record
	for i := range n {
		value := fmt.Sprintf("%s %d of partition %d %x", label, i, p, bytes.Repeat([]byte{byte(i), byte(i >> 3)}, 100))
		recs = append(recs, &kgo.Record{Topic: topic, Partition: p, Value: []byte(value), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(len(want[p])))})
		want[p] = append(want[p], value)
	}
	for _, r := range recs {
		cl.Produce(ctx, r, nil)
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if last := recs[n-1].Offset; last != int64(len(want[p])-1) {
		t.Fatalf("%s: the last record of partition %d got offset %d, want %d", label, p, last, len(want[p])-1)
	}
}

func readBack(t *testing.T, b *harness.Broker, want [][]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	from := map[int32]kgo.Offset{}
	left := 0
	for p := range int32(partitions) {
		from[p] = kgo.NewOffset().AtStart()
		left += len(want[p])
	}
	cl := b.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	defer cl.Close()
	got := make([][]string, partitions)
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records before the end: %v", left, err)
		}
		for r := range fetches.RecordsAll() {
			if r.Offset != int64(len(got[r.Partition])) {
				t.Fatalf("partition %d: offset %d, want %d", r.Partition, r.Offset, len(got[r.Partition]))
			}
			got[r.Partition] = append(got[r.Partition], string(r.Value))
			left--
		}
	}
	for p := range want {
		if !slices.Equal(got[p], want[p]) {
			t.Errorf("partition %d: %d records came back, %d were written, or they differ", p, len(got[p]), len(want[p]))
		}
	}
	at, err := kadm.NewClient(cl).ListOffsetsAfterMilli(ctx, 1_700_000_000_000+3000, topic)
	if err != nil || at[topic][0].Offset != 3000 {
		t.Errorf("offset by timestamp: %d %v, want 3000", at[topic][0].Offset, err)
	}
}

// goOn writes on the new side and reads everything again.
func goOn(t *testing.T, b *harness.Broker, want [][]string) {
	t.Helper()
	cl := b.Client(t)
	for p := range int32(partitions) {
		write(t, cl, want, p, "after the move", 100)
	}
	cl.Close()
	readBack(t, b, want)
}
