package producer

// Backfill remembers b, which was appended at firstOffset, as older than what is known of its producer: a snapshot has only the last batch of
// each, and a client may repeat any of its last five. Calls come in the order of offsets, after Restore and before Append. A batch of another
// epoch than the snapshot's, or that is known, changes nothing, and so does one of a producer that the snapshot does not have.
func (s *State) Backfill(b Batch, firstOffset int64) {
	e := s.producers[b.ProducerID]
	if e == nil || e.epoch != b.Epoch {
		return
	}
	old := slotOf(b, firstOffset)
	var slots [window + 1]slot
	n, placed := 0, false
	for i := range int(e.n) {
		known := e.ring[(int(e.next)+window-int(e.n)+i)%window] // oldest first
		if known.lastOffset == old.lastOffset {
			return
		}
		if !placed && known.lastOffset > old.lastOffset {
			slots[n], placed = old, true
			n++
		}
		slots[n] = known
		n++
	}
	if !placed {
		return // newer than all that is known: Append's
	}
	newest := slots[max(0, n-window):n]
	e.n = uint8(copy(e.ring[:], newest))
	e.next = e.n % window
}
