package kcat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	logBytes = 20 << 20
	// maxBatch is Kafka's default for message.max.bytes, counted over a whole batch.
	maxBatch = 1048588
	// batchOverhead is what a batch of one record without key and headers takes beside the value and two varints: 61
	// bytes of batch header and 5 of record.
	batchOverhead = 66
)

// TestKcat runs everything against one broker; the subtests share it and run side by side.
func TestKcat(t *testing.T) {
	k := newTool(t)
	for name, test := range map[string]func(*testing.T, tool){
		"log file": logFile, "list": list, "query": query, "offsets": offsets, "keys and headers": keysAndHeaders,
		"big records": bigRecords, "big records by topic": bigByTopic, "partitions": choosePartitions, "acks": acks, "auto create": autoCreate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// logFile: a log file in with every codec and out again, the same bytes.
func logFile(t *testing.T, k tool) {
	path := filepath.Join(t.TempDir(), "app.log")
	lines := writeLog(t, path)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := k.topic(t, 2)
		start := time.Now()
		k.run(t, nil, "-P", "-t", topic, "-p", "1", "-z", codec, "-l", path)
		in := time.Since(start)
		start = time.Now()
		got := k.consume(t, topic, "-p", "1", "-o", "beginning")
		if got != string(want) {
			t.Errorf("%s: %d bytes went in, %d other bytes came out; first difference at %d", codec, len(want), len(got), differAt(string(want), got))
		}
		t.Logf("%-6s %d lines, %d MB: in %v, out %v", codec, lines, len(want)>>20, in.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	}
}

func writeLog(t *testing.T, path string) (lines int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	levels := [...]string{"DEBUG", "INFO", "WARN", "ERROR"}
	var b bytes.Buffer
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for b.Len() < logBytes {
		clock = clock.Add(time.Duration(rng.IntN(5000)) * time.Microsecond)
		fmt.Fprintf(&b, "%s %-5s [worker-%d] request %016x took %d µs, status %d, path /api/v1/items/%d?q=%s\n", clock.Format(time.RFC3339Nano),
			levels[rng.IntN(4)], rng.IntN(16), rng.Uint64(), rng.IntN(100000), 200+rng.IntN(5)*100, rng.IntN(100000), strings.Repeat("ab/", rng.IntN(12)))
		lines++
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return lines
}

func differAt(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// list: -L names brokers, topics and partitions with their leader.
func list(t *testing.T, k tool) {
	topic := k.topic(t, 5)
	var got struct {
		Brokers []struct{ ID int }
		Topics  []struct {
			Topic      string
			Partitions []struct {
				Partition, Leader int
				Replicas, ISRs    []struct{ ID int }
			}
		}
	}
	if err := json.Unmarshal(k.run(t, nil, "-L", "-J", "-t", topic), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Brokers) != 1 || len(got.Topics) != 1 || got.Topics[0].Topic != topic || len(got.Topics[0].Partitions) != 5 {
		t.Fatalf("kcat -L -J: want one broker and %s with 5 partitions, got %+v", topic, got)
	}
	for i, p := range got.Topics[0].Partitions {
		if p.Partition != i || p.Leader != got.Brokers[0].ID || len(p.Replicas) != 1 || len(p.ISRs) != 1 {
			t.Errorf("partition %d: %+v, want leader, replica and in-sync replica %d", i, p, got.Brokers[0].ID)
		}
	}
	text := string(k.run(t, nil, "-L"))
	for _, want := range []string{" 1 brokers:", k.broker.Addr(), fmt.Sprintf("topic %q with 5 partitions:", topic)} {
		if !strings.Contains(text, want) {
			t.Errorf("kcat -L does not print %q:\n%.2000s", want, text)
		}
	}
}

// timed writes 100 records, a second apart, the first at base, and returns the topic. Half of them share batches.
func timed(t *testing.T, k tool, base int64) string {
	t.Helper()
	topic := k.topic(t, 1)
	cl := k.broker.Client(t)
	var batch []*kgo.Record
	for i := range 100 {
		batch = append(batch, &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(base + int64(i)*1000), Value: fmt.Appendf(nil, "r%d", i)})
		if i < 50 || i == 99 {
			if err := cl.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	return topic
}

// query: -Q finds offsets by timestamp, in batches of one record and inside a batch of many.
func query(t *testing.T, k tool) {
	base := int64(1_700_000_000_000)
	topic := timed(t, k, base)
	for _, c := range []struct {
		name string
		time int64
		want int64
	}{
		{"before all", base - 1, 0}, {"first", base, 0}, {"between", base + 20_001, 21}, {"exact", base + 30_000, 30},
		{"inside a batch", base + 70_000, 70}, {"between inside a batch", base + 70_500, 71}, {"last", base + 99_000, 99},
		{"after all", base + 99_001, -1}, {"end", -1, 100}, {"beginning", -2, 0},
	} {
		got := string(k.run(t, nil, "-Q", "-t", fmt.Sprintf("%s:0:%d", topic, c.time)))
		if want := fmt.Sprintf("%s [0] offset %d\n", topic, c.want); got != want {
			t.Errorf("%s: kcat -Q at %d printed %q, want %q", c.name, c.time, got, want)
		}
	}
}

// offsets: every way to say where to start and to stop.
func offsets(t *testing.T, k tool) {
	base := int64(1_700_000_000_000)
	topic := timed(t, k, base)
	at := func(mark string, i int64) string { return fmt.Sprintf("%s@%d", mark, base+i*1000) }
	for _, c := range []struct {
		args     []string
		from, to int
	}{
		{[]string{"-o", "beginning"}, 0, 100},
		{[]string{"-o", "-10"}, 90, 100},
		{[]string{"-o", "-1"}, 99, 100},
		{[]string{"-o", "end"}, 100, 100},
		{[]string{"-o", "25"}, 25, 100},
		{[]string{"-o", "25", "-c", "3"}, 25, 28},
		{[]string{"-o", "70", "-c", "1"}, 70, 71},
		{[]string{"-o", at("s", 40)}, 40, 100},
		{[]string{"-o", at("s", 60)}, 60, 100},
		{[]string{"-o", at("e", 30)}, 0, 30},
		{[]string{"-o", at("s", 20), "-o", at("e", 60)}, 20, 60},
		{[]string{"-o", at("s", 200)}, 100, 100},
	} {
		var want strings.Builder
		for i := c.from; i < c.to; i++ {
			fmt.Fprintf(&want, "%d:%d:r%d\n", i, base+int64(i)*1000, i)
		}
		if got := k.consume(t, topic, append(c.args, "-p", "0", "-f", `%o:%T:%s\n`)...); got != want.String() {
			t.Errorf("kcat -C %v: want records %d to %d, got\n%.800s", c.args, c.from, c.to, got)
		}
	}
	if _, stderr, err := k.try(nil, "-C", "-e", "-t", topic, "-p", "0", "-o", "5000", "-X", "auto.offset.reset=error"); err == nil || !strings.Contains(stderr, "out of range") {
		t.Errorf("kcat -o 5000 beyond the end: want an error that says out of range, got %v: %s", err, stderr)
	}
}
