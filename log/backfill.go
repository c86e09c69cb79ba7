package log

import (
	"fmt"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// backfillBytes is about how much of the log before a snapshot is read to complete the producers' windows. What a client may still repeat was in
// flight when the broker ended, so it lies at the very end: five batches of a producer, of a size that clients send.
const backfillBytes = 4 << 20

// backfill completes the windows of producers that come from the snapshot at offset at: it has only the last batch of each, and without the
// others a client that repeats one of its last five would be refused, take a new epoch, and write them twice. After a clean stop nothing is repeated.
func (r *recovery) backfill(at int64) error {
	if r.clean || r.fast || r.producers.Len() == 0 {
		return nil
	}
	err := r.entries(r.backfillFrom(at), func(scan *scanner, _ vfs.File) (bool, error) {
		if scan.entry.BaseOffset >= at {
			return false, nil
		}
		if scan.entry.Magic < 2 {
			return true, nil
		}
		head, err := scan.header()
		if err != nil {
			return false, err
		}
		h, err := batch.ReadHeader(head)
		if err == nil && h.ProducerID >= 0 && !h.Control() {
			r.producers.Backfill(producerBatch(&h), h.BaseOffset)
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("completing the producers of %s: %w", r.Dir(), err)
	}
	return nil
}

// backfillFrom is an offset about backfillBytes before at, in the segment that holds the batch before at. Offsets are taken to be spread evenly.
func (r *recovery) backfillFrom(at int64) int64 {
	s := r.list[max(r.list.find(at-1), 0)]
	end, size := min(at, r.end), s.size.Load()
	for _, next := range r.list {
		if next.base > s.base {
			end = next.base
			break
		}
	}
	if size <= backfillBytes {
		return s.base
	}
	records := float64(end - s.base)
	return max(s.base, at-int64(records*backfillBytes/float64(size))-1)
}
