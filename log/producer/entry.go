package producer

import "gregor/log/batch"

// window is how many batches are remembered per producer: a client has at most five requests in flight (KIP-98).
const window = 5

// slot is an appended batch.
type slot struct {
	lastOffset int64
	timestamp  int64
	lastSeq    int32
	delta      int32
}

// noSequence is the sequence of what the broker itself writes in a producer's transaction, offsets of groups.
const noSequence = -1

// slotOf is b, appended at firstOffset.
func slotOf(b Batch, firstOffset int64) slot {
	s := slot{lastOffset: firstOffset + int64(b.LastDelta), timestamp: b.Timestamp, lastSeq: noSequence, delta: b.LastDelta}
	if b.BaseSequence != noSequence {
		s.lastSeq = batch.AddSequence(b.BaseSequence, b.LastDelta)
	}
	return s
}

func (b slot) firstSeq() int32 {
	// Sequences wrap from 2147483647 to 0, so the difference is taken modulo 2^31.
	return int32((int64(b.lastSeq) - int64(b.delta)) & 0x7fffffff)
}

// entry is all about one producer, in one allocation.
type entry struct {
	seen      int64 // broker clock of the last append
	timestamp int64 // of the last batch or marker
	txnFirst  int64 // -1: no open transaction
	coord     int32 // coordinator epoch of the last marker, -1 none
	epoch     int16 // -1: none yet
	n         uint8 // slots in use
	next      uint8 // slot that the next batch goes to
	ring      [window]slot
}

func (e *entry) last() (slot, bool) {
	if e.n == 0 {
		return slot{}, false
	}
	return e.ring[(e.next+window-1)%window], true
}

func (e *entry) add(b slot) {
	e.ring[e.next] = b
	e.next = (e.next + 1) % window
	e.n = min(e.n+1, window)
}

// setEpoch starts a new epoch: what was appended under the old one is no duplicate of anything now.
func (e *entry) setEpoch(epoch int16) {
	if e.epoch != epoch {
		e.epoch, e.n, e.next = epoch, 0, 0
	}
}

// find is the remembered batch with exactly these sequences.
func (e *entry) find(b Batch) (slot, bool) {
	if b.Epoch != e.epoch {
		return slot{}, false
	}
	last := batch.AddSequence(b.BaseSequence, b.LastDelta)
	for i := range int(e.n) {
		s := e.ring[(int(e.next)+window-1-i)%window]
		if s.lastSeq == last && s.firstSeq() == b.BaseSequence {
			return s, true
		}
	}
	return slot{}, false
}

// follows reports if a batch that starts at seq is the next one of the same epoch.
func (e *entry) follows(seq int32) bool {
	last, ok := e.last()
	if !ok {
		return seq == 0 // only a marker was seen under this epoch
	}
	return seq == batch.AddSequence(last.lastSeq, 1)
}
