package clients

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/IBM/sarama"
)

// TestMatrix: every producer × every consumer × every codec, content compared record by record.
func TestMatrix(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	both, seen := everyone(t)
	var topics []*topic
	for _, c := range both {
		topics = append(topics, newTopics(t, b, c.(producer))...)
	}
	t.Run("produce", func(t *testing.T) {
		for i, c := range both {
			mine := topics[i*len(codecs) : (i+1)*len(codecs)]
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				produceAll(t, b.Addr(), c.(producer), mine)
			})
		}
	})
	views := make([]view, len(both))
	t.Run("consume", func(t *testing.T) {
		for i, c := range both {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				v, err := c.consume(withLimit(t), b.Addr(), topics)
				views[i] = v // what came before an error is worth comparing too
				if err != nil {
					t.Errorf("%s: %v", c.name(), err)
				}
			})
		}
	})
	compare(t, topics, both, views)
	for _, tp := range topics {
		if got := seen[tp.name]; got != tp.codec {
			t.Errorf("%s wrote with %s, the stored batch says %q", tp.producer, tp.codec, got)
		}
	}
}

// everyone returns all clients, each both producer and consumer, and the codecs that franz-go will see.
func everyone(t *testing.T) (both []consumer, seen map[string]string) {
	t.Helper()
	ctx, dir := withLimit(t), t.TempDir()
	kcat, err := deps.Kcat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	python, err := deps.Python(ctx)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(harness.CompatDir(t), "clients", "testdata", "matrix.py")
	seen = map[string]string{}
	both = []consumer{
		franz{seen}, // first: the others' timestamps are compared with its view
		saramaClient{"sarama", sarama.MaxVersion}, saramaClient{"sarama 2.1", sarama.V2_1_0_0}, kcatClient{kcat, dir},
		program{"kafka-python", dir, notForPython, func(ctx context.Context, args ...string) error {
			return run(exec.CommandContext(ctx, python, append([]string{script}, args...)...))
		}},
	}
	source := filepath.Join(harness.CompatDir(t), "java", "Matrix.java")
	for _, version := range []string{"4.4.0", "2.8.2"} {
		classPath, err := jars.Clients(version).Compile(ctx, source)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, program{"java " + version, dir, nil, func(ctx context.Context, args ...string) error {
			return run(jars.Java(ctx, classPath, "Matrix", args...))
		}})
	}
	return both, seen
}

// notForPython is what kafka-python refuses to send: neither key nor value, and headers with a null value.
func notForPython(r record) bool {
	return r.key == nil && r.value == nil || slices.ContainsFunc(r.headers, func(h header) bool { return h.value == nil })
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func newTopics(t *testing.T, b *harness.Broker, p producer) []*topic {
	t.Helper()
	var topics []*topic
	var names []string
	for _, codec := range codecs {
		name := harness.Topic(strings.ReplaceAll(p.name(), " ", "-") + "-" + codec)
		topics = append(topics, &topic{name: name, codec: codec, producer: p.name(), keepsTime: p.keepsTime(), set: p.set(recordSet())})
		names = append(names, name)
	}
	b.Create(t, partitions, nil, names...)
	return topics
}

// produceAll runs a producer and checks the offsets it was told.
func produceAll(t *testing.T, addr string, p producer, topics []*topic) {
	start := time.Now()
	if err := p.produce(withLimit(t), addr, topics); err != nil {
		t.Fatalf("%s: %v", p.name(), err)
	}
	for _, tp := range topics {
		next := make([]int64, partitions)
		if tp.acks == nil {
			continue
		}
		if len(tp.acks) != len(tp.set) {
			t.Errorf("%s with %s: %d acks for %d records", p.name(), tp.codec, len(tp.acks), len(tp.set))
			continue
		}
		for i, r := range tp.set {
			if tp.acks[i] != next[r.partition] {
				t.Errorf("%s with %s: record %d of partition %d was acked at offset %d, want %d", p.name(), tp.codec, i, r.partition, tp.acks[i], next[r.partition])
			}
			next[r.partition]++
		}
	}
	t.Logf("%s: %d topics in %v", p.name(), len(topics), time.Since(start).Round(time.Millisecond))
}

// compare checks every cell and prints the matrix.
func compare(t *testing.T, topics []*topic, consumers []consumer, views []view) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-14s%-8s", "producer", "codec")
	for _, c := range consumers {
		fmt.Fprintf(&table, "%-14s", c.name())
	}
	for _, tp := range topics {
		fmt.Fprintf(&table, "\n%-14s%-8s", tp.producer, tp.codec)
		for i, c := range consumers {
			cell := "ok"
			if diff := difference(tp, views[i], views[0]); diff != "" {
				cell = "DIFFERS"
				t.Errorf("%s with %s, read by %s: %s", tp.producer, tp.codec, c.name(), diff)
			}
			fmt.Fprintf(&table, "%-14s", cell)
		}
	}
	t.Logf("producers × codecs down, consumers across\n%s", table.String())
}

// difference tells the first way in which a consumer's view of a topic is wrong, "" when there is none. Where the
// producer cannot choose timestamps, they must be those of the reference view and recent.
func difference(tp *topic, got, reference view) string {
	want := byPartition(tp.set)
	if !tp.keepsTime {
		for p := range want {
			want[p] = withTimes(want[p], reference.lines[tp.name][p])
		}
	}
	for p := range want {
		have := got.lines[tp.name]
		if have == nil {
			return "nothing was read"
		}
		if !slices.Equal(have[p], want[p]) {
			return firstDifference(p, have[p], want[p])
		}
		if spans := got.spans[tp.name]; spans != nil {
			if w := (span{0, int64(len(want[p])), firstAfter(want[p], queryTime)}); len(spans) != partitions || spans[p] != w {
				return fmt.Sprintf("partition %d: begin, end and offset at %d are %v, want %v", p, queryTime, spans, w)
			}
		}
	}
	return ""
}

// firstAfter is the offset of the first line whose timestamp is at least ms, -1 when there is none.
func firstAfter(lines []string, ms int64) int64 {
	for i, line := range lines {
		var partition, offset, timestamp int64
		if _, err := fmt.Sscan(line, &partition, &offset, &timestamp); err == nil && timestamp >= ms {
			return int64(i)
		}
	}
	return -1
}

func firstDifference(p int, have, want []string) string {
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			return fmt.Sprintf("partition %d, record %d:\n got %.600s\nwant %.600s", p, i, have[i], want[i])
		}
	}
	return fmt.Sprintf("partition %d: %d records, want %d", p, len(have), len(want))
}

// withTimes puts the timestamps of seen into want when they are of the last ten minutes.
func withTimes(want, seen []string) []string {
	out := slices.Clone(want)
	for i := range min(len(want), len(seen)) {
		w, s := strings.Split(want[i], "\t"), strings.Split(seen[i], "\t")
		var ms int64
		if _, err := fmt.Sscan(s[2], &ms); err == nil && time.Since(time.UnixMilli(ms)).Abs() < 10*time.Minute {
			w[2] = s[2]
		}
		out[i] = strings.Join(w, "\t")
	}
	return out
}
