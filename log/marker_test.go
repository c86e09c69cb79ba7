package log

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gregor/log/batch"
	"gregor/log/producer"
	"gregor/log/vfs"
)

// inTransaction makes a transactional batch of one record.
func inTransaction(t testing.TB, id int64, sequence int32) []byte {
	t.Helper()
	return batchOf(t, 1, 20, 1000, batch.Options{Producer: &batch.Producer{ID: id, Sequence: sequence}, Transactional: true})
}

// TestLastStableFollowsDurableMarkers: a marker moves the last stable offset when it is durable, not when it is written, and wakes who waits for it.
func TestLastStableFollowsDurableMarkers(t *testing.T) {
	l := mustOpen(t, options(newFS(t)))
	defer l.Abandon()
	mustAppend(t, l, inTransaction(t, 1, 0))
	mustAppend(t, l, inTransaction(t, 2, 0))
	must(t, l.Flush())
	if l.HighWatermark() != 2 || l.LastStable() != 0 {
		t.Fatalf("high watermark %d, last stable %d, want 2 and 0", l.HighWatermark(), l.LastStable())
	}
	w := &wakes{}
	if l.Watch(w, 1, ToLastStable) {
		t.Fatal("offset 0 is stable before its transaction ended")
	}
	a, err := l.AppendMarker(producer.Marker{ProducerID: 1, Commit: false}, 4)
	must(t, err)
	if a.BaseOffset != 2 || a.LastOffset != 2 || l.LastStable() != 0 || w.count() != 0 {
		t.Fatalf("marker at %+v, last stable %d, %d wakes before the sync", a, l.LastStable(), w.count())
	}
	must(t, l.Flush())
	if l.LastStable() != 1 || w.count() != 1 {
		t.Fatalf("last stable %d, %d wakes after the sync, want 1 and 1", l.LastStable(), w.count())
	}
	if _, err := l.AppendMarker(producer.Marker{ProducerID: 2, Commit: true}, 4); err != nil {
		t.Fatal(err)
	}
	must(t, l.Flush())
	got, err := l.AbortedIn(0, 4)
	must(t, err)
	if l.LastStable() != 4 || !slices.Equal(got, []AbortedTxn{{ProducerID: 1, FirstOffset: 0, LastOffset: 2, LastStableOffset: 1}}) {
		t.Fatalf("last stable %d, aborted %+v", l.LastStable(), got)
	}
}

// TestMarkerBytes: the marker in the log is what Kafka writes, checked in package batch, with offset and leader epoch.
func TestMarkerBytes(t *testing.T) {
	o := options(newFS(t))
	l := mustOpen(t, o)
	defer l.Abandon()
	mustAppend(t, l, inTransaction(t, 1, 0))
	_, err := l.AppendMarker(producer.Marker{ProducerID: 1, CoordinatorEpoch: 9, Timestamp: 5}, 4)
	must(t, err)
	want := batch.AppendMarker(nil, batch.Producer{ID: 1}, o.Now().UnixMilli(), 9, false)
	batch.Stamp(want, 1, 4)
	if got := readAll(t, l, 1, ToLogEnd); len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Fatalf("the log has %x, want %x", got, want)
	}
}

// TestMarkerRefused: markers of old epochs and old coordinators write nothing.
func TestMarkerRefused(t *testing.T) {
	l := mustOpen(t, options(newFS(t)))
	defer l.Abandon()
	_, err := l.AppendMarker(producer.Marker{ProducerID: 1, Epoch: 5, CoordinatorEpoch: 5}, 0)
	must(t, err)
	for _, c := range []struct {
		m    producer.Marker
		want error
	}{
		{producer.Marker{ProducerID: 1, Epoch: 4, CoordinatorEpoch: 5}, producer.ErrFenced},
		{producer.Marker{ProducerID: 1, Epoch: 5, CoordinatorEpoch: 4}, producer.ErrCoordinatorFenced},
		{producer.Marker{ProducerID: -1, Epoch: 5, CoordinatorEpoch: 5}, batch.ErrInvalid},
	} {
		if _, err := l.AppendMarker(c.m, 0); !errors.Is(err, c.want) || l.EndOffset() != 1 {
			t.Errorf("%+v: %v, want %v; the log ends at %d", c.m, err, c.want, l.EndOffset())
		}
	}
}

