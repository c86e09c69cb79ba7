package log

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"gregor/log/batch"
)

// snapshotEvery is after how many bytes of new batches Tick writes a producer snapshot: recovery reads no more headers than
// those above the newest one.
const snapshotEvery = 16 << 20

// maxSnapshotFile bounds what is read of a snapshot, in bytes: millions of producers.
const maxSnapshotFile = 256 << 20

// ProducerInfo is what DescribeProducers tells of one producer.
type ProducerInfo struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32 // -1: none
	LastTimestamp    int64 // milliseconds
	CoordinatorEpoch int32 // -1: none
	TxnFirstOffset   int64 // -1: no open transaction
}

// Producers lists the producers whose state the log keeps, by id.
func (l *Log) Producers() []ProducerInfo {
	l.mu.Lock()
	entries := l.producers.Entries()
	l.mu.Unlock()
	list := make([]ProducerInfo, len(entries))
	for i, e := range entries {
		list[i] = ProducerInfo{ProducerID: e.ProducerID, Epoch: e.Epoch, LastSequence: e.LastSequence,
			LastTimestamp: e.Timestamp, CoordinatorEpoch: e.CoordinatorEpoch, TxnFirstOffset: e.TxnFirstOffset}
	}
	return list
}

// HasOpenTxn says if a producer has an open transaction under an epoch.
func (l *Log) HasOpenTxn(id int64, epoch int16) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.HasOpenTxn(id, epoch)
}

// remember notes a batch of a producer that is in the log. Log.mu must be held.
func (l *Log) remember(h *batch.Header, now int64) {
	l.producers.Append(producerBatch(h), h.BaseOffset, now)
	if h.Transactional() {
		l.publishFirstOpen()
	}
}

func (l *Log) publishFirstOpen() {
	first, ok := l.producers.FirstOpenOffset()
	if !ok {
		first = math.MaxInt64
	}
	l.firstOpen.Store(first)
}

// closeTransactions lets go of transactions whose marker the high watermark passed.
func (l *Log) closeTransactions(high int64) {
	if l.firstOpen.Load() == math.MaxInt64 {
		return
	}
	l.mu.Lock()
	l.producers.SetHighWatermark(high)
	l.publishFirstOpen()
	l.mu.Unlock()
}

// snapshotList are the snapshot files that exist. Guarded by Log.mu.
type snapshotList struct {
	offsets []int64 // ascending
	since   int64   // bytes appended after the newest
}

func (s *snapshotList) newest() (int64, bool) {
	if len(s.offsets) == 0 {
		return 0, false
	}
	return s.offsets[len(s.offsets)-1], true
}

// writeSnapshot writes the producer state at offset, unless it is there. Log.mu must be held.
func (l *Log) writeSnapshot(offset int64, content []byte) error {
	if newest, ok := l.snapshots.newest(); ok && newest == offset {
		return nil
	}
	if err := writeFile(l.fs, filepath.Join(l.Dir(), fileName(offset, snapshotExt)), content); err != nil {
		return err
	}
	l.snapshots.offsets = append(l.snapshots.offsets, offset)
	l.snapshots.since = 0
	return nil
}

// pruneSnapshots removes the snapshots that are neither the newest nor at a segment's base, as Kafka keeps them, and those above
// the log end. Log.mu must be held.
func (l *Log) pruneSnapshots() {
	list, end := *l.list.Load(), l.EndOffset()
	l.snapshots.offsets = slices.DeleteFunc(l.snapshots.offsets, func(offset int64) bool {
		newest, _ := l.snapshots.newest()
		i := list.find(offset)
		if offset <= end && (offset == newest || i >= 0 && list[i].base == offset) {
			return false
		}
		l.removeSnapshot(offset, nil)
		return true
	})
}

// removeSnapshot deletes a snapshot, for a reason worth telling if there is one. It is a hint: one that stays does no harm.
func (l *Log) removeSnapshot(offset int64, reason error) {
	path := filepath.Join(l.Dir(), fileName(offset, snapshotExt))
	if reason != nil {
		l.logger.Warn("producer snapshot is not usable, the batches are read instead", "file", path, "error", reason)
	}
	if err := l.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.logger.Warn("producer snapshot cannot be removed", "file", path, "error", err)
	}
}

// Tick does what is due by time: a sync by FlushMs, forgetting idle producers, a snapshot of the producer state after many new
// bytes.
func (l *Log) Tick() error {
	now := l.now()
	l.mu.Lock()
	err := l.writable()
	due := false
	if err == nil {
		due = l.flushDue(now)
		l.producers.Expire(now.UnixMilli())
		l.snapshotIfDue()
	}
	l.mu.Unlock()
	if due {
		l.markDirty()
	}
	return err
}

// snapshotIfDue writes a snapshot between segment bases, with Log.mu held. It is a hint, so a failure is only told.
func (l *Log) snapshotIfDue() {
	if l.snapshots.since < snapshotEvery {
		return
	}
	if err := l.writeSnapshot(l.EndOffset(), l.producers.EncodeSnapshot(nil)); err != nil {
		l.logger.Warn("producer snapshot cannot be written", "dir", l.Dir(), "error", err)
		return
	}
	l.pruneSnapshots()
}

// flushDue says that unsynced bytes were seen by a Tick flush.ms ago. Log.mu must be held.
func (l *Log) flushDue(now time.Time) bool {
	f := &l.flush
	f.Lock()
	defer f.Unlock()
	synced := l.synced.Load()
	if l.end.offset.Load() == synced || f.seenSynced != synced || f.seenAt.IsZero() {
		f.seenSynced, f.seenAt = synced, now
		if l.end.offset.Load() == synced {
			f.seenAt = time.Time{}
		}
		return false
	}
	return now.Sub(f.seenAt).Milliseconds() >= l.cfg.Load().FlushMs
}
