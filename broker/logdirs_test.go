package broker

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// logDirs shows what DescribeLogDirs says of each directory: its last element, error, and partitions with sizes.
func (c *client) logDirs(version int16, r *kmsg.DescribeLogDirsRequest) string {
	c.t.Helper()
	var lines []string
	for _, d := range ask[*kmsg.DescribeLogDirsResponse](c, version, r).Dirs {
		line := fmt.Sprint(filepath.Base(d.Dir), " ", d.ErrorCode)
		if !filepath.IsAbs(d.Dir) {
			c.t.Errorf("%s is not absolute", d.Dir)
		}
		if known := version >= 4 && d.ErrorCode == 0; known != (d.TotalBytes > 0) || known != (d.UsableBytes > 0) || d.UsableBytes > d.TotalBytes {
			c.t.Errorf("v%d: %d of %d bytes are free", version, d.UsableBytes, d.TotalBytes)
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				line += fmt.Sprint(" ", t.Topic, "-", p.Partition, ":", p.Size, ":", p.OffsetLag, ":", p.IsFuture)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func describeLogDirs(topic string, partitions ...int32) *kmsg.DescribeLogDirsRequest {
	r := kmsg.NewPtrDescribeLogDirsRequest()
	if topic == "" {
		return r
	}
	rt := kmsg.NewDescribeLogDirsRequestTopic()
	rt.Topic, rt.Partitions = topic, partitions
	r.Topics = append(r.Topics, rt)
	return r
}

func TestDescribeLogDirs(t *testing.T) {
	base := t.TempDir()
	b := startBroker(t, filepath.Join(base, "d1")+","+filepath.Join(base, "d2"))
	c := b.dial()
	c.create("a", 3)
	size := int64(0)
	for range 2 {
		rec := batchOf(t, batch.None, record{"k", "v", nowMillis()})
		size += int64(len(rec))
		c.produce("a", 1, rec)
	}
	all := fmt.Sprintf("d1 0 a-0:0:0:false a-2:0:0:false; d2 0 a-1:%d:0:false", size)
	for v := int16(0); v <= 5; v++ {
		if got := c.logDirs(v, describeLogDirs("")); got != all {
			t.Errorf("v%d: %s", v, got)
		}
		if got, want := c.logDirs(v, describeLogDirs("a", 1, 7, 0)), fmt.Sprintf("d1 0 a-0:0:0:false; d2 0 a-1:%d:0:false", size); got != want {
			t.Errorf("v%d: %s, want %s", v, got, want)
		}
		if got := c.logDirs(v, describeLogDirs("nope", 0)); got != "d1 0; d2 0" {
			t.Errorf("v%d: %s", v, got)
		}
	}
}

// TestOneDirectoryFails: at the start, a directory that cannot be used takes its partitions offline, and nothing else.
func TestOneDirectoryFails(t *testing.T) {
	base := t.TempDir()
	dirs := filepath.Join(base, "d1") + "," + filepath.Join(base, "d2")
	b := startBroker(t, dirs)
	c := b.dial()
	c.create("a", 2)
	value := func(n int) []byte { return batchOf(t, batch.None, record{"k", fmt.Sprint("v", n), nowMillis()}) }
	c.produce("a", 0, value(0))
	c.produce("a", 1, value(1))
	b.stopClean()

	faults := faultfs.New(vfs.OS())
	remove := faults.Add(faultfs.Rule{Kind: faultfs.Stat, Path: filepath.Join(base, "d2"), Err: syscall.EIO})
	b = newBroker(t, Config{FS: faults}, dirs)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	c = b.dial()
	if got := c.produce("a", 0, value(2)); got.ErrorCode != 0 || got.BaseOffset != 1 {
		t.Errorf("the other directory: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	if got := c.produce("a", 1, value(3)); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("producing: error %d", got.ErrorCode)
	}
	if got := c.fetch("a", 1, 0, 0); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("fetching: error %d", got.ErrorCode)
	}
	if got := c.logDirs(4, describeLogDirs("a", 1)); got != "d1 0; d2 56" {
		t.Error(got)
	}
	c.create("new", 2)
	for n := range int32(2) {
		if got := c.produce("new", n, value(4)); got.ErrorCode != 0 {
			t.Errorf("a new topic: error %d", got.ErrorCode)
		}
	}
	b.stopClean()
	remove()
	b = startBroker(t, dirs)
	c = b.dial()
	if got := values(t, c.fetch("a", 1, 0, 0).RecordBatches, 0); fmt.Sprint(got) != "[v1]" {
		t.Errorf("when it is back: %v", got)
	}
	if got := values(t, c.fetch("a", 0, 0, 0).RecordBatches, 0); fmt.Sprint(got) != "[v0 v2]" {
		t.Errorf("of the other: %v", got)
	}
}

// TestDiskFailsAtRunTime: partitions on the other disk go on.
func TestDiskFailsAtRunTime(t *testing.T) {
	base := t.TempDir()
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, filepath.Join(base, "d1")+","+filepath.Join(base, "d2"))
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Shutdown(t.Context()) }) // the disk is still broken
	c := b.dial()
	c.create("a", 2)
	value := batchOf(t, batch.None, record{"k", "v", nowMillis()})
	faults.Add(faultfs.Rule{Path: filepath.Join(base, "d2"), Err: syscall.EIO})
	if got := c.produce("a", 1, value); got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("error %d", got.ErrorCode)
	}
	for range 3 {
		if got := c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != 0 {
			t.Errorf("the other disk: error %d", got.ErrorCode)
		}
	}
	c.create("new", 2)
	for n := range int32(2) {
		if got := c.produce("new", n, batchOf(t, batch.None, record{"k", "v", nowMillis()})); got.ErrorCode != 0 {
			t.Errorf("a new topic: error %d", got.ErrorCode)
		}
	}
	if got := c.logDirs(4, describeLogDirs("nope", 0)); !strings.Contains(got, "d1 0") || !strings.Contains(got, "d2 56") {
		t.Error(got)
	}
}

