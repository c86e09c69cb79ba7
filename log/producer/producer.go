package producer

import "errors"

// Errors of Check. They say why a batch is refused; nothing of the state changes with them.
var (
	// ErrOutOfOrder is a sequence that does not follow the last one of the same epoch, or a new epoch that does not start at 0.
	ErrOutOfOrder = errors.New("sequence number is out of order")
	// ErrFenced is an epoch older than the newest one seen.
	ErrFenced = errors.New("producer epoch is older than the newest one seen")
	// ErrInvalidTxnState is a non-transactional batch inside the producer's open transaction.
	ErrInvalidTxnState = errors.New("producer has an open transaction on this partition")
	// ErrCoordinatorFenced is a marker from a transaction coordinator older than the newest one seen.
	ErrCoordinatorFenced = errors.New("coordinator epoch is older than the newest one seen")
	// ErrSnapshot is a snapshot file that cannot be used.
	ErrSnapshot = errors.New("producer snapshot is damaged")
)

// Batch is what the state needs to know of a batch.
type Batch struct {
	ProducerID    int64
	Epoch         int16
	BaseSequence  int32
	LastDelta     int32 // offsets and sequences run from base to base+LastDelta
	Timestamp     int64 // the batch's max timestamp, milliseconds
	Transactional bool
}

// Accepted is a batch that the state remembers.
type Accepted struct {
	FirstOffset int64
	LastOffset  int64
	Timestamp   int64
}
