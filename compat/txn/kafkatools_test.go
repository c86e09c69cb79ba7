package txn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTransactionalMessageCopier: Kafka's own copier with random aborts, the broker killed twice on the way.
func TestTransactionalMessageCopier(t *testing.T) {
	lib, err := jars.Tools("4.4.0").Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0"}})
	r := newWatched(t, b, client{name: "copier"})
	feeder := b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for range 8 {
		if err := r.feed(feeder); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	outputs := make(chan string, partitions)
	for p := range partitions {
		cmd := jars.Java(ctx, lib+"/*", "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", b.Addr(), "--input-topic", r.job.input,
			"--input-partition", fmt.Sprint(p), "--output-topic", r.job.output, "--consumer-group", r.job.group, "--transactional-id", fmt.Sprintf("%s-%d", r.job.id, p),
			"--transaction-size", "30", "--enable-random-aborts", "--use-group-metadata")
		go func() {
			out, err := cmd.CombinedOutput()
			outputs <- fmt.Sprintf("%v\n%s", err, out[max(0, len(out)-1000):])
		}()
	}
	for _, n := range []int{500, 1500} {
		r.awaitSeen(t, n)
		b.Kill(t)
		b.Up(t)
	}
	r.awaitSeen(t, r.fed)
	for range partitions {
		if out := <-outputs; !strings.HasPrefix(out, "<nil>") || !strings.Contains(out, `"remaining":0`) {
			t.Errorf("TransactionalMessageCopier: %s", out)
		}
	}
	r.awaitSeen(t, r.fed)
}

// streamsTopics are what StreamsSmokeTest reads and writes.
var streamsTopics = [...]string{"echo", "data", "min", "min-suppressed", "min-raw", "max", "sum", "sws-raw", "sws-suppressed", "dif", "cnt", "avg", "wcnt", "tagg", "fk"}

// longVariable asks for tests that take minutes.
const longVariable = "GREGOR_COMPAT_LONG"

// TestStreamsSmoke: Kafka Streams' own smoke test with exactly_once_v2, two processors, one of them killed midway, as is the broker.
func TestStreamsSmoke(t *testing.T) {
	if os.Getenv(longVariable) == "" {
		t.Skipf("takes minutes; set %s=1 to run it", longVariable)
	}
	lib, err := jars.StreamsTest().Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false"}})
	b.Create(t, 5, nil, streamsTopics[:]...)
	file := filepath.Join(t.TempDir(), "streams.properties")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	start := func(command, state string) (out *strings.Builder, done chan struct{}, kill func()) {
		props := file + "." + state
		text := fmt.Sprintf("bootstrap.servers=%s\nprocessing.guarantee=exactly_once_v2\nstate.dir=%s\n", b.Addr(), filepath.Join(t.TempDir(), state))
		if err := os.WriteFile(props, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := jars.Java(ctx, lib+"/*", "org.apache.kafka.streams.tests.StreamsSmokeTest", props, command)
		out, done = new(strings.Builder), make(chan struct{})
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(done)
			_ = cmd.Wait()
		}()
		kill = func() {
			_ = cmd.Process.Kill()
			<-done
		}
		t.Cleanup(kill)
		return out, done, kill
	}
	_, _, killFirst := start("process", "first")
	start("process", "second")
	driver, done, _ := start("run", "driver")
	midway := time.After(25 * time.Second)
	select {
	case <-midway:
		killFirst()
		b.Kill(t)
		b.Up(t)
		start("process", "third")
	case <-done:
	}
	<-done
	text := driver.String()
	if !strings.Contains(text, "SUCCESS") || strings.Contains(text, "FAILED") {
		t.Errorf("StreamsSmokeTest says:\n%s", text[max(0, len(text)-3000):])
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "SUCCESS") || strings.Contains(line, "PROCESSED") {
			t.Log(line)
		}
	}
}
