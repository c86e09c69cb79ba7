package log

import (
	"runtime"
	"sync/atomic"
)

// mark is a point between two batches: an offset and where it lies. At a segment boundary it may name the end of the older
// segment or the start of the newer.
type mark struct {
	offset  int64
	segment int64 // base offset
	pos     int64 // in the segment's file, in bytes
}

// markBox publishes a mark to readers that take no lock and must see its three parts together. One goroutine stores at a
// time. It is a seqlock: a pointer to an immutable mark would be simpler, but would be an allocation for each append.
//
// A reader that overlaps a store sees an odd count before, or another count after it has read the parts, and reads again. The
// store is four atomic writes, so this ends soon; Gosched covers a writer that was preempted in between.
type markBox struct {
	count   atomic.Uint64 // odd during a store
	offset  atomic.Int64
	segment atomic.Int64
	pos     atomic.Int64
}

func (b *markBox) store(m mark) {
	b.count.Add(1)
	b.offset.Store(m.offset)
	b.segment.Store(m.segment)
	b.pos.Store(m.pos)
	b.count.Add(1)
}

func (b *markBox) load() mark {
	for {
		before := b.count.Load()
		m := mark{offset: b.offset.Load(), segment: b.segment.Load(), pos: b.pos.Load()}
		if before&1 == 0 && b.count.Load() == before {
			return m
		}
		runtime.Gosched()
	}
}
