package log

import (
	"maps"
	"math"
	"slices"
	"testing"

	"gregor/log/batch"
	"gregor/log/producer"
)

// txnProducer is a transactional producer of a crashModel.
type txnProducer struct {
	epoch int16
	open  bool
}

// transact writes a batch or a marker of a transactional producer.
func (m *crashModel) transact() {
	id := 10 + m.rng.Int64N(4)
	p := m.txns[id]
	if p == nil {
		p = &txnProducer{}
		m.txns[id] = p
	}
	if m.rng.IntN(20) == 0 {
		m.epoch++
	}
	if p.open && m.rng.IntN(5) < 2 || m.rng.IntN(30) == 0 {
		m.mark(id, p)
		return
	}
	n := 1 + m.rng.IntN(3)
	m.ts += m.rng.Int64N(50)
	o := batch.Options{Producer: &batch.Producer{ID: id, Epoch: p.epoch, Sequence: m.seq[id]}, Transactional: true}
	b := batchOf(m.t, n, m.rng.IntN(120), m.ts, o)
	m.written[m.l.EndOffset()] = b
	a, err := appendTo(m.l, b, m.epoch)
	must(m.t, err)
	if a.Duplicate {
		m.t.Fatalf("batch %+v is taken for a duplicate: %+v", o.Producer, a)
	}
	p.open = true
	m.seq[id] += int32(n)
}

// mark ends a producer's transaction, or sends a marker for nothing; by either transaction version.
func (m *crashModel) mark(id int64, p *txnProducer) {
	marker := producer.Marker{ProducerID: id, Epoch: p.epoch, CoordinatorEpoch: 3, Commit: m.rng.IntN(2) == 0}
	if m.rng.IntN(2) == 0 {
		marker.Version, marker.Epoch = 2, p.epoch+1
	}
	b := batch.AppendMarker(nil, batch.Producer{ID: id, Epoch: marker.Epoch}, m.l.now().UnixMilli(), 3, marker.Commit)
	batch.Stamp(b, m.l.EndOffset(), m.epoch)
	m.written[m.l.EndOffset()] = b
	_, err := m.l.AppendMarker(marker, m.epoch)
	must(m.t, err)
	if p.epoch != marker.Epoch {
		m.seq[id] = 0
	}
	p.open, p.epoch = false, marker.Epoch
}

// resetTransactions makes transactional producers go on where the log is.
func (m *crashModel) resetTransactions() {
	clear(m.txns)
	for _, p := range m.l.Producers() {
		if p.ProducerID >= 10 {
			m.txns[p.ProducerID] = &txnProducer{epoch: p.Epoch, open: p.TxnFirstOffset >= 0}
		}
	}
}

// history is what happened to transactions in what was written below end.
type txnHistory struct {
	aborted []AbortedTxn // without LastStableOffset
	ended   []AbortedTxn // committed too
	open    map[int64]int64
	batches map[AbortedTxn][]int64 // last offsets of the batches of those that are not open
	pending map[int64][]int64
}

func (m *crashModel) transactions(end int64) txnHistory {
	h := txnHistory{open: make(map[int64]int64), batches: make(map[AbortedTxn][]int64), pending: make(map[int64][]int64)}
	for _, base := range slices.Sorted(maps.Keys(m.written)) {
		if base >= end {
			break
		}
		b := m.written[base]
		head, err := batch.ReadHeader(b)
		must(m.t, err)
		first, open := h.open[head.ProducerID]
		switch {
		case !head.Transactional():
		case !head.Control():
			if !open {
				h.open[head.ProducerID] = base
			}
			h.pending[head.ProducerID] = append(h.pending[head.ProducerID], base+int64(head.LastDelta))
		case head.Control() && open:
			delete(h.open, head.ProducerID)
			done := AbortedTxn{ProducerID: head.ProducerID, FirstOffset: first, LastOffset: base}
			h.ended = append(h.ended, done)
			h.batches[done] = h.pending[head.ProducerID]
			delete(h.pending, head.ProducerID)
			if marker, err := readMarker(b, &head); err == nil && !marker.Commit {
				h.aborted = append(h.aborted, done)
			}
		}
	}
	return h
}

// checkTransactions compares aborted transactions and last stable offset with what was written.
func (m *crashModel) checkTransactions(l *Log) {
	m.t.Helper()
	end := l.EndOffset()
	h := m.transactions(end)
	stable := int64(math.MaxInt64)
	for _, first := range h.open {
		stable = min(stable, first)
	}
	high := l.HighWatermark()
	stable = max(stable, l.StartOffset())
	for _, a := range h.ended {
		if a.LastOffset >= high {
			stable = min(stable, max(a.FirstOffset, l.StartOffset()))
		}
	}
	if got := l.LastStable(); got != min(high, stable) && !(m.unsynced && got < min(high, stable)) {
		m.t.Fatalf("last stable offset is %d, want %d: high watermark %d, first open %d, %v, ended %v, snapshots %v", got, min(high, stable), high, stable, h.open, h.ended, l.snapshots.offsets)
	}
	for i := range 4 {
		from := l.StartOffset() + m.rng.Int64N(end-l.StartOffset()+1)
		to := from + m.rng.Int64N(end-from+1)
		if i == 0 {
			from, to = l.StartOffset(), end
		}
		m.checkAborted(l, &h, from, to)
	}
	m.consume(l, &h)
}

