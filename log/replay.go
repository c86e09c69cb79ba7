package log

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"gregor/log/producer"
	"gregor/log/vfs"
)

// loadEpochs publishes the epochs, reading them from all batches when the checkpoint was lost.
func (r *recovery) loadEpochs() error {
	list := r.epoch
	empty := r.list[0].base == r.end
	if r.stored == nil && !r.fast && !empty {
		list = nil
		err := r.entries(r.list[0].base, func(scan *scanner, _ vfs.File) (bool, error) {
			list, _ = list.assign(scan.entry.LeaderEpoch, scan.entry.BaseOffset)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	list = list.truncateEnd(r.end).truncateStart(r.start.Load())
	r.epochsNow.Store(&list)
	if slices.Equal(r.stored, list) && (r.stored != nil || empty) {
		return nil
	}
	return r.writeEpochs(list)
}

// entries visits the entries from offset from to the log end.
func (r *recovery) entries(from int64, visit func(*scanner, vfs.File) (bool, error)) error {
	bound := mark{offset: math.MaxInt64}
	for _, s := range r.list[max(r.list.find(from), 0):] {
		if err := s.ensure(); err != nil {
			return err
		}
		if err := s.scan(from, bound, visit); err != nil {
			return err
		}
	}
	return nil
}

// loadProducers restores the producer state from the newest good snapshot and the batches after it.
func (r *recovery) loadProducers() error {
	now := r.now().UnixMilli()
	from := r.list[0].base
	r.producers.Reset()
	for i := len(r.inv.snapshots) - 1; i >= 0; i-- {
		offset := r.inv.snapshots[i]
		ok, err := r.restore(offset, now)
		if err != nil {
			return err
		}
		if ok {
			from = max(from, offset)
			if high := r.HighWatermark(); offset > high {
				// The snapshot does not say which transactions have their marker between, where it is not durable yet.
				r.producers.Hold(r.start.Load(), offset-1)
			}
			if err := r.backfill(offset); err != nil {
				return err
			}
			break
		}
		r.inv.snapshots = slices.Delete(r.inv.snapshots, i, i+1)
	}
	if err := r.beginAborted(from); err != nil {
		return err
	}
	if from >= r.end {
		r.producers.SetHighWatermark(r.HighWatermark())
		r.publishFirstOpen()
		return r.endAborted()
	}
	err := r.entries(from, func(scan *scanner, file vfs.File) (bool, error) {
		if scan.entry.Magic < 2 || scan.entry.BaseOffset < from {
			return true, nil
		}
		r.snapshots.since += int64(scan.entry.Size)
		done, err := r.replay(r.producers, scan, file, now)
		if done != nil {
			r.noteAborted(done)
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("reading the producers of %s: %w", r.Dir(), err)
	}
	r.producers.SetHighWatermark(r.HighWatermark())
	r.publishFirstOpen()
	return r.endAborted()
}

// restore loads the snapshot at offset. False: it is not usable and was removed.
func (r *recovery) restore(offset, now int64) (bool, error) {
	if offset > r.end {
		r.removeSnapshot(offset, nil)
		return false, nil
	}
	b, err := vfs.ReadFile(r.fs, filepath.Join(r.Dir(), fileName(offset, snapshotExt)), maxSnapshotFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	entries, decodeErr := producer.DecodeSnapshot(b)
	if decodeErr != nil {
		r.removeSnapshot(offset, decodeErr) // also one that is gone
		return false, nil
	}
	r.producers.Restore(entries, offset, now)
	return true, nil
}
