package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// simple is what a partition knows of a producer, kept in full.
type simple struct {
	epoch   int16
	batches []Batch // of the epoch
	offsets []int64
	txn     int64 // first offset, -1
	coord   int32
	seen    int64
}

// txnModel is a model of State: everything is looked for in lists.
type txnModel struct {
	producers map[int64]*simple
	ended     [][2]int64 // first offset, offset of the marker
	end, high int64
	expiry    int64
}

func (m *txnModel) known(id, now int64) *simple {
	p := m.producers[id]
	if p != nil && p.txn < 0 && now-p.seen > m.expiry {
		return nil
	}
	return p
}

func (m *txnModel) check(b Batch, now int64) (dup int64, err error) {
	p := m.known(b.ProducerID, now)
	if p == nil {
		return -1, nil
	}
	for i := max(0, len(p.batches)-5); i < len(p.batches) && b.Epoch == p.epoch; i++ {
		if p.batches[i].BaseSequence == b.BaseSequence && p.batches[i].LastDelta == b.LastDelta {
			return p.offsets[i], nil
		}
	}
	next := int64(0)
	if n := len(p.batches); n > 0 && b.Epoch == p.epoch {
		next = (int64(p.batches[n-1].BaseSequence) + int64(p.batches[n-1].LastDelta) + 1) % (1 << 31)
	}
	switch {
	case b.Epoch < p.epoch:
		return -1, ErrFenced
	case int64(b.BaseSequence) != next:
		return -1, ErrOutOfOrder
	case p.txn >= 0 && !b.Transactional:
		return -1, ErrInvalidTxnState
	}
	return -1, nil
}

func (m *txnModel) checkMarker(k Marker) error {
	p := m.producers[k.ProducerID]
	switch {
	case p == nil:
		return nil
	case k.Epoch < p.epoch, k.Version >= 2 && k.Epoch == p.epoch && p.txn >= 0:
		return ErrFenced
	case k.CoordinatorEpoch < p.coord:
		return ErrCoordinatorFenced
	}
	return nil
}

func (m *txnModel) append(b Batch, now int64) {
	p := m.known(b.ProducerID, now)
	if p == nil {
		p = &simple{epoch: b.Epoch, txn: -1, coord: -1}
		m.producers[b.ProducerID] = p
	}
	if p.epoch != b.Epoch {
		p.batches, p.offsets = nil, nil
	}
	p.epoch, p.seen = b.Epoch, now
	p.batches, p.offsets = append(p.batches, b), append(p.offsets, m.end)
	if b.Transactional && p.txn < 0 {
		p.txn = m.end
	}
	m.end += int64(b.LastDelta) + 1
}

func (m *txnModel) mark(k Marker, now int64) (want Completed, ended bool) {
	p := m.producers[k.ProducerID]
	if p == nil {
		p = &simple{epoch: k.Epoch, txn: -1}
		m.producers[k.ProducerID] = p
	}
	if p.epoch != k.Epoch {
		p.batches, p.offsets = nil, nil
	}
	first := p.txn
	p.epoch, p.coord, p.seen, p.txn = k.Epoch, k.CoordinatorEpoch, now, -1
	offset := m.end
	m.end++
	if first < 0 {
		return Completed{}, false
	}
	m.ended = append(m.ended, [2]int64{first, offset})
	stable := offset + 1
	for _, other := range m.producers {
		if other.txn >= 0 {
			stable = min(stable, other.txn)
		}
	}
	return Completed{ProducerID: k.ProducerID, FirstOffset: first, LastOffset: offset, LastStableOffset: stable, Aborted: !k.Commit}, true
}

func (m *txnModel) firstOpen() (int64, bool) {
	first, ok := m.end, false
	for _, p := range m.producers {
		if p.txn >= 0 {
			first, ok = min(first, p.txn), true
		}
	}
	for _, e := range m.ended {
		if e[1] >= m.high {
			first, ok = min(first, e[0]), true
		}
	}
	return first, ok
}

// TestTransactionsAgainstModel drives state and model with the same random events, in order and out of it, over time, with restarts.
func TestTransactionsAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &txnDriver{t: t, rnd: rand.New(rand.NewPCG(seed, 11)), s: New(100),
				m: &txnModel{producers: make(map[int64]*simple), expiry: 100}}
			for range 600 {
				d.step()
			}
		})
	}
}

type txnDriver struct {
	t   *testing.T
	rnd *rand.Rand
	s   *State
	m   *txnModel
	now int64
}

