package log

import (
	"errors"
	"fmt"
)

// Errors of a log. All are matched with errors.Is.
var (
	// ErrOffsetOutOfRange is a read or truncation outside [log start offset, log end offset].
	ErrOffsetOutOfRange = errors.New("offset is outside the log")
	// ErrClosed is any use after Close.
	ErrClosed = errors.New("log is closed")
	// ErrOffline is any write to a log whose disk failed; errors.Unwrap gives the first failure.
	ErrOffline = errors.New("log is offline after a storage failure")
	// ErrNoSpace is an append that did not fit on the disk; the log goes on when there is room again.
	ErrNoSpace = errors.New("no space left for the log")
	// ErrTooLarge is a batch larger than a segment can be.
	ErrTooLarge = errors.New("batch is larger than segment.bytes")
)

// CorruptError is damage below the recovery point: bytes that were durable once and are not valid now.
type CorruptError struct {
	File string
	Pos  int64 // of the first bad byte's entry, in bytes
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("log file %s is damaged at byte %d: %v", e.File, e.Pos, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Appended is where a batch went.
type Appended struct {
	BaseOffset int64
	LastOffset int64
	// Duplicate says that the batch was there already (idempotent producer); nothing was written and the offsets are those of the first time.
	Duplicate bool
	// Timestamp is the batch's max timestamp in milliseconds (of the first time, for a duplicate).
	Timestamp int64
}

// ReadLimit says how far a read may go.
type ReadLimit int8

const (
	// ToHighWatermark is what consumers see.
	ToHighWatermark ReadLimit = iota
	// ToLastStable is what read_committed consumers see.
	ToLastStable
	// ToLogEnd is what followers and the coordinators' replay see.
	ToLogEnd
)

// EpochStart is an entry of the leader-epoch-checkpoint: the first offset written under an epoch.
type EpochStart struct {
	Epoch int32
	Start int64
}

// TimestampOffset is the answer to a search by time.
type TimestampOffset struct {
	Timestamp   int64
	Offset      int64
	LeaderEpoch int32
}