// consume reads from anywhere to the last stable offset as Kafka's read_committed consumer does, and compares what it would deliver.
func (m *crashModel) consume(l *Log, h *txnHistory) {
	m.t.Helper()
	abortedBatch := make(map[int64]bool) // by last offset
	for _, a := range h.aborted {
		for _, last := range h.batches[a] {
			abortedBatch[last] = true
		}
	}
	offset := l.StartOffset() + m.rng.Int64N(l.LastStable()-l.StartOffset()+1)
	for offset < l.LastStable() {
		s, err := l.Read(offset, 1+m.rng.IntN(1500), ToLastStable, true)
		must(m.t, err)
		aborted, err := l.AbortedFor(offset, &s)
		must(m.t, err)
		slices.SortFunc(aborted, func(a, b AbortedTxn) int { return int(a.FirstOffset - b.FirstOffset) })
		b := content(m.t, &s)
		s.Release()
		skipped := make(map[int64]bool) // producers
		for len(b) >= batch.HeaderSize {
			head, err := batch.ReadHeader(b)
			must(m.t, err)
			if head.Size() > len(b) {
				break
			}
			for len(aborted) > 0 && aborted[0].FirstOffset <= head.LastOffset() {
				skipped[aborted[0].ProducerID] = true
				aborted = aborted[1:]
			}
			marker := producer.Marker{Commit: true}
			if head.Control() {
				marker, err = readMarker(b[:head.Size()], &head)
				must(m.t, err)
			}
			if !marker.Commit {
				delete(skipped, head.ProducerID)
			}
			if !head.Control() && abortedBatch[head.LastOffset()] != (head.Transactional() && skipped[head.ProducerID]) {
				m.t.Fatalf("batch at %d of producer %d: aborted is %v, a consumer from %d skips %v", head.BaseOffset, head.ProducerID,
					abortedBatch[head.LastOffset()], offset, skipped)
			}
			offset, b = head.LastOffset()+1, b[head.Size():]
		}
	}
}

// checkAborted compares one answer. Of a transaction that began below the log start, only what can still be read must be known.
func (m *crashModel) checkAborted(l *Log, h *txnHistory, from, to int64) {
	m.t.Helper()
	got, err := l.AbortedIn(from, to)
	must(m.t, err)
	for i := range got {
		got[i].LastStableOffset = 0
	}
	left := got
	for _, a := range h.aborted {
		if from >= to || a.LastOffset < from || a.FirstOffset >= to {
			continue
		}
		found := len(left) > 0 && left[0].ProducerID == a.ProducerID && left[0].LastOffset == a.LastOffset
		readable := h.batches[a]
		for len(readable) > 0 && readable[0] < l.StartOffset() {
			readable = readable[1:]
		}
		switch {
		case !found && a.FirstOffset < l.StartOffset() && len(readable) == 0:
			continue
		case !found,
			left[0].FirstOffset != a.FirstOffset && (a.FirstOffset >= l.StartOffset() || len(readable) > 0 && left[0].FirstOffset > readable[0]):
			m.t.Fatalf("aborted in [%d,%d) of [%d,%d):\n%+v, want\n%+v, here\n%+v", from, to, l.StartOffset(), l.EndOffset(), got, h.aborted, a)
		}
		left = left[1:]
	}
	if len(left) > 0 {
		m.t.Fatalf("aborted in [%d,%d): %+v, want none of %+v", from, to, got, left)
	}
}

// TestCrashTransactions is TestCrash with hardly anything but transactions.
func TestCrashTransactions(t *testing.T) {
	for seed := range uint64(6) {
		m := newCrashModel(t, 7000+seed)
		for range 3 {
			m.chance = 0.01
			for range 150 {
				switch m.rng.IntN(12) {
				case 0:
					m.step()
				case 1:
					m.sync()
				case 2:
					m.checkTransactions(m.l)
				default:
					m.transact()
				}
				for _, c := range m.captures {
					must(t, m.world(c).l.Close())
				}
				m.captures = nil
			}
			m.chance = 0
			m.capture("end of a life")
			c := m.captures[0]
			m.captures = nil
			m.l.Abandon()
			m = m.world(c)
		}
		must(t, m.l.Close())
	}
}