func (d *txnDriver) step() {
	d.t.Helper()
	d.now += d.rnd.Int64N(8)
	switch n := d.rnd.IntN(20); {
	case n < 12:
		d.batch()
	case n < 17:
		d.marker()
	case n < 18:
		d.m.high = d.m.high + d.rnd.Int64N(d.m.end-d.m.high+1)
		d.s.SetHighWatermark(d.m.high)
	case n < 19:
		d.expire()
	default:
		d.restart()
	}
	wantFirst, want := d.m.firstOpen()
	if first, ok := d.s.FirstOpenOffset(); ok != want || ok && first != wantFirst {
		d.t.Fatalf("first open offset %d, %v, want %d, %v", first, ok, wantFirst, want)
	}
}

// batch sends a batch that is right, repeated, early, late, of another epoch or not of the transaction.
func (d *txnDriver) batch() {
	d.t.Helper()
	id := d.rnd.Int64N(5)
	b := Batch{ProducerID: id, BaseSequence: 1<<31 - 1 - d.rnd.Int32N(30), LastDelta: d.rnd.Int32N(4), Timestamp: d.now, Transactional: d.rnd.IntN(8) > 0}
	if p := d.m.producers[id]; p != nil {
		b.Epoch, b.BaseSequence = p.epoch, 0
		if n := len(p.batches); n > 0 {
			last := p.batches[n-1]
			b.BaseSequence = int32((int64(last.BaseSequence) + int64(last.LastDelta) + 1) % (1 << 31))
			if d.rnd.IntN(4) == 0 {
				b = p.batches[max(0, n-1-d.rnd.IntN(8))]
			}
		}
	}
	switch d.rnd.IntN(10) {
	case 0:
		b.Epoch = max(0, b.Epoch+int16(d.rnd.IntN(3))-1)
		b.BaseSequence = min(b.BaseSequence, d.rnd.Int32N(2))
	case 1:
		b.BaseSequence = (b.BaseSequence + d.rnd.Int32N(3)) & 0x7fffffff
	}
	dup, err := d.s.Check(b, d.now)
	wantDup, wantErr := d.m.check(b, d.now)
	if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || (dup != nil) != (wantDup >= 0) || dup != nil && dup.FirstOffset != wantDup {
		d.t.Fatalf("%+v: %+v, %v, want %d, %v", b, dup, err, wantDup, wantErr)
	}
	if err == nil && dup == nil {
		d.s.Append(b, d.m.end, d.now)
		d.m.append(b, d.now)
	}
}

func (d *txnDriver) marker() {
	d.t.Helper()
	k := Marker{ProducerID: d.rnd.Int64N(5), CoordinatorEpoch: int32(d.now/500) - d.rnd.Int32N(2), Commit: d.rnd.IntN(2) == 0,
		Timestamp: d.now, Version: int16(d.rnd.IntN(3))}
	if p := d.m.producers[k.ProducerID]; p != nil {
		k.Epoch = max(0, p.epoch+int16(d.rnd.IntN(3))-1)
	}
	err, want := d.s.CheckMarker(k), d.m.checkMarker(k)
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		d.t.Fatalf("marker %+v: %v, want %v", k, err, want)
	}
	if err != nil {
		return
	}
	offset := d.m.end
	wantDone, wantOK := d.m.mark(k, d.now)
	if done, ok := d.s.AppendMarker(k, offset, d.now); ok != wantOK || done != wantDone {
		d.t.Fatalf("marker %+v ends %+v, %v, want %+v, %v", k, done, ok, wantDone, wantOK)
	}
}

func (d *txnDriver) expire() {
	d.t.Helper()
	want := 0
	for id := range d.m.producers {
		if d.m.known(id, d.now) == nil {
			delete(d.m.producers, id)
			want++
		}
	}
	if n := d.s.Expire(d.now); n != want || d.s.Len() != len(d.m.producers) {
		d.t.Fatalf("%d expired and %d are left, want %d and %d", n, d.s.Len(), want, len(d.m.producers))
	}
}

// restart restores the state from its snapshot: of each producer the last batch is known, and the high watermark has passed all.
func (d *txnDriver) restart() {
	d.t.Helper()
	entries, err := DecodeSnapshot(d.s.EncodeSnapshot(nil))
	if err != nil {
		d.t.Fatal(err)
	}
	d.s = New(100)
	d.s.Restore(entries, d.m.end, d.now)
	d.m.high, d.m.ended = d.m.end, nil
	for _, p := range d.m.producers {
		p.seen = d.now
		if n := len(p.batches); n > 0 {
			p.batches, p.offsets = slices.Clone(p.batches[n-1:]), slices.Clone(p.offsets[n-1:])
		}
	}
}
