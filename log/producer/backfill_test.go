package producer

import "testing"

// TestBackfill: after a restore from a snapshot, which has one batch, the older ones are duplicates again.
func TestBackfill(t *testing.T) {
	one := func(sequence int32) Batch {
		return Batch{ProducerID: 7, Epoch: 1, BaseSequence: sequence, Timestamp: 5}
	}
	full := New(1000)
	for seq := range int32(9) {
		full.Append(one(seq), int64(seq)*10, 1)
	}
	entries, err := DecodeSnapshot(full.EncodeSnapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	s := New(1000)
	s.Restore(entries, 1000, 1)
	if dup, _ := s.Check(one(7), 1); dup != nil {
		t.Fatal("a snapshot has more than the last batch: this test proves nothing")
	}
	s.Backfill(Batch{ProducerID: 8, Epoch: 1}, 5)                  // unknown producer
	s.Backfill(Batch{ProducerID: 7, Epoch: 0, BaseSequence: 3}, 6) // older epoch
	for seq := range int32(9) {
		s.Backfill(one(seq), int64(seq)*10)
	}
	for seq := int32(4); seq < 9; seq++ {
		if dup, err := s.Check(one(seq), 1); err != nil || dup == nil || dup.FirstOffset != int64(seq)*10 {
			t.Errorf("sequence %d: %+v, %v, want a duplicate at %d", seq, dup, err, seq*10)
		}
	}
	if dup, err := s.Check(one(3), 1); dup != nil || err == nil {
		t.Errorf("the sixth last batch: %+v, %v", dup, err)
	}
	s.Append(one(9), 90, 1)
	for seq := int32(5); seq < 10; seq++ {
		if dup, _ := s.Check(one(seq), 1); dup == nil {
			t.Errorf("sequence %d is forgotten after one more append", seq)
		}
	}
}
