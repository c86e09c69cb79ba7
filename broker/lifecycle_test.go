package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/logdir"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// TestManyInOneProcess: brokers share nothing.
func TestManyInOneProcess(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			b := startBroker(t, t.TempDir())
			c := b.dial()
			topic := fmt.Sprintf("own-%d", i)
			c.createTopic(topic)
			for range 20 {
				if got := c.produce(topic, 0, batchOf(t, batch.None, record{"k", topic, nowMillis()})); got.ErrorCode != 0 {
					t.Errorf("%s: error %d", topic, got.ErrorCode)
				}
			}
			if n := len(b.topics.all()); n != 1 {
				t.Errorf("broker %d has %d topics", i, n)
			}
		})
	}
	wg.Wait()
}

// TestSecondOnTheDirectory: one broker has a directory to itself, and says so.
func TestSecondOnTheDirectory(t *testing.T) {
	dir := t.TempDir()
	startBroker(t, dir)
	second := newBroker(t, Config{}, dir)
	err := second.Start(t.Context())
	if !errors.Is(err, logdir.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v, want one that names %s", err, dir)
	}
}

// TestPortInUse: the error names the address.
func TestPortInUse(t *testing.T) {
	b := startBroker(t, t.TempDir())
	second := newBroker(t, Config{}, t.TempDir(), "listeners", "PLAINTEXT://"+b.Addr())
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), b.Addr()) {
		t.Errorf("error is %v, want one that names %s", err, b.Addr())
	}
}

// TestStartOnce: a second Start leaves the running broker alone, and there is none after Shutdown.
func TestStartOnce(t *testing.T) {
	b := startBroker(t, t.TempDir())
	if err := b.Start(t.Context()); !errors.Is(err, ErrStarted) {
		t.Errorf("second start: %v", err)
	}
	b.dial().createTopic("alive")
	b.stopClean()
	if err := b.Start(t.Context()); !errors.Is(err, ErrStarted) {
		t.Errorf("start after shutdown: %v", err)
	}
	never := newBroker(t, Config{}, t.TempDir())
	never.stopClean()
	if err := never.Start(t.Context()); !errors.Is(err, ErrStarted) {
		t.Errorf("start after a shutdown without a start: %v", err)
	}
}

func TestBadSettings(t *testing.T) {
	_, err := New(Config{Settings: map[string]string{"num.partitions": "many", "log.segment.bytes": "-5"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"num.partitions", "many", "log.segment.bytes", "-5"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
}

// TestDataDirIsAFile and other bad directories are told at the start.
func TestDataDirIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBroker(t, Config{}, path)
	if err := b.Start(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want one that names %s", err, path)
	}
}

// TestRestart: offsets, content, topic id and leader epoch stay over a clean stop.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "num.partitions", "3")
	c := b.dial()
	c.createTopic("stay")
	id := b.topics.name("stay").id
	for i := range 10 {
		c.produce("stay", int32(i%3), batchOf(t, batch.None, record{"k", fmt.Sprint(i), nowMillis()}))
	}
	cluster := b.ClusterID()
	b.stopClean()

	again := startBroker(t, dir)
	if again.topics.name("stay").id != id || again.ClusterID() != cluster {
		t.Error("topic id or cluster id changed")
	}
	c = again.dial()
	if got := c.fetch("stay", 1, 0, 0); len(values(t, got.RecordBatches, 0)) != 3 {
		t.Errorf("partition 1 has %v", values(t, got.RecordBatches, 0))
	}
	if got := again.topics.name("stay").partition(0).epoch(); got != 0 {
		t.Errorf("leader epoch after a clean restart is %d", got)
	}
	if got := c.produce("stay", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.BaseOffset != 4 {
		t.Errorf("next offset is %d, want 4", got.BaseOffset)
	}
}

// TestDeleteUnderLoad: producers and parked fetches learn that the topic is gone, the name can be used again, the space comes back.
func TestDeleteUnderLoad(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "log.segment.delete.delay.ms", "0")
	c, parked := b.dial(), b.dial()
	c.createTopic("gone")
	id := b.topics.name("gone").id
	c.produce("gone", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	r := fetchRequest("", 0, 1, wait)
	r.Topics[0].TopicID = id
	r.SetVersion(13)
	parked.send(r)

	if err := b.deleteTopics(t.Context(), []*topic{b.topics.name("gone")}); err != nil {
		t.Fatal(err)
	}
	if got := parked.receive(r, parked.next).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.UnknownTopicID.Code {
		t.Errorf("parked fetch: error %d", got)
	}
	if got := c.produce("gone", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("produce: error %d", got.ErrorCode)
	}
	c.createTopic("gone")
	if got := b.topics.name("gone").id; got == id {
		t.Error("the new topic has the old id")
	}
	if got := c.fetch("gone", 0, 0, 0); len(got.RecordBatches) != 0 || got.HighWatermark != 0 {
		t.Errorf("the new topic has records: %+v", got)
	}
	b.stopClean()
	left, err := filepath.Glob(filepath.Join(dir, "*-delete"))
	if err != nil || len(left) > 1 { // a removal that the stop interrupted goes on at the next start
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestDiskFull: produce fails and stores nothing, fetch goes on, and writing resumes by itself.
func TestDiskFull(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	var lines bytes.Buffer
	b := newBroker(t, Config{FS: faults}, t.TempDir())
	b.logger = slog.New(slog.NewTextHandler(&lines, nil)) // used by the one goroutine that appends, while it appends
	var later atomic.Int64
	b.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := b.dial()
	c.createTopic("full")
	one := func() []byte { return batchOf(t, batch.None, record{"k", "v", nowMillis()}) }
	c.produce("full", 0, one())
	room := faults.Add(faultfs.Rule{Kind: faultfs.Write, Path: "*.log", Err: syscall.ENOSPC})
	for range 3 {
		if got := c.produce("full", 0, one()); got.ErrorCode != kerr.KafkaStorageError.Code || got.ErrorMessage == nil {
			t.Errorf("on a full disk: error %d, message %v", got.ErrorCode, got.ErrorMessage)
		}
	}
	if got := c.fetch("full", 0, 0, 0); got.ErrorCode != 0 || len(values(t, got.RecordBatches, 0)) != 1 {
		t.Errorf("fetch on a full disk: %+v", got)
	}
	room()
	later.Store(int64(roomAfter))
	if got := c.produce("full", 0, one()); got.ErrorCode != 0 || got.BaseOffset != 1 {
		t.Errorf("with room again: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	b.stopClean()
	if n := strings.Count(lines.String(), "disk is full"); n != 1 {
		t.Errorf("the log says %d times that the disk is full:\n%s", n, lines.String())
	}
	if !strings.Contains(lines.String(), "room on the disk again") {
		t.Errorf("the log does not say that there is room again:\n%s", lines.String())
	}
}

// TestSyncFails: the partition is offline for good, what was visible stays readable, others go on.
func TestSyncFails(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir())
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Shutdown(context.Background()) }) // cannot be clean
	c := b.dial()
	c.createTopic("sick")
	c.createTopic("well")
	one := func() []byte { return batchOf(t, batch.None, record{"k", "v", nowMillis()}) }
	c.produce("sick", 0, one())
	heal := faults.Add(faultfs.Rule{Kind: faultfs.Sync, Path: "sick-0/0000", Err: syscall.EIO})
	if got := c.produce("sick", 0, one()); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("failed sync: error %d", got.ErrorCode)
	}
	heal()
	if got := c.produce("sick", 0, one()); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("after a failed sync: error %d, want the partition offline", got.ErrorCode)
	}
	if got := c.fetch("sick", 0, 0, 0); got.ErrorCode != 0 || len(values(t, got.RecordBatches, 0)) != 1 || got.HighWatermark != 1 {
		t.Errorf("fetch of what was visible: %+v", got)
	}
	if got := c.fetch("sick", 0, 1, wait); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("fetch at the end: error %d", got.ErrorCode)
	}
	if got := c.produce("well", 0, one()); got.ErrorCode != 0 {
		t.Errorf("another partition: error %d", got.ErrorCode)
	}
}