// TestKafkaTxnIndex opens a partition of a real Apache Kafka: its transaction index is right as it is, and without it an equal one is made.
func TestKafkaTxnIndex(t *testing.T) {
	for _, version := range []string{"3.9.1", "4.4.0"} {
		for _, missing := range []bool{false, true} {
			o := options(newFS(t))
			must(t, o.FS.MkdirAll(o.Dir))
			for _, name := range []string{"00000000000000000000.log", "00000000000000000000.txnindex", "00000000000000000167.snapshot"} {
				if b := kafkaFile(t, version, name); !missing || filepath.Ext(name) != txnExt {
					must(t, writeFile(o.FS, filepath.Join(o.Dir, name), b))
				}
			}
			lines := &logLines{}
			o.Logger, o.Clean, o.RecoveryPoint = lines.logger(), true, 167
			l := mustOpen(t, o)
			index := kafkaFile(t, version, "00000000000000000000.txnindex")
			got, err := l.AbortedIn(0, l.EndOffset())
			must(t, err)
			var encoded []byte
			for _, a := range got {
				encoded = appendAborted(encoded, a)
			}
			if !bytes.Equal(encoded, index) || len(index) == 0 {
				t.Errorf("%s: aborted transactions are %+v", version, got)
			}
			if lines.has("transaction index") != missing {
				t.Errorf("%s, missing %v: logged %s", version, missing, lines.buf.String())
			}
			must(t, l.Close())
			file, err := vfs.ReadFile(o.FS, filepath.Join(o.Dir, fileName(0, txnExt)), 1<<20)
			must(t, err)
			if !bytes.Equal(file, index) {
				t.Errorf("%s: the file is\n%x\nKafka's is\n%x", version, file, index)
			}
		}
	}
}

func kafkaFile(t *testing.T, version, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("producer", "testdata", "kafka-"+version, name))
	must(t, err)
	return b
}

// TestTimesBelowLastStable: searches by time find what is below the last stable offset, also when the open transaction began segments ago.
func TestTimesBelowLastStable(t *testing.T) {
	o := options(newFS(t))
	o.Config = Config{SegmentBytes: 600}
	l := mustOpen(t, o)
	defer l.Abandon()
	mustAppend(t, l, batchOf(t, 1, 100, 5000, batch.Options{}))
	mustAppend(t, l, inTransaction(t, 1, 0))
	for i := range 20 {
		mustAppend(t, l, batchOf(t, 1, 100, 6000+int64(i), batch.Options{}))
	}
	must(t, l.Flush())
	if segments := len(*l.list.Load()); segments < 3 {
		t.Fatalf("%d segments", segments)
	}
	if at, ok, err := l.MaxTimestamp(ToLastStable); err != nil || !ok || at.Offset != 0 || at.Timestamp != 5000 {
		t.Errorf("largest timestamp: %+v, %v, %v", at, ok, err)
	}
	if at, ok, err := l.SearchTimestamp(5001, ToLastStable); err != nil || ok {
		t.Errorf("later than all that is stable: %+v, %v, %v", at, ok, err)
	}
}

// TestManyAborted: more aborted transactions than one segment holds in memory, read by others meanwhile and after a restart.
func TestManyAborted(t *testing.T) {
	o := options(newFS(t))
	o.Config = Config{SegmentBytes: 700 << 10}
	l := mustOpen(t, o)
	const n = 12 * spillEntries
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			r := rng(1)
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				checkEveryThird(t, l, r.Int64N(l.LastStable()+1), l.LastStable())
			}
		})
	}
	for i := range int64(n) {
		mustAppend(t, l, inTransaction(t, i, 0))
		_, err := l.AppendMarker(producer.Marker{ProducerID: i, Commit: i%3 != 0}, 0)
		must(t, err)
		if i%50 == 0 {
			must(t, l.Flush())
		}
	}
	must(t, l.Flush())
	close(done)
	wg.Wait()
	if most := slices.MaxFunc(*l.list.Load(), func(a, b *segment) int { return a.aborted.entries() - b.aborted.entries() }).aborted.entries(); most <= spillEntries {
		t.Fatalf("no segment has more than %d entries", most)
	}
	checkEveryThird(t, l, 0, 2*n)
	must(t, l.Close())
	l = mustOpen(t, reopened(o, l, true))
	for from := int64(0); from < 2*n; from += 97 {
		checkEveryThird(t, l, from, min(from+301, 2*n))
	}
	must(t, l.Close())
}

// checkEveryThird compares aborted transactions with what TestManyAborted writes: each is a batch and its marker, every third aborted.
func checkEveryThird(t *testing.T, l *Log, from, to int64) {
	t.Helper()
	got, err := l.AbortedIn(from, to)
	if err != nil {
		t.Error(err)
		return
	}
	next := (from/2 + 2) / 3 * 3
	for _, a := range got {
		if a != (AbortedTxn{ProducerID: next, FirstOffset: 2 * next, LastOffset: 2*next + 1, LastStableOffset: 2*next + 2}) {
			t.Errorf("aborted in [%d,%d): %+v, want producer %d", from, to, a, next)
			return
		}
		next += 3
	}
	if from < to && 2*next < to {
		t.Errorf("aborted in [%d,%d): none from producer %d on", from, to, next)
	}
}
