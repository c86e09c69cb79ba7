package log

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"gregor/log/batch"
	"gregor/log/producer"
)

// Append writes one batch of magic 2 that batch.Check has passed; h is its header. It stamps base offset and leader epoch into
// b and does not keep it. When it returns the batch is written, not durable: a duplicate too is visible only when the high
// watermark passes its LastOffset.
//
// Errors: those of package producer (wrapped), ErrTooLarge, ErrNoSpace, ErrOffline, ErrClosed. After one nothing of b is in the log.
func (l *Log) Append(b []byte, h batch.Header, leaderEpoch int32) (Appended, error) {
	return l.appendBatch(b, h, leaderEpoch, (*producer.State).Check)
}

// AppendFromZero is Append for a batch of a producer with transaction version 2, which bumps its epoch with each transaction: if the log does not
// know the producer, the batch must have sequence 0 (KIP-890).
func (l *Log) AppendFromZero(b []byte, h batch.Header, leaderEpoch int32) (Appended, error) {
	return l.appendBatch(b, h, leaderEpoch, (*producer.State).CheckFromZero)
}

// AppendOwn is Append for a batch that the broker itself made in a producer's transaction, as are the offsets of a group: the producer's epoch is
// checked, its sequence is not.
func (l *Log) AppendOwn(b []byte, h batch.Header, leaderEpoch int32) (Appended, error) {
	return l.appendBatch(b, h, leaderEpoch, (*producer.State).CheckOwn)
}

// check decides if a producer's batch may be appended; see producer.State.Check.
type check func(*producer.State, producer.Batch, int64) (*producer.Accepted, error)

func (l *Log) appendBatch(b []byte, h batch.Header, leaderEpoch int32, may check) (Appended, error) {
	if len(b) != h.Size() {
		return Appended{}, fmt.Errorf("appending %d bytes as a batch of %d: %w", len(b), h.Size(), batch.ErrInvalid)
	}
	h.LeaderEpoch = leaderEpoch
	l.mu.Lock()
	out, err := l.append(b, &h, may)
	l.mu.Unlock()
	if err == nil && !out.Duplicate {
		l.appended(out.LastOffset + 1)
	}
	return out, err
}

// append does the work under Log.mu.
func (l *Log) append(b []byte, h *batch.Header, may check) (Appended, error) {
	if err := l.writable(); err != nil {
		return Appended{}, err
	}
	now := l.now().UnixMilli()
	if h.ProducerID >= 0 {
		dup, err := may(l.producers, producerBatch(h), now)
		if err != nil {
			return Appended{}, fmt.Errorf("append refused: %w", err)
		}
		if dup != nil {
			return Appended{BaseOffset: dup.FirstOffset, LastOffset: dup.LastOffset, Timestamp: dup.Timestamp, Duplicate: true}, nil
		}
	}
	return l.write(b, h, now, nil)
}

// write puts the batch b at the log end, with Log.mu held; marker is what b says if it is a control batch.
func (l *Log) write(b []byte, h *batch.Header, now int64, marker *producer.Marker) (Appended, error) {
	end := l.end.load()
	h.BaseOffset = end.offset
	s, err := l.rollIfDue(h, now)
	if err != nil {
		return Appended{}, err
	}
	batch.Stamp(b, h.BaseOffset, h.LeaderEpoch)
	pos := s.size.Load()
	if n, err := s.data.file.WriteAt(b, pos); err != nil || n < len(b) {
		return Appended{}, l.writeFailed(s, err)
	}
	if err := l.assignEpoch(h.LeaderEpoch, h.BaseOffset); err != nil {
		return Appended{}, l.takeBack(s, err)
	}
	entry := headerEntry(h)
	s.account(pos, &entry)
	l.changed = true
	l.snapshots.since += int64(len(b))
	switch {
	case marker != nil:
		l.rememberMarker(s, *marker, h.BaseOffset, now)
	case h.ProducerID >= 0:
		l.remember(h, now)
	}
	// Readers look for bytes below end only after end is stored, so size goes first.
	s.size.Store(pos + int64(len(b)))
	l.end.store(mark{offset: entry.LastOffset + 1, segment: s.base, pos: pos + int64(len(b))})
	return Appended{BaseOffset: h.BaseOffset, LastOffset: entry.LastOffset, Timestamp: h.MaxTimestamp}, nil
}

// appended tells whoever waits for new bytes. end is the log end offset that the append made.
func (l *Log) appended(end int64) {
	cfg := l.cfg.Load()
	if cfg.FlushMessages > 1 {
		l.raiseHighToEnd()
	}
	if end-l.synced.Load() >= cfg.FlushMessages {
		l.markDirty()
	}
	l.waiters.wake(atEnd, end)
}

// writeFailed handles a write that did not succeed, with Log.mu held. Whatever of it reached the file is cut off before anything
// else happens, so that no later batch follows half of one.
func (l *Log) writeFailed(s *segment, err error) error {
	if err == nil {
		err = io.ErrShortWrite
	}
	return l.takeBack(s, l.storageFailed(fmt.Errorf("writing to %s: %w", s.path(logExt), err)))
}

// takeBack cuts the file of the active segment at the end of the log, for an append that fails with err.
func (l *Log) takeBack(s *segment, err error) error {
	if cutErr := s.data.file.Truncate(s.size.Load()); cutErr != nil {
		return l.setOffline(fmt.Errorf("cutting a failed write off %s: %w", s.path(logExt), errors.Join(cutErr, err)))
	}
	return err
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// storageFailed tells a full disk, which passes, from a failing one, which takes the log offline.
func (l *Log) storageFailed(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if errors.Is(err, io.ErrShortWrite) {
		return err
	}
	return l.setOffline(err)
}

func producerBatch(h *batch.Header) producer.Batch {
	return producer.Batch{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
		LastDelta: h.LastDelta, Timestamp: h.MaxTimestamp, Transactional: h.Transactional()}
}
