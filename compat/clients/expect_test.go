package clients

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// expected is what a consumer of that ability must see of a topic, by partition, offsets dense from 0. Timestamps are
// lost where the producer, the stored format or the consumer has none, headers likewise.
func expected(tp *topic, reader ability) [][]string {
	out := make([][]string, partitions)
	for _, r := range tp.set {
		if tp.producer.ability().magic < 1 || tp.magic() < 1 || reader.magic < 1 {
			r.timestamp = -1
		}
		if tp.magic() < 2 || reader.magic < 2 {
			r.headers = nil
		}
		out[r.partition] = append(out[r.partition], r.line(int64(len(out[r.partition]))))
	}
	return out
}

// clockTimes tells that the topic's timestamps are those of the producer's clock.
func (tp *topic) clockTimes() bool {
	can := tp.producer.ability()
	return can.fixedTime && can.magic > 0 && tp.magic() > 0
}

// differences tells for each kind the first way in which a consumer's view of a topic is wrong, "" where there is none.
// Where the producer cannot choose timestamps, they must be those of the reference view and recent.
func differences(tp *topic, c consumer, got, reference view) [partitions]string {
	var out [partitions]string
	want := expected(tp, c.ability())
	for p := range want {
		if tp.clockTimes() && c.ability().magic > 0 {
			want[p] = withTimes(want[p], reference.lines[tp.name][p])
		}
		have := got.lines[tp.name]
		switch {
		case have == nil:
			out[p] = "nothing was read"
		case !slices.Equal(have[p], want[p]):
			out[p] = firstDifference(have[p], want[p])
		default:
			out[p] = spanDifference(p, want[p], got.spans[tp.name], c.ability().magic > 0)
		}
		if failure := got.failures[tp.name]; failure != "" && out[p] != "" {
			out[p] += "; the client says: " + failure
		}
	}
	return out
}

// spanDifference compares what ListOffsets told, if the client has such calls. A reader that sees no timestamps cannot be
// asked where one is.
func spanDifference(p int, want []string, spans []span, timed bool) string {
	if spans == nil {
		return ""
	}
	if len(spans) != partitions {
		return fmt.Sprintf("offsets of %d partitions, want %d", len(spans), partitions)
	}
	w := span{0, int64(len(want)), notAsked}
	if timed && spans[p].atTime != notAsked {
		w.atTime = firstAfter(want, queryTime)
	}
	if spans[p] != w {
		return fmt.Sprintf("begin, end and offset at %d are %v, want %v", queryTime, spans[p], w)
	}
	return ""
}

// firstAfter is the offset of the first line whose timestamp is at least ms, -1 when there is none.
func firstAfter(lines []string, ms int64) int64 {
	for i, line := range lines {
		var partition, offset, timestamp int64
		if _, err := fmt.Sscan(line, &partition, &offset, &timestamp); err == nil && timestamp >= ms {
			return int64(i)
		}
	}
	return -1
}

func firstDifference(have, want []string) string {
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			return fmt.Sprintf("record %d:\n got %.600s\nwant %.600s", i, have[i], want[i])
		}
	}
	return fmt.Sprintf("%d records, want %d", len(have), len(want))
}

// withTimes puts the timestamps of seen into want when they are of the last ten minutes.
func withTimes(want, seen []string) []string {
	out := slices.Clone(want)
	for i := range min(len(want), len(seen)) {
		w, s := strings.Split(want[i], "\t"), strings.Split(seen[i], "\t")
		var ms int64
		if _, err := fmt.Sscan(s[2], &ms); err == nil && time.Since(time.UnixMilli(ms)).Abs() < 10*time.Minute {
			w[2] = s[2]
		}
		out[i] = strings.Join(w, "\t")
	}
	return out
}
