package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// history is a model of State that keeps every batch and looks through all of them.
type history struct {
	batches []Batch
	offsets []int64
}

func (h *history) of(id int64) (list []int) {
	for i := range h.batches {
		if h.batches[i].ProducerID == id {
			list = append(list, i)
		}
	}
	return list
}

func (h *history) check(b Batch) (dup int64, err error) {
	mine := h.of(b.ProducerID)
	if len(mine) == 0 {
		return -1, nil
	}
	last := h.batches[mine[len(mine)-1]]
	for k := len(mine) - 1; k >= 0 && k >= len(mine)-5; k-- {
		old := h.batches[mine[k]]
		if old.Epoch != last.Epoch {
			break
		}
		if old.Epoch == b.Epoch && old.BaseSequence == b.BaseSequence && old.LastDelta == b.LastDelta {
			return h.offsets[mine[k]], nil
		}
	}
	next := int32((int64(last.BaseSequence) + int64(last.LastDelta) + 1) % (1 << 31))
	switch {
	case b.Epoch < last.Epoch:
		return -1, ErrFenced
	case b.Epoch > last.Epoch && b.BaseSequence != 0, b.Epoch == last.Epoch && b.BaseSequence != next:
		return -1, ErrOutOfOrder
	}
	return -1, nil
}

// TestRandomAgainstModel appends, repeats and damages batches of a few producers, with snapshots taken and restored on the way. After
// a restore only the last batch of each producer is known, so the model forgets the others too.
func TestRandomAgainstModel(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRun(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func randomRun(t *testing.T, rnd *rand.Rand) {
	s, h := New(1<<40), &history{}
	end, seq, epoch := int64(0), make([]int32, 4), make([]int16, 4)
	for i := range seq {
		seq[i] = 1<<31 - 1 - rnd.Int32N(40) // near the wrap
	}
	for step := range 500 {
		id := rnd.IntN(len(seq))
		b := Batch{ProducerID: int64(id), Epoch: epoch[id], BaseSequence: seq[id], LastDelta: rnd.Int32N(4), Timestamp: int64(step)}
		switch mine := h.of(int64(id)); rnd.IntN(8) {
		case 0:
			if len(mine) > 0 {
				b = h.batches[mine[max(0, len(mine)-1-rnd.IntN(8))]]
			}
		case 1:
			b.BaseSequence = (b.BaseSequence + rnd.Int32N(3)) & 0x7fffffff
		case 2:
			b.Epoch += int16(rnd.IntN(3)) - 1
			b.BaseSequence = min(b.BaseSequence, rnd.Int32N(2))
		case 3:
			s, h = again(t, s, h, end)
		}
		if b.Epoch < 0 {
			continue
		}
		dup, err := s.Check(b, 0)
		wantDup, wantErr := h.check(b)
		if !errors.Is(err, wantErr) || (err != nil) != (wantErr != nil) || (dup != nil) != (wantDup >= 0) {
			t.Fatalf("step %d, %+v: got %+v, %v, want offset %d, %v", step, b, dup, err, wantDup, wantErr)
		}
		if dup != nil && dup.FirstOffset != wantDup {
			t.Fatalf("step %d: duplicate of %d, want %d", step, dup.FirstOffset, wantDup)
		}
		if err != nil || dup != nil {
			continue
		}
		s.Append(b, end, 0)
		h.batches, h.offsets = append(h.batches, b), append(h.offsets, end)
		end += int64(b.LastDelta) + 1
		epoch[id], seq[id] = b.Epoch, int32((int64(b.BaseSequence)+int64(b.LastDelta)+1)%(1<<31))
	}
}

// again restores the state from its snapshot.
func again(t *testing.T, s *State, h *history, end int64) (*State, *history) {
	t.Helper()
	entries, err := DecodeSnapshot(s.EncodeSnapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	restored := New(1 << 40)
	restored.Restore(entries, end, 0)
	short := &history{}
	for i := range h.batches {
		if mine := h.of(h.batches[i].ProducerID); mine[len(mine)-1] == i {
			short.batches, short.offsets = append(short.batches, h.batches[i]), append(short.offsets, h.offsets[i])
		}
	}
	return restored, short
}
