package compact

import (
	"encoding/binary"

	"gregor/log/batch"
)

// Aborted is an aborted transaction of the log, as the transaction index has it.
type Aborted struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64 // of the marker
	LastStableOffset int64 // when it ended
}

// Control record types in the key of a control record (KIP-98).
const (
	controlAbort  = 0
	controlCommit = 1
)

// transactions follows the transactions of a log from entry to entry, in the order of offsets.
type transactions struct {
	list      []Aborted // by first offset
	next      int       // of list, the first that has not begun yet
	aborting  map[int64]*aborting
	committed map[int64]struct{} // producers with records in a transaction that is not aborted
}

// aborting is an aborted transaction whose marker was not seen yet.
type aborting struct {
	txn  Aborted
	seen bool // something of it is still in the log
}

func newTransactions(aborted []Aborted) transactions {
	return transactions{list: aborted, aborting: map[int64]*aborting{}, committed: map[int64]struct{}{}}
}

// begin takes note of the aborted transactions that begin at offset or before.
func (t *transactions) begin(offset int64) {
	for ; t.next < len(t.list) && t.list[t.next].FirstOffset <= offset; t.next++ {
		a := t.list[t.next]
		if t.aborting[a.ProducerID] == nil {
			t.aborting[a.ProducerID] = &aborting{txn: a}
		}
	}
}

// data says whether a batch of records belongs to an aborted transaction.
func (t *transactions) data(h *batch.Header) bool {
	t.begin(h.LastOffset())
	if !h.Transactional() {
		return false
	}
	if a := t.aborting[h.ProducerID]; a != nil {
		a.seen = true
		return true
	}
	t.committed[h.ProducerID] = struct{}{}
	return false
}

// marker says whether a control batch can go: nothing of its transaction is left. still is the aborted transaction of which something is.
func (t *transactions) marker(h *batch.Header, kind int) (free bool, still *Aborted) {
	t.begin(h.LastOffset())
	switch kind {
	case controlAbort:
		a := t.aborting[h.ProducerID]
		delete(t.aborting, h.ProducerID)
		if a != nil && a.seen {
			return false, &a.txn
		}
		return true, nil
	case controlCommit:
		_, seen := t.committed[h.ProducerID]
		delete(t.committed, h.ProducerID)
		return !seen, nil
	}
	return false, nil
}

// otherControl is a control record that ends no transaction.
const otherControl = -1

// controlKind reads the type of the record in a control batch; ok is false if it has none any more.
func controlKind(r *batch.Reader, b []byte) (kind int, ok bool, err error) {
	if err := r.Reset(b, 0); err != nil {
		return 0, false, err
	}
	var rec batch.Record
	if !r.Next(&rec) {
		return 0, false, r.Err()
	}
	if len(rec.Key) < 4 {
		return otherControl, true, nil
	}
	return int(int16(binary.BigEndian.Uint16(rec.Key[2:]))), true, nil
}
