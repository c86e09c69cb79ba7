package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/log/batch"
)

// rewritten makes a compacted topic with many small segments, in which three keys have ten values each.
func rewritten(t *testing.T, c *client, topic string, config ...string) {
	t.Helper()
	c.create(topic, 1, append([]string{"segment.bytes", "200", "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0"}, config...)...)
	for i := range 30 {
		r := record{fmt.Sprint("k", i%3), fmt.Sprint("v", i), time.Now().UnixMilli()}
		if got := c.produce(topic, 0, batchOf(t, batch.None, r)); got.ErrorCode != 0 {
			t.Fatalf("error %d", got.ErrorCode)
		}
	}
}

// awaitCleaner asks until the cleaner's counters are right; the connection has a deadline.
func awaitCleaner(b *testBroker, c *client, right func(CleanerStats) bool) CleanerStats {
	for {
		if s := b.cleaner.snapshot(); right(s) {
			return s
		}
		c.fetch("none", 0, 0, 0)
	}
}

// read reads a topic as a consumer does, segment by segment.
func read(t *testing.T, c *client, topic string) string {
	t.Helper()
	var all []string
	for next := int64(0); ; {
		set := c.fetch(topic, 0, next, 0).RecordBatches
		if len(set) == 0 {
			return strings.Join(all, " ")
		}
		all = append(all, values(t, set, next)...)
		for len(set) > 0 {
			h, err := batch.ReadHeader(set)
			if err != nil {
				t.Fatal(err)
			}
			set, next = set[h.Size():], h.LastOffset()+1
		}
	}
}

// TestCleaner: a compacted topic keeps the newest value of each key, and how far it is clean is remembered.
func TestCleaner(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "log.cleaner.backoff.ms", "5", "log.segment.delete.delay.ms", "0")
	c := b.dial()
	rewritten(t, c, "a")
	kept := ""
	for kept == "" || len(strings.Fields(kept)) > 5 { // the active segment is not compacted
		kept = read(t, c, "a")
	}
	if !strings.HasSuffix(kept, "v27 v28 v29") {
		t.Fatalf("kept %s", kept)
	}
	a := b.topics.name("a").partition(0).log
	s := awaitCleaner(b, c, func(s CleanerStats) bool { return s.RecordsRemoved > 0 && a.CleanBelow() >= 24 })
	if s.Failures != 0 || s.BytesRead == 0 || s.BytesWritten >= s.BytesRead {
		t.Errorf("counters %+v", s)
	}
	if got := c.produce("a", 0, batchOf(t, batch.None, record{"k", "new", time.Now().UnixMilli()})); got.BaseOffset != 30 {
		t.Errorf("next offset is %d", got.BaseOffset)
	}
	b.stopClean()
	text, err := os.ReadFile(filepath.Join(dir, "cleaner-offset-checkpoint"))
	if err != nil || !strings.HasPrefix(string(text), "0\n1\na 0 ") {
		t.Errorf("checkpoint %q, %v", text, err)
	}
	b = startBroker(t, dir, "log.cleaner.enable", "false")
	c = b.dial()
	if got := read(t, c, "a"); !strings.HasSuffix(got, "v27 v28 v29 new") {
		t.Errorf("after a restart: %s", got)
	}
}

// TestCleanerDamage: a damaged log is left alone, with one error; the others are compacted.
func TestCleanerDamage(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "log.cleaner.threads", "0")
	c := b.dial()
	rewritten(t, c, "bad")
	rewritten(t, c, "good")
	b.stopClean()
	file := filepath.Join(dir, "bad-0", "00000000000000000000.log")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[70]++
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, dir, "log.cleaner.threads", "0", "log.cleaner.backoff.ms", "5")
	c = b.dial()
	if s := b.cleaner.snapshot(); s != (CleanerStats{}) {
		t.Fatalf("without threads: %+v", s)
	}
	if got := c.increment(ofBroker, "", false, set("log.cleaner.threads", "1")); got != "0 <null>" {
		t.Fatal(got)
	}
	s := awaitCleaner(b, c, func(s CleanerStats) bool { return s.Damaged == 1 && s.RecordsRemoved >= 20 })
	if s.Failures != 1 {
		t.Errorf("counters %+v", s)
	}
	if got := read(t, c, "bad"); len(strings.Fields(got)) < 20 {
		t.Errorf("the damaged log was changed: %s", got)
	}
}

// TestCleanerNeeds: what is not dirty enough is left alone until it is too old.
func TestCleanerNeeds(t *testing.T) {
	b := startBroker(t, t.TempDir(), "log.cleaner.backoff.ms", "5")
	c := b.dial()
	rewritten(t, c, "lag", "min.compaction.lag.ms", "3600000")
	rewritten(t, c, "go")
	awaitCleaner(b, c, func(s CleanerStats) bool { return s.RecordsRemoved >= 20 })
	if got := len(strings.Fields(read(t, c, "lag"))); got < 20 {
		t.Errorf("%d records are left of those that are too young", got)
	}
	if got := c.increment(ofTopic, "lag", false, set("min.compaction.lag.ms", "0"), set("max.compaction.lag.ms", "1"), set("min.cleanable.dirty.ratio", "1")); got != "0 <null>" {
		t.Fatal(got)
	}
	for len(strings.Fields(read(t, c, "lag"))) > 6 {
	}
}

func TestPacer(t *testing.T) {
	var p pacer
	now := time.Unix(1000, 0)
	p.set(1000)
	if d := p.delay(1, now); d != 0 {
		t.Errorf("one byte waits %v", d)
	}
	if d := p.delay(499, now); d != 500*time.Millisecond {
		t.Errorf("500 bytes of 1000 a second wait %v", d)
	}
	if d := p.delay(500, now.Add(time.Second)); d != 500*time.Millisecond {
		t.Errorf("after a pause 500 bytes wait %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.wait(ctx, 1_000_000); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled wait: %v", err)
	}
	p.set(1e300)
	if d := p.delay(1<<40, now); d != 0 {
		t.Errorf("without a limit a terabyte waits %v", d)
	}
}
