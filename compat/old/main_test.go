package old

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// runLimit is how long one Java program may take.
const runLimit = 90 * time.Second

// seen is what java/Matrix.java wrote while it read: offsets and values by topic, what it was told of the log, failures.
type seen struct {
	offsets  map[string][]int64
	values   map[string][]string
	spans    map[string]string // "begin end"
	failures map[string]string
}

// matrix runs "Matrix COMMAND BROKER LIST OUT ..." of a Kafka version, where LIST holds lines.
func matrix(t *testing.T, version, command, broker string, lines []string, more ...string) seen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	classPath, err := jars.Matrix(ctx, harness.CompatDir(t), version)
	if err != nil {
		t.Fatal(err)
	}
	list, out := filepath.Join(t.TempDir(), "list"), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(list, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := jars.Java(ctx, classPath, "Matrix", append([]string{command, broker, list, out}, more...)...).CombinedOutput(); err != nil {
		t.Fatalf("Matrix %s of %s: %v\n%s", command, version, err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	s := seen{map[string][]int64{}, map[string][]string{}, map[string]string{}, map[string]string{}}
	for line := range strings.Lines(string(text)) {
		s.parse(t, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return s
}

func (s seen) parse(t *testing.T, f []string) {
	t.Helper()
	switch f[0] {
	case "!":
		s.failures[f[1]] = f[2]
	case "?":
		s.spans[f[1]] = f[3] + " " + f[4]
	default:
		offset, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatalf("bad line %q", f)
		}
		s.offsets[f[0]] = append(s.offsets[f[0]], offset)
		s.values[f[0]] = append(s.values[f[0]], f[5])
	}
}

// upTo lists the offsets from first to below end.
func upTo(first, end int64) []int64 {
	var all []int64
	for o := first; o < end; o++ {
		all = append(all, o)
	}
	return all
}

// fill writes n records of size bytes each into partition 0 as one compressed batch.
func fill(t *testing.T, b *harness.Broker, topic string, codec kgo.CompressionCodec, n, size int) {
	t.Helper()
	cl := b.Client(t, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1))
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "key-%d", i), Value: slices.Repeat(fmt.Appendf(nil, "%07d,", i), size/8)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
}
