package producer

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func appendAll(s *State, batches ...Batch) {
	offset := int64(0)
	for _, b := range batches {
		s.Append(b, offset, 0)
		offset += int64(b.LastDelta) + 1
	}
}

// of is a batch of n records of producer 1.
func of(epoch int16, seq, n int32) Batch {
	return Batch{ProducerID: 1, Epoch: epoch, BaseSequence: seq, LastDelta: n - 1, Timestamp: int64(seq) + 1000}
}

func inTxn(b Batch) Batch {
	b.Transactional = true
	return b
}

func TestCheck(t *testing.T) {
	seven := []Batch{of(0, 0, 1), of(0, 1, 1), of(0, 2, 1), of(0, 3, 1), of(0, 4, 3), of(0, 7, 1), of(0, 8, 2)}
	for _, c := range []struct {
		name  string
		state []Batch
		in    Batch
		dup   int64 // first offset, -1 none
		err   error
	}{
		{"unknown producer at 0", nil, of(0, 0, 1), -1, nil},
		{"unknown producer goes on anywhere", nil, of(4, 77, 10), -1, nil},
		{"next", seven, of(0, 10, 5), -1, nil},
		{"gap", seven, of(0, 11, 1), -1, ErrOutOfOrder},
		{"last again", seven, of(0, 8, 2), 8, nil},
		{"fifth last again", seven, of(0, 2, 1), 2, nil},
		{"several records again", seven, of(0, 4, 3), 4, nil},
		{"sixth last is forgotten", seven, of(0, 1, 1), -1, ErrOutOfOrder},
		{"same first, other last", seven, of(0, 4, 2), -1, ErrOutOfOrder},
		{"same last, other first", seven, of(0, 5, 2), -1, ErrOutOfOrder},
		{"old epoch", []Batch{of(3, 0, 1)}, of(2, 1, 1), -1, ErrFenced},
		{"new epoch at 0", seven, of(1, 0, 9), -1, nil},
		{"new epoch not at 0", seven, of(1, 10, 1), -1, ErrOutOfOrder},
		{"duplicate of the old epoch is fenced", []Batch{of(0, 0, 1), of(1, 0, 1)}, of(0, 0, 1), -1, ErrFenced},
		{"same sequences in the new epoch", []Batch{of(0, 0, 1), of(0, 1, 1)}, of(1, 0, 1), -1, nil},
		{"first sequence of a new epoch goes on", []Batch{of(0, 5, 1), of(1, 0, 3)}, of(1, 3, 1), -1, nil},
		{"wrap between batches", []Batch{of(0, math.MaxInt32, 1)}, of(0, 0, 1), -1, nil},
		{"no wrap to 1", []Batch{of(0, math.MaxInt32, 1)}, of(0, 1, 1), -1, ErrOutOfOrder},
		{"wrap inside a batch, next", []Batch{of(0, 2147483640, 20)}, of(0, 12, 1), -1, nil},
		{"wrap inside a batch, gap", []Batch{of(0, 2147483640, 20)}, of(0, 20, 1), -1, ErrOutOfOrder},
		{"wrap inside a batch, again", []Batch{of(0, 2147483640, 20)}, of(0, 2147483640, 20), 0, nil},
		{"transaction goes on", []Batch{inTxn(of(0, 0, 1))}, inTxn(of(0, 1, 1)), -1, nil},
		{"outside an open transaction", []Batch{inTxn(of(0, 0, 1))}, of(0, 1, 1), -1, ErrInvalidTxnState},
		{"sequence is checked before the transaction", []Batch{inTxn(of(0, 0, 1))}, of(0, 2, 1), -1, ErrOutOfOrder},
		{"another producer", seven, Batch{ProducerID: 2, BaseSequence: 55}, -1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(100)
			appendAll(s, c.state...)
			before := string(s.EncodeSnapshot(nil))
			dup, err := s.Check(c.in, 0)
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			switch {
			case dup == nil && c.dup >= 0:
				t.Error("not seen as duplicate")
			case dup != nil:
				want := Accepted{FirstOffset: c.dup, LastOffset: c.dup + int64(c.in.LastDelta), Timestamp: c.in.Timestamp}
				if *dup != want {
					t.Errorf("duplicate of %+v, want %+v", *dup, want)
				}
			}
			if string(s.EncodeSnapshot(nil)) != before {
				t.Error("Check changed the state")
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	s := New(100)
	old := of(0, 0, 1)
	old.Timestamp = -1 // the record's time says nothing about when the broker heard of the producer
	s.Append(old, 0, 1000)
	other := inTxn(of(0, 0, 1))
	other.ProducerID = 2
	s.Append(other, 1, 1000)
	if n := s.Expire(1100); n != 0 || s.Len() != 2 {
		t.Fatalf("%d expired at their last moment", n)
	}
	if _, err := s.Check(of(0, 9, 1), 1100); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("before expiry: %v", err)
	}
	if _, err := s.Check(of(0, 9, 1), 1101); err != nil {
		t.Errorf("expired but not yet removed: %v", err)
	}
	if n := s.Expire(1101); n != 1 || s.Len() != 1 {
		t.Fatalf("%d expired, %d left; the one with an open transaction must stay", n, s.Len())
	}
	s.AppendMarker(Marker{ProducerID: 2, Commit: true}, 2, 2000)
	if n := s.Expire(2101); n != 1 || s.Len() != 0 {
		t.Fatalf("%d expired after the transaction, %d left", n, s.Len())
	}
}

func TestAppendAfterSilentExpiry(t *testing.T) {
	s := New(100)
	s.Append(of(5, 0, 1), 0, 0)
	s.Append(of(2, 40, 1), 1, 1000)
	if dup, err := s.Check(of(2, 40, 1), 1000); err != nil || dup == nil || dup.FirstOffset != 1 {
		t.Errorf("got %+v, %v", dup, err)
	}
	if _, err := s.Check(of(2, 41, 1), 1000); err != nil {
		t.Error(err)
	}
}

func TestMarkers(t *testing.T) {
	s := New(100)
	marker := Marker{ProducerID: 1, Epoch: 3, CoordinatorEpoch: 7}
	if _, ok := s.AppendMarker(marker, 0, 0); ok {
		t.Fatal("a marker ended a transaction that there was not")
	}
	if _, err := s.Check(of(3, 5, 1), 0); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("after a marker only, the epoch must start at 0: %v", err)
	}
	if _, err := s.Check(of(3, 0, 1), 0); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		m   Marker
		err error
	}{
		{Marker{ProducerID: 1, Epoch: 2, CoordinatorEpoch: 8}, ErrFenced},
		{Marker{ProducerID: 1, Epoch: 3, CoordinatorEpoch: 6}, ErrCoordinatorFenced},
		{Marker{ProducerID: 1, Epoch: 3, CoordinatorEpoch: 7}, nil},
		{Marker{ProducerID: 1, Epoch: 3, CoordinatorEpoch: 7, Version: 2}, nil}, // repeated
		{Marker{ProducerID: 1, Epoch: 4, CoordinatorEpoch: 7, Version: 2}, nil},
		{Marker{ProducerID: 9, Epoch: 0, CoordinatorEpoch: 0}, nil},
	} {
		if err := s.CheckMarker(c.m); !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
			t.Errorf("%+v: %v, want %v", c.m, err, c.err)
		}
	}
	s.Append(inTxn(of(3, 0, 2)), 1, 0)
	s.Append(Batch{ProducerID: 2, Transactional: true}, 3, 0)
	marker.Version = 2
	if err := s.CheckMarker(marker); !errors.Is(err, ErrFenced) {
		t.Errorf("version 2 marker with the transaction's epoch: %v", err)
	}
	marker.Epoch = 4
	done, ok := s.AppendMarker(marker, 4, 0)
	if want := (Completed{ProducerID: 1, FirstOffset: 1, LastOffset: 4, LastStableOffset: 3, Aborted: true}); !ok || done != want {
		t.Errorf("ended %+v, %t, want %+v", done, ok, want)
	}
	checkOpen(t, s, 1)
	s.SetHighWatermark(4)
	checkOpen(t, s, 1) // the marker itself is not replicated yet
	s.SetHighWatermark(5)
	checkOpen(t, s, 3)
	done, _ = s.AppendMarker(Marker{ProducerID: 2, Commit: true}, 5, 0)
	if done.LastStableOffset != 6 || done.Aborted {
		t.Errorf("ended %+v", done)
	}
	s.SetHighWatermark(6)
	checkOpen(t, s, -1)
	s.Append(inTxn(of(4, 0, 1)), 6, 0)
	s.Reset()
	checkOpen(t, s, -1)
}

