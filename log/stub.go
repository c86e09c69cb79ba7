package log

import (
	"errors"

	"gregor/log/batch"
	"gregor/log/commit"
	"gregor/log/vfs"
)

var errStub = errors.New("not built yet")

// HandleCache keeps read handles of sealed segments open, at most a given number beyond those in use.
type HandleCache struct{}

// NewHandleCache returns a cache of at most max idle handles.
func NewHandleCache(fsys vfs.FS, max int) *HandleCache { return &HandleCache{} }

// Close closes the idle handles; those in use close with their last Release.
func (c *HandleCache) Close() {}

// Log is the log of one partition. All methods may be called concurrently.
type Log struct{}

// Open opens or makes the log in o.Dir and recovers it as far as needed.
func Open(o Options) (*Log, error) { return nil, errStub }

// Append writes one batch of magic 2 that batch.Check has passed; h is its header. It stamps base offset and leader epoch into b.
// Errors: those of package producer (wrapped), ErrTooLarge, ErrNoSpace, ErrOffline, ErrClosed. b is not kept.
func (l *Log) Append(b []byte, h batch.Header, leaderEpoch int32) (Appended, error) {
	return Appended{}, errStub
}

// Slice is a range of whole batches of one segment file (the last one may be cut off). Release it exactly once.
type Slice struct {
	File       vfs.File
	Pos        int64 // of the first byte in File
	Size       int   // in bytes; 0: nothing to read
	Offset     int64 // base offset of the first batch
	FirstBatch int   // size of the first batch in bytes, which may be more than Size unless minOne was asked
}

// Release lets the file go. The slice must not be used afterwards.
func (s *Slice) Release() {}

// Read finds the batches from the one that holds offset on, up to limit, in one segment.
// ErrOffsetOutOfRange is an offset outside [StartOffset, EndOffset]; at the limit or above the slice is empty.
// With minOne the first batch is whole even if it is larger than maxBytes; otherwise the slice may end inside a batch.
func (l *Log) Read(offset int64, maxBytes int, limit ReadLimit, minOne bool) (Slice, error) {
	return Slice{}, errStub
}

// StartOffset is the first offset that can be read.
func (l *Log) StartOffset() int64 { return 0 }

// EndOffset is the offset that the next record gets.
func (l *Log) EndOffset() int64 { return 0 }

// HighWatermark is the offset up to which consumers read.
func (l *Log) HighWatermark() int64 { return 0 }

// LastStable is the offset up to which read_committed consumers read.
func (l *Log) LastStable() int64 { return 0 }

// RecoveryPoint is the offset below which everything is durable, indexes too.
func (l *Log) RecoveryPoint() int64 { return 0 }

// Waiter is told once when what it watches for happened. Wake must not block and may come after Unwatch returned, when the
// two cross. Implementations are pointers.
type Waiter interface{ Wake() }

// Watch registers w for one Wake when the offset that limit stands for reaches offset, or the log goes offline or is closed
// or deleted, or its end moves back. True means that this is so already and w was not registered. A waiter is registered
// once per log; watching again replaces.
func (l *Log) Watch(w Waiter, offset int64, limit ReadLimit) bool { return true }

// Unwatch forgets w.
func (l *Log) Unwatch(w Waiter) {}

// SearchTimestamp finds the first record, in offset order from the log start and below limit, with a timestamp of ts or later.
func (l *Log) SearchTimestamp(ts int64, limit ReadLimit) (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, errStub
}

// MaxTimestamp finds the record with the largest timestamp below limit, the first of several.
func (l *Log) MaxTimestamp(limit ReadLimit) (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, errStub
}

// AssignEpoch records that offsets from start on are written under epoch. Older or equal epochs change nothing.
func (l *Log) AssignEpoch(epoch int32, start int64) error { return errStub }

// LatestEpoch is the newest epoch that has a start offset.
func (l *Log) LatestEpoch() (int32, bool) { return 0, false }

// EpochEnd answers OffsetForLeaderEpoch: the largest known epoch that is not above the asked one, and the offset where it ended.
func (l *Log) EpochEnd(epoch int32) (floor int32, end int64, ok bool) { return -1, -1, false }

// TruncateTo cuts the log at offset: it becomes the log end offset, unless that is below it already.
func (l *Log) TruncateTo(offset int64) error { return errStub }

// TruncateFullyAndStartAt deletes everything and goes on at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error { return errStub }

// AdvanceStart moves the log start offset forward, at most to the high watermark, and deletes the segments below it.
func (l *Log) AdvanceStart(offset int64) error { return errStub }

// SetConfig changes the configuration from the next append on.
func (l *Log) SetConfig(c Config) {}

// Tick does what is due by time at the call: a sync by FlushMs, forgetting idle producers, a snapshot of the producer state after
// many new bytes.
func (l *Log) Tick() error { return errStub }

// Flush syncs everything written before the call.
func (l *Log) Flush() error { return errStub }

// Close syncs, writes indexes and snapshot, and closes the files. Slices stay readable until they are released.
func (l *Log) Close() error { return errStub }

// Abandon closes the files without syncing or writing anything.
func (l *Log) Abandon() {}

// Delete closes the log and removes its directory.
func (l *Log) Delete() error { return errStub }

// Rename moves the directory; the log stays open.
func (l *Log) Rename(newDir string) error { return errStub }

// Dir is the directory of the log.
func (l *Log) Dir() string { return "" }

// Size is the sum of the segments' sizes in bytes.
func (l *Log) Size() int64 { return 0 }

// Err says why the log is offline, nil while it is not.
func (l *Log) Err() error { return nil }

// ProducerInfo is what DescribeProducers tells of one producer.
type ProducerInfo struct {
	ProducerID    int64
	Epoch         int16
	LastSequence  int32
	LastTimestamp int64 // milliseconds
}

// Producers lists the producers whose state the log keeps, by id.
func (l *Log) Producers() []ProducerInfo { return nil }

// BeginSync implements commit.Source.
func (l *Log) BeginSync() (commit.Target, bool) { return commit.Target{}, false }

// EndSync implements commit.Source.
func (l *Log) EndSync(t commit.Target, err error) {}

var _ commit.Source = (*Log)(nil)
