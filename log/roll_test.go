package log

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gregor/log/batch"
)

// TestRollConditions holds each reason for a roll against its border, as Apache Kafka has it: the segment is rolled before the batch that would break
// the rule.
func TestRollConditions(t *testing.T) {
	small := func(ts int64) []byte { return batchOf(t, 1, 225, ts, batch.Options{}) } // 300 bytes
	for _, tc := range []struct {
		name string
		conf Config
		step time.Duration // of the clock between the batches
		ts   []int64       // of the batches
		want []int64       // bases of the segments
	}{
		{"just full", Config{SegmentBytes: 600}, 0, []int64{1, 1, 1}, []int64{0, 2}},
		{"one byte too much", Config{SegmentBytes: 599}, 0, []int64{1, 1, 1}, []int64{0, 1, 2}},
		{"as old as segment.ms", Config{SegmentMs: 100}, 0, []int64{50, 150, 150}, []int64{0}},
		{"older", Config{SegmentMs: 100}, 0, []int64{50, 150, 151}, []int64{0, 2}},
		{"an old record does not roll", Config{SegmentMs: 100}, time.Hour, []int64{5000, 10, 5100}, []int64{0}},
		{"counted from the first batch", Config{SegmentMs: 100}, 0, []int64{50, 40, 145, 151}, []int64{0, 3}},
		{"no timestamps, by the clock", Config{SegmentMs: 100}, 50 * time.Millisecond, []int64{-1, -1, -1, -1}, []int64{0, 3}},
		{"offset index full", Config{SegmentIndexBytes: 48, IndexIntervalBytes: 1}, 0, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}, []int64{0, 7}},
		{"time index full", Config{SegmentIndexBytes: 36, IndexIntervalBytes: 1}, 0, []int64{1, 2, 3, 4}, []int64{0, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, c := options(newFS(t)), newClock()
			o.Now, o.Config = c.Now, tc.conf
			l := mustOpen(t, o)
			defer l.Abandon()
			for _, ts := range tc.ts {
				mustAppend(t, l, small(ts))
				c.advance(tc.step)
			}
			var got []int64
			for _, s := range *l.list.Load() {
				got = append(got, s.base)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("segments begin at %v, want %v", got, tc.want)
			}
		})
	}
}

// TestRollByOffsetSpan: offsets in an index are 31 bits above the base.
func TestRollByOffsetSpan(t *testing.T) {
	for first, rolls := range map[int64]bool{math.MaxInt32 - 2: false, math.MaxInt32 - 1: true, math.MaxInt32 + 5: true} {
		l := mustOpen(t, options(newFS(t)))
		mustAppend(t, l, batchOf(t, 1, 10, 1, batch.Options{}))
		end := l.end.load()
		end.offset = first
		l.end.store(end)
		mustAppend(t, l, batchOf(t, 3, 10, 1, batch.Options{}))
		if got := len(*l.list.Load()) == 2; got != rolls || rolls && l.list.Load().active().base != first {
			t.Errorf("batch of offsets [%d,%d]: rolled %v", first, first+2, got)
		}
		l.Abandon()
	}
}

// TestRollJitter: each segment lives for segment.ms less a random part of segment.jitter.ms.
func TestRollJitter(t *testing.T) {
	for _, jitter := range []int64{1, 400, 1000, 5000} {
		seen := map[int64]bool{}
		for range 50 {
			o := options(newFS(t))
			o.Config = Config{SegmentMs: 1000, SegmentJitterMs: jitter}
			l := mustOpen(t, o)
			mustAppend(t, l, batchOf(t, 1, 10, 0, batch.Options{}))
			age := int64(0)
			for ; len(*l.list.Load()) == 1; age += 20 {
				mustAppend(t, l, batchOf(t, 1, 10, age, batch.Options{}))
			}
			if age-20 > 1020 || age-20 <= 1000-min(jitter, 1000) {
				t.Fatalf("jitter %d: rolled at the age of %d", jitter, age-20)
			}
			seen[age] = true
			l.Abandon()
		}
		if spread := len(seen); jitter == 1 && spread > 1 || jitter > 1 && spread < 5 {
			t.Errorf("jitter %d: %d different ages", jitter, spread)
		}
	}
}
