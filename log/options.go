package log

import (
	"log/slog"
	"math"
	"time"

	"gregor/log/commit"
	"gregor/log/vfs"
)

// Config is what can change while a log is open (SetConfig). The names are those of Kafka's topic keys. The zero value of a
// field means its default.
type Config struct {
	SegmentBytes       int64 // segment.bytes: a segment is rolled before it would grow larger; default 1 GiB
	SegmentMs          int64 // segment.ms: age at which a segment is rolled; default 7 days
	SegmentJitterMs    int64 // segment.jitter.ms: up to this much is taken off SegmentMs; default 0
	IndexIntervalBytes int   // index.interval.bytes: at least so many bytes between index entries; default 4096
	SegmentIndexBytes  int   // segment.index.bytes: the largest size of either index; default 10 MiB
	// FlushMessages (flush.messages) is the number of unsynced records that starts a sync. 1, the default, is group commit: a
	// record is visible when it is durable. Above 1 a record is visible as soon as it is written, as in Kafka.
	FlushMessages int64
	FlushMs       int64 // flush.ms: age of unsynced records that starts a sync, seen by Tick; default: never
	Preallocate   bool  // preallocate: reserve disk space for a whole segment when it is made
	// Compacted (cleanup.policy has compact) says that a segment may end before the next one begins. In other logs such a gap
	// above the recovery point is what a power cut leaves.
	Compacted bool
	// FileDeleteDelayMs (file.delete.delay.ms) is how long the files of a deleted segment stay on the disk, as .deleted; 0: not at all.
	FileDeleteDelayMs int64
	ProducerExpiryMs  int64 // producer.id.expiration.ms; default 1 day
}

// Defaults of Config, as in Kafka but for FlushMessages.
const (
	DefaultSegmentBytes       = 1 << 30
	DefaultSegmentMs          = 7 * 24 * 60 * 60 * 1000
	DefaultIndexIntervalBytes = 4096
	DefaultSegmentIndexBytes  = 10 << 20
	DefaultProducerExpiryMs   = 24 * 60 * 60 * 1000
)

func (c Config) withDefaults() Config {
	setDefault(&c.SegmentBytes, DefaultSegmentBytes)
	c.SegmentBytes = min(c.SegmentBytes, math.MaxInt32) // positions in an index have 32 bits
	setDefault(&c.SegmentMs, DefaultSegmentMs)
	setDefault(&c.IndexIntervalBytes, DefaultIndexIntervalBytes)
	setDefault(&c.SegmentIndexBytes, DefaultSegmentIndexBytes)
	setDefault(&c.FlushMessages, 1)
	setDefault(&c.FlushMs, int64(1)<<62)
	setDefault(&c.ProducerExpiryMs, DefaultProducerExpiryMs)
	return c
}

func setDefault[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Options say where a log is and what is known about its last stop.
type Options struct {
	FS     vfs.FS
	Dir    string // of the partition; made when missing
	Config Config
	// Handles caches the read handles of sealed segments of all logs on one file system; nil: one of the log's own.
	Handles *HandleCache
	// Committer is told when there are bytes to sync; nil: the caller uses Flush.
	Committer interface{ Dirty(commit.Source) }
	Logger    *slog.Logger     // nil: discard
	Now       func() time.Time // nil: time.Now
	// RecoveryPoint is the offset below which everything was durable at the last checkpoint; 0 when there was none.
	RecoveryPoint int64
	// LogStart is the checkpointed log start offset, -1 when there was none.
	LogStart int64
	// CleanBelow is the checkpointed offset below which the log is compacted, 0 when there was none.
	CleanBelow int64
	// Clean says that the last stop was clean: everything was synced, only cheap checks are made.
	Clean bool
	// FastBoot skips validation: the files are taken as they are up to the last whole entry.
	FastBoot bool
}