// TestVisibleIsDurable: while a sync hangs nothing of it is visible, whatever acks the producer asked for.
func TestVisibleIsDurable(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir())
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.createTopic("slow")
	gate := make(chan struct{})
	faults.Add(faultfs.Rule{Kind: faultfs.Sync, Path: "*.log", Block: gate})
	faults.Add(faultfs.Rule{Kind: faultfs.SyncAll, Block: gate})
	resp := ask[*kmsg.ProduceResponse](c, 9, produceRequest("slow", 0, 1, batchOf(t, batch.None, record{"k", "v", nowMillis()})))
	if got := resp.Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Fatalf("acks 1: error %d", got)
	}
	if got := c.fetch("slow", 0, 0, 50*time.Millisecond); got.HighWatermark != 0 || len(got.RecordBatches) != 0 {
		t.Errorf("unsynced bytes are visible: %+v", got)
	}
	close(gate)
	if got := c.fetch("slow", 0, 0, wait); len(got.RecordBatches) == 0 {
		t.Error("synced bytes are not visible")
	}
}

// TestRelaxedTopic: with flush.messages above 1 a record is visible when it is written.
func TestRelaxedTopic(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), "log.flush.interval.messages", "9223372036854775807")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c := b.dial()
	c.createTopic("relaxed")
	gate := make(chan struct{})
	remove := faults.Add(faultfs.Rule{Kind: faultfs.Sync, Path: "*.log", Block: gate})
	if got := c.produce("relaxed", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != 0 {
		t.Errorf("error %d", got.ErrorCode)
	}
	if got := c.fetch("relaxed", 0, 0, 0); len(got.RecordBatches) == 0 {
		t.Error("record is not visible")
	}
	remove()
	close(gate)
}

// TestHighWatermarkAfterCrash: the first client after an unclean stop finds the high watermark where it was.
func TestHighWatermarkAfterCrash(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.createTopic("high")
	for range 20 {
		c.produce("high", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
	}
	b.abandon()
	again := startBroker(t, dir)
	if got := again.dial().fetch("high", 0, 0, 0); got.HighWatermark != 20 || len(values(t, got.RecordBatches, 0)) != 20 {
		t.Errorf("high watermark %d, %d records, want 20", got.HighWatermark, len(values(t, got.RecordBatches, 0)))
	}
	if got := again.topics.name("high").partition(0).epoch(); got != 1 {
		t.Errorf("leader epoch after an unclean stop is %d, want 1", got)
	}
}

// TestLostIdentity: without its meta.properties a directory looks new; what is to be done is said, and it works.
func TestLostIdentity(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	b.dial().createTopic("stay")
	cluster := b.ClusterID()
	b.stopClean()
	path := filepath.Join(dir, "meta.properties")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := newBroker(t, Config{}, dir).Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), "set cluster.id="+cluster) {
			t.Errorf("error is %v, want one that names the file and %s", err, cluster)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := startBroker(t, dir); again.topics.name("stay") == nil {
		t.Error("the topic is not there")
	}
}
