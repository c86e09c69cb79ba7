package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/vfs/faultfs"
)

// aged makes a topic with five segments of a batch each, a day old.
func aged(t *testing.T, b *testBroker, c *client, topic string, config ...string) {
	t.Helper()
	c.create(topic, 1, append([]string{"segment.bytes", "100"}, config...)...)
	for i := range 5 {
		r := record{"k", fmt.Sprint("v", i), time.Now().Add(-24 * time.Hour).UnixMilli()}
		if got := c.produce(topic, 0, batchOf(t, batch.None, r)); got.ErrorCode != 0 {
			t.Fatalf("error %d", got.ErrorCode)
		}
	}
}

// files counts a partition's files with a suffix.
func files(t *testing.T, b *testBroker, partition, suffix string) (n int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.DataDir(), partition))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			n++
		}
	}
	return n
}

// TestRetentionAtOnce: a topic that gets a shorter retention lets its old records go without waiting for the next check.
func TestRetentionAtOnce(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	aged(t, b, c, "a")
	if got := c.increment(ofTopic, "a", false, set("retention.ms", "3600000")); got != "0 <null>" {
		t.Fatal(got)
	}
	for b.listed(c, timeEarliest) != "0 -1 5 0" { // the connection has a deadline
	}
	if got := c.fetch("a", 0, 4, 0); got.ErrorCode != kerr.OffsetOutOfRange.Code || got.LogStartOffset != -1 && got.LogStartOffset != 5 {
		t.Fatalf("fetching what is gone: error %d, log start %d", got.ErrorCode, got.LogStartOffset)
	}
	if got := c.produce("a", 0, batchOf(t, batch.None, record{"k", "new", time.Now().UnixMilli()})); got.BaseOffset != 5 || got.LogStartOffset != 5 {
		t.Fatalf("next record: offset %d, log start %d", got.BaseOffset, got.LogStartOffset)
	}
	waitFor(t, func() bool { return files(t, b, "a-0", ".log.deleted") == 5 })
	b.stopClean()
	b = startBroker(t, dir)
	c = b.dial()
	if got := b.listed(c, timeEarliest); got != "0 -1 5 0" {
		t.Errorf("after a restart the log starts at %s", got)
	}
	if got := values(t, c.fetch("a", 0, 5, 0).RecordBatches, 5); fmt.Sprint(got) != "[new]" {
		t.Errorf("left %v", got)
	}
	if n := files(t, b, "a-0", ".deleted"); n != 0 {
		t.Errorf("%d files are left of deleted segments", n)
	}
}

// TestRetentionPolicies: only cleanup.policy with delete lets records go.
func TestRetentionPolicies(t *testing.T) {
	b := startBroker(t, t.TempDir(), "log.retention.ms", "3600000", "log.segment.delete.delay.ms", "0")
	c := b.dial()
	for _, tc := range []struct {
		config []string
		start  int64
		left   int // segments
	}{
		{nil, 5, 1},
		{[]string{"cleanup.policy", "compact"}, 0, 5},
		{[]string{"cleanup.policy", ""}, 0, 5},
		{[]string{"cleanup.policy", "compact,delete"}, 5, 1},
		{[]string{"retention.ms", "-1"}, 0, 5},
		{[]string{"retention.ms", "-1", "retention.bytes", "150"}, 2, 3},
		{[]string{"retention.ms", "90000000"}, 0, 5},
	} {
		name := "a" + strings.ReplaceAll(fmt.Sprint(tc.config), " ", "-")
		name = strings.NewReplacer("[", "", "]", "", ",", "-").Replace(name)
		aged(t, b, c, name, tc.config...)
		b.retain(t.Context())
		if got, want := c.listOffset(7, listRequest(name, timeEarliest, 0)), fmt.Sprint("0 -1 ", tc.start, " 0"); got != want && got != fmt.Sprint("0 -1 ", tc.start, " -1") {
			t.Errorf("%s: log start is %s, want %s", name, got, want)
		}
		if n := files(t, b, name+"-0", ".log"); n != tc.left {
			t.Errorf("%s: %d segments are left, want %d", name, n, tc.left)
		}
		if n := files(t, b, name+"-0", ".deleted"); n != 0 {
			t.Errorf("%s: %d files are left of deleted segments", name, n)
		}
	}
}

// TestRetentionSweep: the files go when their delay is over.
func TestRetentionSweep(t *testing.T) {
	now := time.Now()
	b := newBroker(t, Config{Now: func() time.Time { return now }}, t.TempDir())
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	aged(t, b, c, "a", "file.delete.delay.ms", "5000", "retention.ms", "1")
	b.retain(t.Context())
	if next := b.sweep(t.Context()); !next.Equal(now.Add(5*time.Second)) || files(t, b, "a-0", ".log.deleted") != 5 {
		t.Fatalf("next sweep at %v", next)
	}
	if left := b.topics.name("a").partition(0).log.Size(); left != 0 {
		t.Fatalf("%d bytes left", left)
	}
}

// TestRetentionByItself waits for the check and for the removal of files, without anything that asks for them.
func TestRetentionByItself(t *testing.T) {
	b := startBroker(t, t.TempDir(), "log.retention.check.interval.ms", "20")
	c := b.dial()
	aged(t, b, c, "a", "retention.ms", "1000", "file.delete.delay.ms", "1")
	for b.listed(c, timeEarliest) != "0 -1 5 0" { // the connection has a deadline
	}
	for files(t, b, "a-0", ".deleted") > 0 {
		b.listed(c, timeEarliest)
	}
}

// TestRetentionKeepsWhatIsOpen: retention works while a topic is deleted under it, and after its log failed.
func TestRetentionKeepsWhatIsOpen(t *testing.T) {
	b, faults := faultyBroker(t, "log.retention.ms", "1")
	c := b.dial()
	aged(t, b, c, "a")
	aged(t, b, c, "b")
	gone := b.topics.name("b").partition(0)
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.TopicNames = []string{"b"}
	ask[*kmsg.DeleteTopicsResponse](c, 3, r)
	b.noteRetention(gone, gone.log.DeleteBelowStart())
	remove := faults.Add(faultfs.Rule{Kind: faultfs.Rename, Path: ".deleted", Err: syscall.EIO})
	b.retain(t.Context())
	remove()
	if err := b.topics.name("a").partition(0).log.Err(); err == nil {
		t.Error("a failed rename is not noticed")
	}
	aged(t, b, c, "c")
	b.retain(t.Context())
	if got := c.listOffset(7, listRequest("c", timeEarliest, 0)); got != "0 -1 5 0" {
		t.Errorf("another log: %s", got)
	}
	r.TopicNames = []string{"a"} // or the stop is not clean
	ask[*kmsg.DeleteTopicsResponse](c, 3, r)
}