func checkOpen(t *testing.T, s *State, want int64) {
	t.Helper()
	o, ok := s.FirstOpenOffset()
	if !ok {
		o = -1
	}
	if o != want {
		t.Errorf("first open offset %d, want %d", o, want)
	}
}

func TestRestore(t *testing.T) {
	entries := []Entry{
		{ProducerID: 1, Epoch: 1, LastSequence: 9, LastOffset: 99, OffsetDelta: 4, Timestamp: 5, CoordinatorEpoch: -1, TxnFirstOffset: -1},
		{ProducerID: 2, LastSequence: 9, LastOffset: 49, TxnFirstOffset: -1},  // deleted from the log, known for a while yet
		{ProducerID: 3, LastSequence: 9, LastOffset: 100, TxnFirstOffset: -1}, // not in the log
		{ProducerID: 4, LastSequence: 9, LastOffset: 49, TxnFirstOffset: 40},  // deleted but open
		{ProducerID: 5, LastSequence: -1, LastOffset: -1, TxnFirstOffset: -1}, // marker only
		{ProducerID: 6, LastSequence: 9, LastOffset: 60, OffsetDelta: 70, TxnFirstOffset: -1},
		{ProducerID: 7, LastSequence: -5, LastOffset: 60, TxnFirstOffset: -1},
		{ProducerID: -1, LastSequence: 1, LastOffset: 60, TxnFirstOffset: -1},
		{ProducerID: 8, LastSequence: 9, LastOffset: 70, TxnFirstOffset: 30},
	}
	s := New(100)
	s.Append(Batch{ProducerID: 1000, Transactional: true}, 0, 0)
	s.Restore(entries, 100, 500)
	var ids []int64
	for _, e := range s.Entries() {
		ids = append(ids, e.ProducerID)
	}
	if !slices.Equal(ids, []int64{1, 2, 4, 5, 8}) {
		t.Fatalf("restored %v", ids)
	}
	checkOpen(t, s, 30)
	dup, err := s.Check(Batch{ProducerID: 1, Epoch: 1, BaseSequence: 5, LastDelta: 4}, 500)
	if err != nil || dup == nil || *dup != (Accepted{FirstOffset: 95, LastOffset: 99, Timestamp: 5}) {
		t.Errorf("the last batch is a duplicate: %+v, %v", dup, err)
	}
	if n := s.Expire(600); n != 0 {
		t.Errorf("%d expired: the idle time begins at the restore", n)
	}
	if n := s.Expire(601); n != 3 {
		t.Errorf("%d expired, want producers 1, 2 and 5", n)
	}
}

