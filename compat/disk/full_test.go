package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestDiskFull on two kinds of file system.
func TestDiskFull(t *testing.T) {
	if harness.Foreign(t, "a full disk: Apache Kafka shuts down") {
		return
	}
	t.Run("tmpfs", func(t *testing.T) { diskFull(t, mountTmpfs(t, "size=48m")) })
	t.Run("ext4", func(t *testing.T) { diskFull(t, mountExt4(t, 64)) })
}

// writer produces one record a call, without any retry, and knows what must be in the log.
type writer struct {
	client *kgo.Client
	topic  string
	rng    *rand.Rand
	acked  []string // by offset
	tries  int
}

func newWriter(t *testing.T, b *harness.Broker) *writer {
	t.Helper()
	w := &writer{topic: harness.Topic("full"), rng: rand.New(rand.NewPCG(1, 1))}
	b.Create(t, 1, []string{"segment.bytes=1048576"}, w.topic)
	w.connect(t, b)
	return w
}

// connect gives the writer a new client: one that never retries does not survive a restart of the broker.
func (w *writer) connect(t *testing.T, b *harness.Broker) {
	t.Helper()
	w.client = b.Client(t, kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.ProducerLinger(0))
}

func (w *writer) write(t *testing.T) error {
	t.Helper()
	w.tries++
	noise := make([]byte, 10_000+w.rng.IntN(50_000))
	for i := range noise {
		noise[i] = byte(w.rng.Uint32())
	}
	value := fmt.Sprintf("try %d %s", w.tries, noise)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rec := &kgo.Record{Topic: w.topic, Value: []byte(value)}
	if err := w.client.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return err
	}
	if rec.Offset != int64(len(w.acked)) {
		t.Errorf("try %d was acked at offset %d, want %d", w.tries, rec.Offset, len(w.acked))
	}
	w.acked = append(w.acked, value)
	return nil
}

// untilFull writes until the broker says that it cannot store, and checks how it says it.
func (w *writer) untilFull(t *testing.T) {
	t.Helper()
	for range 10_000 {
		if err := w.write(t); err != nil {
			if !errors.Is(err, kerr.KafkaStorageError) {
				t.Errorf("a full disk is answered with %v, want KAFKA_STORAGE_ERROR", err)
			}
			return
		}
	}
	t.Fatal("the disk never filled up")
}

// verify reads the topic: exactly what was acked, in order.
func (w *writer) verify(t *testing.T, b *harness.Broker, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := b.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, w.topic)
	if err != nil || ends[w.topic][0].Offset != int64(len(w.acked)) {
		t.Errorf("%s: the log ends at %d (%v), %d records were acked", when, ends[w.topic][0].Offset, err, len(w.acked))
	}
	for next := 0; next < len(w.acked); {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%s: fetch at offset %d: %v", when, next, err)
		}
		for r := range fetches.RecordsAll() {
			if r.Offset != int64(next) || next >= len(w.acked) || string(r.Value) != w.acked[next] {
				t.Fatalf("%s: offset %d holds %.20q, want offset %d with what was acked there", when, r.Offset, r.Value, next)
			}
			next++
		}
	}
}

func diskFull(t *testing.T, dir string) {
	data := filepath.Join(dir, "data")
	b := harness.Start(t, harness.Config{Dir: data})
	w := newWriter(t, b)
	for range 20 {
		if err := w.write(t); err != nil {
			t.Fatalf("there is room, but: %v", err)
		}
	}
	ballast := fillUp(t, dir, 3<<10)
	w.untilFull(t)
	w.verify(t, b, "disk full")
	for range 5 {
		_ = w.write(t) // small ones may still fit
	}
	w.verify(t, b, "disk full for a while")
	if _, err := kadm.NewClient(w.client).ListTopics(t.Context()); err != nil {
		t.Errorf("disk full: metadata: %v", err)
	}
	if !strings.Contains(b.Log(), "no space left") {
		t.Errorf("the log does not say that there is no space left:\n%.2000s", b.Log())
	}
	resume(t, w, ballast)
	for range 20 {
		if err := w.write(t); err != nil {
			t.Fatalf("there is room again, but: %v", err)
		}
	}
	w.verify(t, b, "room again")
	b.Stop(t)
	b.Up(t)
	w.connect(t, b)
	w.verify(t, b, "after a restart")

	ballast = fillUp(t, dir, 2<<10)
	w.untilFull(t)
	b.Kill(t)
	b.Up(t) // on a full disk: reading must work
	w.connect(t, b)
	w.verify(t, b, "killed and started on a full disk")
	resume(t, w, ballast)
	w.verify(t, b, "room after that")
}

// resume makes room and waits until writing works again without anybody doing anything about it.
func resume(t *testing.T, w *writer, ballast string) {
	t.Helper()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for {
		err := w.write(t)
		if err == nil {
			t.Logf("writing works %v after there was room again", time.Since(start).Round(time.Millisecond))
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("no writing a minute after there was room again: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
