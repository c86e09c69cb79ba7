package logdir

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gregor/log"
	"gregor/log/batch"
	"gregor/log/vfs"
)

// realOptions open real logs on the real file system.
func realOptions(dir string) Options {
	return Options{FS: vfs.OS(), Dir: dir, BrokerID: 1, ClusterID: "abc"}
}

// appendOne appends a batch with one record of 1,000 bytes.
func appendOne(t testing.TB, l *log.Log) log.Appended {
	t.Helper()
	return appendValue(t, l, string(make([]byte, 1000)))
}

func appendValue(t testing.TB, l *log.Log, value string) log.Appended {
	t.Helper()
	var w batch.Builder
	w.Reset(batch.Options{})
	w.Append(1_700_000_000_000, nil, []byte(value))
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := batch.ReadHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Append(b, h, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func thousand() []Spec {
	specs := make([]Spec, 1000)
	for i := range specs {
		specs[i] = spec(fmt.Sprintf("topic-%d", i/10), int32(i%10))
	}
	return specs
}

// fillDir makes n partitions with a record each, synced.
func fillDir(t testing.TB, dir string, specs []Spec) *Dir {
	t.Helper()
	d, err := Open(realOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Create(specs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range made {
		appendOne(t, p.Log())
	}
	if err := d.ownCommit.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRealLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := fillDir(t, dir, []Spec{spec("a", 0), spec("a", 1), spec("b", 0)})
	must(t, d.Delete(TopicPartition{"a", 1}))
	for _, p := range d.Partitions() {
		if p.Log().HighWatermark() != 1 || p.Log().RecoveryPoint() != 1 {
			t.Errorf("%s: high watermark %d, recovery point %d; want 1, 1", p.ID(), p.Log().HighWatermark(), p.Log().RecoveryPoint())
		}
	}
	d.Abandon() // as killed
	for _, clean := range []bool{false, true} {
		d = mustOpen(t, realOptions(dir))
		if d.WasClean() != clean || names(d) != "a-0 b-0" {
			t.Fatalf("clean %v, partitions %s", d.WasClean(), names(d))
		}
		for _, p := range d.Partitions() {
			if p.Err() != nil || p.Log().EndOffset() != 1 || p.TopicID() != spec(p.id.Topic, p.id.Partition).TopicID {
				t.Errorf("%s: %v, end %d, topic id %v", p.ID(), p.Err(), p.Log().EndOffset(), p.TopicID())
			}
		}
		must(t, d.Close())
	}
}

func BenchmarkCreateThousand(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		d, err := Open(realOptions(filepath.Join(b.TempDir(), "data")))
		if err != nil {
			b.Fatal(err)
		}
		before := d.CommitStats()
		b.StartTimer()
		if _, err := d.Create(thousand()...); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		after := d.CommitStats()
		b.ReportMetric(float64(after.All.Count+after.File.Count-before.All.Count-before.File.Count), "syncs")
		d.Abandon()
		b.StartTimer()
	}
}

// BenchmarkStart opens 1,000 partitions with one small segment each. The page cache is warm, as after kill -9.
func BenchmarkStart(b *testing.B) {
	for _, clean := range []bool{false, true} {
		b.Run(fmt.Sprintf("clean=%v", clean), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "data")
			d := fillDir(b, dir, thousand())
			stop := func() {
				if !clean {
					d.Abandon()
					return
				}
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
			}
			stop()
			var longest time.Duration
			for b.Loop() {
				start := time.Now()
				var err error
				if d, err = Open(realOptions(dir)); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(start))
				b.StopTimer()
				if d.WasClean() != clean || len(d.Partitions()) != 1000 {
					b.Fatalf("clean %v, %d partitions", d.WasClean(), len(d.Partitions()))
				}
				stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(longest.Milliseconds()), "max-ms")
		})
	}
}
