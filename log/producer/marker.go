package producer

// Marker is a transaction marker (control batch) of a producer.
type Marker struct {
	ProducerID       int64
	Epoch            int16
	CoordinatorEpoch int32
	Commit           bool
	Timestamp        int64 // milliseconds
}

// Completed is a transaction that a marker ended; aborted ones are written to the .txnindex.
type Completed struct {
	ProducerID       int64
	FirstOffset      int64 // of the transaction in this partition
	LastOffset       int64 // of the marker
	LastStableOffset int64 // with this transaction ended
	Aborted          bool
}

// CheckMarker decides if a marker from a coordinator may be appended. Errors: ErrFenced, ErrCoordinatorFenced.
func (s *State) CheckMarker(m Marker) error { return nil }

// AppendMarker ends the producer's transaction with the marker at offset. ok is false if there was none open.
func (s *State) AppendMarker(m Marker, offset, nowMillis int64) (c Completed, ok bool) {
	return Completed{}, false
}