func alterLogDirs(dir, topic string, partitions ...int32) *kmsg.AlterReplicaLogDirsRequest {
	r := kmsg.NewPtrAlterReplicaLogDirsRequest()
	rt := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	rt.Topic, rt.Partitions = topic, partitions
	rd := kmsg.NewAlterReplicaLogDirsRequestDir()
	rd.Dir, rd.Topics = dir, append(rd.Topics, rt)
	r.Dirs = append(r.Dirs, rd)
	return r
}

// altered shows the errors of AlterReplicaLogDirs.
func (c *client) altered(version int16, r *kmsg.AlterReplicaLogDirsRequest) string {
	c.t.Helper()
	out := ""
	for _, t := range ask[*kmsg.AlterReplicaLogDirsResponse](c, version, r).Topics {
		for _, p := range t.Partitions {
			out += fmt.Sprint(t.Topic, "-", p.Partition, " ", p.ErrorCode, " ")
		}
	}
	return out
}

// TestAlterReplicaLogDirs moves a partition forth and back while a producer and a waiting consumer use it.
func TestAlterReplicaLogDirs(t *testing.T) {
	base := t.TempDir()
	d1, d2 := filepath.Join(base, "d1"), filepath.Join(base, "d2")
	b := startBroker(t, d1+","+d2)
	c := b.dial()
	c.create("a", 2, "segment.bytes", "500")
	n := 0
	send := func() {
		t.Helper()
		if got := c.produce("a", 0, batchOf(t, batch.None, record{"k", fmt.Sprint("v", n), nowMillis()})); got.ErrorCode != 0 || got.BaseOffset != int64(n) {
			t.Fatalf("record %d: error %d, offset %d", n, got.ErrorCode, got.BaseOffset)
		}
		n++
	}
	for range 30 {
		send()
	}
	waiting := b.dial()
	r := fetchRequest("a", 0, 30, wait)
	r.SetVersion(12)
	waiting.send(r)
	for v, to := range []string{d2, d1, d2} {
		if got := c.altered(int16(v), alterLogDirs(to, "a", 0)); got != "a-0 0 " {
			t.Fatal(got)
		}
		for !strings.Contains(c.logDirs(4, describeLogDirs("a", 0)), filepath.Base(to)+" 0 a-0:") || strings.Contains(c.logDirs(4, describeLogDirs("a", 0)), "true") {
			send()
		}
		send()
	}
	got := waiting.receive(r, waiting.next).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || values(t, got.RecordBatches, 30)[0] != "v30" {
		t.Errorf("the waiting fetch: error %d, %v", got.ErrorCode, values(t, got.RecordBatches, 30))
	}
	b.stopClean()
	b = startBroker(t, d1+","+d2)
	c = b.dial()
	if got := c.logDirs(1, describeLogDirs("a", 0)); !strings.HasPrefix(got, "d1 0; d2 0 a-0:") {
		t.Errorf("after a restart: %s", got)
	}
	var all []string
	for len(all) < n {
		more := values(t, c.fetch("a", 0, int64(len(all)), 0).RecordBatches, int64(len(all)))
		if len(more) == 0 {
			break
		}
		all = append(all, more...)
	}
	for i, v := range all {
		if v != fmt.Sprint("v", i) {
			t.Fatalf("record %d is %s", i, v)
		}
	}
	if len(all) != n {
		t.Errorf("%d records, sent %d", len(all), n)
	}
	for _, tc := range []struct{ dir, topic, want string }{
		{base + "/d3", "a", fmt.Sprint("a-0 ", kerr.LogDirNotFound.Code, " ")},
		{d1, "nope", fmt.Sprint("nope-0 ", kerr.UnknownTopicOrPartition.Code, " ")},
		{base + "/d3", "nope", fmt.Sprint("nope-0 ", kerr.LogDirNotFound.Code, " ")},
		{d2, "a", "a-0 0 "},
	} {
		if got := c.altered(2, alterLogDirs(tc.dir, tc.topic, 0)); got != tc.want {
			t.Errorf("%s to %s: %s, want %s", tc.topic, tc.dir, got, tc.want)
		}
	}
}

