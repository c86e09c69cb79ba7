package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	kills = 8
	stops = 3
)

// TestKill: SIGKILL at random moments under load.
func TestKill(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	l := startLoad(t, b)
	for range kills {
		l.progress(t, 500)
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		b.Kill(t)
		start := time.Now()
		b.Up(t)
		t.Logf("killed with %d records acked, listening again after %v", l.acks.Load(), time.Since(start).Round(time.Millisecond))
	}
	l.progress(t, 500)
	l.finish(t)
	stored := verify(t, l)
	b.Kill(t) // once more at rest: what was read must be there again
	b.Up(t)
	endsAtOnce(t, l, stored)
	verify(t, l)
}

// TestStop: SIGTERM under load ends with exit code 0, and nothing is lost or doubled over the restart.
func TestStop(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	l := startLoad(t, b)
	for range stops {
		l.progress(t, 2000)
		start := time.Now()
		b.Stop(t)
		stopped := time.Since(start)
		b.Up(t)
		t.Logf("stopped under load in %v with %d records acked", stopped.Round(time.Millisecond), l.acks.Load())
	}
	l.progress(t, 500)
	l.finish(t)
	verify(t, l)
}

// TestKillWhileCreating: topics whose creation was answered are there after SIGKILL, with id and partitions.
func TestKillWhileCreating(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	adm := kadm.NewClient(b.Client(t))
	ids := map[string]kadm.TopicID{}
	for round := range 3 {
		for i := range 10 {
			name := harness.Topic("made")
			r, err := adm.CreateTopics(t.Context(), int32(1+i), 1, nil, name)
			if err != nil || r[name].Err != nil {
				t.Fatalf("round %d: create %s: %v %v", round, name, err, r[name].Err)
			}
			ids[name] = r[name].ID
		}
		b.Kill(t)
		b.Up(t)
		topics, err := adm.ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range ids {
			if got, ok := topics[name]; !ok || got.ID != want {
				t.Errorf("round %d: topic %s with id %v is gone or another after SIGKILL: %v", round, name, want, got.ID)
			}
		}
	}
}

// verify reads everything and compares it with what producers and consumer were told.
func verify(t *testing.T, l *load) map[place][]id {
	t.Helper()
	stored := readAll(t, l)
	var records, doubled int
	for at, recs := range stored {
		last := map[int]int{}
		for offset, rec := range recs {
			records++
			if n, ok := last[rec.producer]; ok && rec.n <= n {
				doubled++
				t.Errorf("offset %d of %s-%d: record %d of producer %d comes after its record %d", offset, at.topic, at.partition, rec.n, rec.producer, n)
			}
			last[rec.producer] = rec.n
		}
	}
	acked := missing(t, "acked", l.acked, stored)
	seen := missing(t, "seen by the consumer", l.seen, stored)
	for _, fault := range l.faults {
		t.Error(fault)
	}
	if acked == 0 || seen == 0 {
		t.Errorf("%d records acked and %d seen: nothing was tested", acked, seen)
	}
	t.Logf("%d records stored, %d acked, %d seen while it went on, %d doubled", records, acked, seen, doubled)
	return stored
}

// endsAtOnce demands that the first answers after a start give the ends that clients saw before: a consumer that is sent
// back to an older end takes records for lost. It waits for the right ends, so that what comes later tells losses apart.
func endsAtOnce(t *testing.T, l *load, stored map[place][]id) {
	t.Helper()
	start := time.Now()
	adm := kadm.NewClient(l.broker.Client(t))
	for first := true; ; first = false {
		ends, err := adm.ListEndOffsets(t.Context(), l.topics...)
		if err != nil {
			t.Fatal(err)
		}
		behind, example := 0, ""
		ends.Each(func(o kadm.ListedOffset) {
			if want := int64(len(stored[place{o.Topic, o.Partition}])); o.Offset != want {
				behind++
				example = fmt.Sprintf("%s-%d ends at %d, before the kill at %d (%v)", o.Topic, o.Partition, o.Offset, want, o.Err)
			}
		})
		switch {
		case behind == 0:
			if !first {
				t.Logf("all ends were right %v later", time.Since(start).Round(time.Millisecond))
			}
			return
		case first:
			t.Errorf("right after the start ListOffsets gives other ends for %d partitions: %s", behind, example)
		case time.Since(start) > time.Minute:
			t.Errorf("a minute after the start %d partitions still end elsewhere: %s", behind, example)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// missing reports what of told is not stored at its offset, and returns how many were told.
func missing(t *testing.T, what string, told map[place]map[int64]id, stored map[place][]id) int {
	t.Helper()
	var n, lost int
	for at, recs := range told {
		for offset, rec := range recs {
			n++
			have := stored[at]
			if offset < int64(len(have)) && have[offset] == rec {
				continue
			}
			if lost++; lost <= 10 {
				t.Errorf("record %d of producer %d was %s at offset %d of %s-%d and is not there (the log holds %d records)", rec.n, rec.producer, what, offset, at.topic, at.partition, len(have))
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d records that were %s are lost", lost, n, what)
	}
	return n
}

// readAll returns every partition's records by offset; offsets must be dense from 0 to the end that ListOffsets gives.
func readAll(t *testing.T, l *load) map[place][]id {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cl := l.broker.Client(t, kgo.ConsumePartitions(l.fromStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, l.topics...)
	if err != nil {
		t.Fatal(err)
	}
	var left int64
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			t.Fatalf("end of %s-%d: %v", o.Topic, o.Partition, o.Err)
		}
		left += o.Offset
	})
	stored := map[place][]id{}
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records before the end: %v", left, err)
		}
		for r := range fetches.RecordsAll() {
			at := place{r.Topic, r.Partition}
			if want := int64(len(stored[at])); r.Offset != want {
				t.Fatalf("%s-%d: offset %d where %d was due", r.Topic, r.Partition, r.Offset, want)
			}
			rec, err := parse(r.Value)
			if err != nil {
				t.Fatalf("%s-%d at %d: %v", r.Topic, r.Partition, r.Offset, err)
			}
			stored[at] = append(stored[at], rec)
			left--
		}
	}
	return stored
}
