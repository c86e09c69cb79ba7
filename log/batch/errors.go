package batch

import (
	"errors"
	"fmt"
)

// Errors of this package. All are matched with errors.Is; the names in brackets are Kafka's error codes for them.
var (
	// ErrShort is a slice that ends before the header or the batch does.
	ErrShort = errors.New("batch is cut off")
	// ErrMagic is a format other than the one that is needed.
	ErrMagic = errors.New("batch has an unsupported magic")
	// ErrCorrupt is a checksum that does not match, or a length below the header's [CORRUPT_MESSAGE].
	ErrCorrupt = errors.New("batch is corrupt")
	// ErrInvalid is a whole batch that says what no client may say [INVALID_RECORD].
	ErrInvalid = errors.New("batch is invalid")
	// ErrTimestamp is a record timestamp outside the topic's limits [INVALID_TIMESTAMP].
	ErrTimestamp = errors.New("record timestamp is out of range")
	// ErrTooLarge is a batch over the size limit, compressed or inflated [MESSAGE_TOO_LARGE].
	ErrTooLarge = errors.New("batch is too large")
	// ErrCodec is a compression that does not exist or is not allowed here [UNSUPPORTED_COMPRESSION_TYPE].
	ErrCodec = errors.New("batch has an unsupported compression type")
	// ErrFormat is what the format that a topic stores has no place for [UNSUPPORTED_FOR_MESSAGE_FORMAT].
	ErrFormat = errors.New("message format of the topic is too old")
)

// MaxRecordErrors bounds RecordError.Records: a batch may hold a million bad records, an answer should not.
const MaxRecordErrors = 100

// BadRecord is one refused record (KIP-467).
type BadRecord struct {
	Index   int32 // in the batch, from 0
	Message string
}

// RecordError says which records of a batch are the reason that all of it is refused. Records are in order and cut at MaxRecordErrors.
type RecordError struct {
	Err     error // ErrTimestamp if any record has a bad timestamp, else ErrInvalid
	Records []BadRecord
}

func (e *RecordError) Error() string {
	if len(e.Records) == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v: record %d: %s", e.Err, e.Records[0].Index, e.Records[0].Message)
}

func (e *RecordError) Unwrap() error { return e.Err }