// TestForgottenDirectory: a directory that log.dirs lacks is missed aloud, and when it comes back nothing in it is deleted.
func TestForgottenDirectory(t *testing.T) {
	base := t.TempDir()
	first, second := filepath.Join(base, "d1"), filepath.Join(base, "d2")
	b := startBroker(t, first+","+second)
	c := b.dial()
	c.create("a", 2)
	value := func(n int) []byte { return batchOf(t, batch.None, record{"k", fmt.Sprint("v", n), nowMillis()}) }
	c.produce("a", 1, value(1))
	b.stopClean()

	var lines syncBuffer
	b = newBroker(t, Config{Logger: slog.New(slog.NewTextHandler(&lines, nil))}, first)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	if got := lines.String(); !strings.Contains(got, "begin empty") || !strings.Contains(got, "a-1") {
		t.Errorf("nothing was said: %s", got)
	}
	c = b.dial()
	c.produce("a", 1, value(2))
	c.produce("a", 1, value(3))
	b.stopClean()

	b = startBroker(t, first+","+second)
	if got := values(t, b.dial().fetch("a", 1, 0, 0).RecordBatches, 0); fmt.Sprint(got) != "[v2 v3]" {
		t.Errorf("the longer one: %v", got)
	}
	b.stopClean()
	if err := os.Rename(filepath.Join(first, "a-1"), filepath.Join(base, "a-1")); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, first+","+second)
	if got := values(t, b.dial().fetch("a", 1, 0, 0).RecordBatches, 0); fmt.Sprint(got) != "[v1]" {
		t.Errorf("the one that was there before: %v", got)
	}
}
