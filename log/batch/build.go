package batch

// Producer is the idempotent producer that a batch is from.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record; -1 for a control batch
}

// Options are the header of a batch to build. The zero value is an uncompressed batch at offset 0 without producer.
type Options struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Producer      *Producer // nil is none
	Transactional bool
	Control       bool
	LogAppendTime bool // every record has the time of the last
}

// Builder makes magic 2 batches; the same input gives the same bytes. The zero value is ready.
type Builder struct{}

// Reset starts a new batch.
func (w *Builder) Reset(o Options) {}

// Append adds a record at the next offset. Nothing of it is kept.
func (w *Builder) Append(timestamp int64, key, value []byte, headers ...RecordHeader) {}

// Len is the number of records so far.
func (w *Builder) Len() int { return 0 }

// Finish appends the batch to dst. An error is a codec that does not exist or a batch without records.
func (w *Builder) Finish(dst []byte) ([]byte, error) { return dst, nil }

// AppendMarker appends a transaction marker (control batch of one record, KIP-98) to dst: COMMIT or ABORT of producer p, whose
// sequence is not used.
func AppendMarker(dst []byte, p Producer, timestamp int64, coordinatorEpoch int32, commit bool) []byte {
	return dst
}