// TestCheckFromZero: with transaction version 2 a producer that is not known starts at sequence 0; a known one goes on as always.
func TestCheckFromZero(t *testing.T) {
	s := New(100)
	if _, err := s.CheckFromZero(of(3, 1, 1), 0); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("an unknown producer with sequence 1: %v", err)
	}
	if _, err := s.CheckFromZero(of(3, 0, 1), 0); err != nil {
		t.Error(err)
	}
	s.Append(of(3, 0, 1), 0, 0)
	if _, err := s.CheckFromZero(of(3, 1, 1), 0); err != nil {
		t.Error(err)
	}
	if _, err := s.CheckFromZero(of(3, 1, 1), 101); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("an expired producer with sequence 1: %v", err)
	}
}

// TestCheckOwn: what the broker writes in a producer's transaction has its epoch checked and nothing else.
func TestCheckOwn(t *testing.T) {
	s := New(1000)
	b := Batch{ProducerID: 7, Epoch: 2, Transactional: true}
	for offset := range int64(3) {
		if dup, err := s.CheckOwn(b, 1); dup != nil || err != nil {
			t.Fatalf("the same sequence again: %v, %v", dup, err)
		}
		s.Append(b, offset, 1)
	}
	b.Epoch = 1
	if _, err := s.CheckOwn(b, 1); !errors.Is(err, ErrFenced) {
		t.Errorf("an older epoch: %v", err)
	}
}
