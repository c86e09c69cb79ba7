package config

// Topic is the effective configuration of one topic: its own keys over the broker's. Sizes are in bytes and times in milliseconds, as Kafka has
// them, because they are compared with positions and timestamps of records; math.MaxInt64 means never.
type Topic struct {
	SegmentBytes       int32
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int32
	IndexIntervalBytes int32
	Preallocate        bool

	// FlushMessages is how many messages may wait for a sync: 1 means that acks=all is answered after it.
	FlushMessages int64
	FlushMs       int64

	CleanupPolicy CleanupPolicy
	// RetentionMs and RetentionBytes are -1 for no limit.
	RetentionMs           int64
	RetentionBytes        int64
	LocalRetentionMs      int64
	LocalRetentionBytes   int64
	FileDeleteDelayMs     int64
	DeleteRetentionMs     int64
	MinCompactionLagMs    int64
	MaxCompactionLagMs    int64
	MinCleanableDirtyRatio float64

	// MaxMessageBytes limits a batch as it is stored, with its header.
	MaxMessageBytes int32
	Compression     Compression

	TimestampType        TimestampType
	TimestampBeforeMaxMs int64
	TimestampAfterMaxMs  int64

	MinInsyncReplicas int32
	UncleanElection   bool
}

// CleanupPolicy is cleanup.policy. Neither means that everything is kept (KIP-1161).
type CleanupPolicy struct {
	Delete  bool
	Compact bool
}

// Codec is compression.type: the codecs have the numbers that batch attributes have.
type Codec int8

// Codecs of compression.type.
const (
	CodecProducer Codec = -1 // as it came
	CodecNone     Codec = 0
	CodecGzip     Codec = 1
	CodecSnappy   Codec = 2
	CodecLZ4      Codec = 3
	CodecZstd     Codec = 4
)

// Compression is how the broker stores batches.
type Compression struct {
	Codec Codec
	// Level is the level for Codec as Kafka numbers it; 0 where the codec has none.
	Level int
}

// TimestampType is message.timestamp.type, with the number of the batch attribute's bit.
type TimestampType int8

// Timestamp types.
const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
)
