package log

import (
	"fmt"
	"slices"
)

// OffsetsBefore are the offsets at which segments begin that were last written to at ts (milliseconds) or before, and the log end offset if
// that is now; at most most of them, the newest first. ListOffsets v0 is about these: it knows no timestamps of records. Files that were
// copied have the time of the copy.
func (l *Log) OffsetsBefore(ts int64, most int) ([]int64, error) {
	all, err := l.segmentStarts()
	if err != nil {
		return nil, err
	}
	for len(all) > 0 && all[len(all)-1].time > ts {
		all = all[:len(all)-1]
	}
	return newestFirst(all, most), nil
}

// LatestOffsets are the log end offset and the offsets at which segments begin, at most most of them, the newest first.
func (l *Log) LatestOffsets(most int) []int64 {
	return newestFirst(l.starts(*l.list.Load()), most)
}

// start is where a segment begins, with the time of its last change; the last is the log's end, if the active segment has anything.
type start struct {
	offset, time int64
}

func (l *Log) starts(list segments) []start {
	first := l.StartOffset()
	all := make([]start, 0, len(list)+1)
	for _, s := range list {
		all = append(all, start{offset: max(s.base, first)})
	}
	if list.active().size.Load() > 0 {
		all = append(all, start{offset: l.EndOffset()})
	}
	return all
}

// segmentStarts is starts with times. A segment that is deleted meanwhile is looked for again.
func (l *Log) segmentStarts() ([]start, error) {
	for {
		loaded := l.list.Load()
		list := *loaded
		all := l.starts(list)
		var err error
		for i := 0; i < len(all) && err == nil; i++ {
			all[i].time, err = l.lastChange(list, i)
		}
		if err == nil || !l.changedSince(loaded) {
			return all, err
		}
	}
}

func (l *Log) lastChange(list segments, i int) (int64, error) {
	if i == len(list) {
		return l.now().UnixMilli(), nil
	}
	t, err := list[i].fileTime()
	if err != nil {
		return 0, fmt.Errorf("when was a segment written: %w", err)
	}
	return t, nil
}

func newestFirst(all []start, most int) []int64 {
	all = all[max(0, len(all)-max(most, 0)):]
	offsets := make([]int64, len(all))
	for i := range all {
		offsets[i] = all[i].offset
	}
	slices.Reverse(offsets)
	return offsets
}
