package producer

// Entry is a producer in a snapshot file.
type Entry struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32 // -1: no data batch
	LastOffset       int64 // -1: no data batch
	OffsetDelta      int32 // of the last batch: its first offset is LastOffset-OffsetDelta
	Timestamp        int64 // of the last batch or marker, milliseconds
	CoordinatorEpoch int32 // -1: no marker seen
	TxnFirstOffset   int64 // -1: no open transaction
}

// EncodeSnapshot appends the state as Kafka's ProducerSnapshot file, version 1, to dst, in the order of producer ids.
func (s *State) EncodeSnapshot(dst []byte) []byte { return dst }

// EncodeEntries appends entries as a snapshot file to dst, in the given order.
func EncodeEntries(dst []byte, entries []Entry) []byte { return dst }

// DecodeSnapshot reads a whole snapshot file. An error is ErrSnapshot: the file is a hint, the caller rebuilds from the log.
func DecodeSnapshot(b []byte) ([]Entry, error) { return nil, nil }

// Restore replaces the state with entries of a snapshot whose last offset lies in [logStart, logEnd) or that have an open transaction. The
// idle time of all begins at nowMillis.
func (s *State) Restore(entries []Entry, logStart, logEnd, nowMillis int64) {}
