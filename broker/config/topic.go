package config

import (
	"fmt"
	"maps"
	"slices"
)

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
	RetentionMs            int64
	RetentionBytes         int64
	LocalRetentionMs       int64
	LocalRetentionBytes    int64
	FileDeleteDelayMs      int64
	DeleteRetentionMs      int64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	MinCleanableDirtyRatio float64

	// MaxMessageBytes limits a batch as it is stored, with its header.
	MaxMessageBytes int32
	// MaxDecompressedBytes limits a batch after decompression.
	MaxDecompressedBytes int32
	Compression          Compression

	TimestampType        TimestampType
	TimestampBeforeMaxMs int64
	TimestampAfterMaxMs  int64

	// Magic is the message format that is stored (message.format.version): 0, 1 or 2.
	Magic int8
	// DownConversion allows to convert for consumers that cannot read it.
	DownConversion bool

	// Writable and Readable are the partitions that are open for producers and consumers; nil is all.
	Writable, Readable *PartitionSet

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

// TopicError is a topic's key that was refused. Its text is Kafka's and belongs to INVALID_CONFIG.
type TopicError struct {
	Key  string
	text string
}

func (e *TopicError) Error() string { return e.text }

// ValidateTopic checks the keys of a topic by themselves. The error is a *TopicError for the first wrong one, unknown names before all.
func ValidateTopic(overrides map[string]string) error {
	names := slices.Sorted(maps.Keys(overrides))
	for _, name := range names {
		if topicCatalog().byName[name] == nil {
			return &TopicError{Key: name, text: "Unknown topic config name: " + name}
		}
	}
	for _, name := range names {
		if err := validateTopicKey(name, overrides[name]); err != nil {
			return err
		}
	}
	return nil
}

func validateTopicKey(name, text string) error {
	v, shown, problem := topicCatalog().byName[name].parse(text)
	if l := splitList(text); name == "cleanup.policy" && len(l) > 1 && slices.Contains(l, "") {
		return &TopicError{Key: name, text: "Configuration '" + name + "' values must not be empty."}
	}
	switch {
	case problem != "":
		return &TopicError{Key: name, text: fmt.Sprintf("Invalid value %s for configuration %s: %s", shown, name, problem)}
	case name == "remote.storage.enable" && v == true:
		return &TopicError{Key: name, text: "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."}
	}
	return nil
}

// Topic returns the effective configuration of a topic with the given keys of its own. The error is that of ValidateTopic.
func (s *Server) Topic(overrides map[string]string) (Topic, error) {
	if err := s.ValidateTopic(overrides); err != nil {
		return Topic{}, err
	}
	return s.typed(overrides), nil
}

// ValidateTopic checks the keys of a topic by themselves, as ValidateTopic without a Server does, and together with the broker's defaults.
func (s *Server) ValidateTopic(overrides map[string]string) error {
	if err := ValidateTopic(overrides); err != nil {
		return err
	}
	t := s.typed(overrides)
	if t.MinCompactionLagMs > t.MaxCompactionLagMs {
		return &TopicError{Key: "min.compaction.lag.ms", text: fmt.Sprintf(
			"conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", t.MinCompactionLagMs, t.MaxCompactionLagMs)}
	}
	return nil
}

// topicValue returns the effective value of a topic's key: its own, else what the broker's keys give, else the key's default.
func (s *Server) topicValue(k *key, overrides map[string]string) any {
	if text, ok := overrides[k.name]; ok {
		if v, _, problem := k.parse(text); problem == "" {
			return v
		}
	}
	for _, from := range k.from {
		switch v := s.values[from.name].(type) {
		case nil:
		case int64:
			if v < 0 {
				return v // -1 is no limit, in every unit
			}
			return v * from.unit
		default:
			return v
		}
	}
	if k.null {
		return nil
	}
	v, _, _ := k.parse(k.def)
	return v
}

// topicReader gives typed access to a topic's effective values.
type topicReader struct {
	server    *Server
	overrides map[string]string
}

func (r topicReader) value(name string) any {
	return r.server.topicValue(topicCatalog().byName[name], r.overrides)
}

func (r topicReader) long(name string) int64 {
	n, _ := r.value(name).(int64)
	return n
}

func (r topicReader) int(name string) int32 { return int32(r.long(name)) }

func (r topicReader) boolean(name string) bool {
	b, _ := r.value(name).(bool)
	return b
}

func (r topicReader) text(name string) string {
	s, _ := r.value(name).(string)
	return s
}

func (r topicReader) list(name string) []string {
	l, _ := r.value(name).([]string)
	return l
}

// typed makes a Topic of valid keys.
func (s *Server) typed(overrides map[string]string) Topic {
	r := topicReader{s, overrides}
	policy := r.list("cleanup.policy")
	ratio, _ := r.value("min.cleanable.dirty.ratio").(float64)
	t := Topic{
		SegmentBytes:           r.int("segment.bytes"),
		SegmentMs:              r.long("segment.ms"),
		SegmentJitterMs:        r.long("segment.jitter.ms"),
		SegmentIndexBytes:      r.int("segment.index.bytes"),
		IndexIntervalBytes:     r.int("index.interval.bytes"),
		Preallocate:            r.boolean("preallocate"),
		FlushMessages:          r.long("flush.messages"),
		FlushMs:                r.long("flush.ms"),
		CleanupPolicy:          CleanupPolicy{Delete: slices.Contains(policy, "delete"), Compact: slices.Contains(policy, "compact")},
		RetentionMs:            r.long("retention.ms"),
		RetentionBytes:         max(-1, r.long("retention.bytes")),
		FileDeleteDelayMs:      r.long("file.delete.delay.ms"),
		DeleteRetentionMs:      r.long("delete.retention.ms"),
		MinCompactionLagMs:     r.long("min.compaction.lag.ms"),
		MaxCompactionLagMs:     r.long("max.compaction.lag.ms"),
		MinCleanableDirtyRatio: ratio,
		MaxMessageBytes:        r.int("max.message.bytes"),
		MaxDecompressedBytes:   r.int("max.decompressed.message.bytes"),
		Compression:            r.compression(),
		TimestampBeforeMaxMs:   r.long("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:    r.long("message.timestamp.after.max.ms"),
		MinInsyncReplicas:      r.int("min.insync.replicas"),
		Magic:                  formatMagic(r.text("message.format.version")),
		DownConversion:         r.boolean("message.downconversion.enable"),
		UncleanElection:        r.boolean("unclean.leader.election.enable"),
	}
	if _, ok := overrides["internal.segment.bytes"]; ok {
		t.SegmentBytes = r.int("internal.segment.bytes")
	}
	if r.value("message.timestamp.type") == "LogAppendTime" {
		t.TimestampType = LogAppendTime
	}
	t.Writable, t.Readable = r.open("gregor.write.enabled"), r.open("gregor.read.enabled")
	r.timestampDifference(&t)
	return t
}

// open reads a key that has a set of partitions, nil for all.
func (r topicReader) open(name string) *PartitionSet {
	s, err := ParsePartitionSet(r.text(name))
	if err != nil || s.String() == "true" {
		return nil
	}
	return &s
}

// timestampDifference lets the key that Kafka had before 3.6 stand in for those that took its place: that of the topic, or the broker's where neither
// the topic nor the broker has a newer one.
func (r topicReader) timestampDifference(t *Topic) {
	const difference, before, after = "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
	_, own := r.overrides[difference]
	if !own && !r.server.given("log."+difference) {
		return
	}
	stands := func(newer string) bool {
		_, ok := r.overrides[newer]
		return !ok && (own || !r.server.given("log."+newer))
	}
	if stands(before) {
		t.TimestampBeforeMaxMs = r.long(difference)
	}
	if stands(after) {
		t.TimestampAfterMaxMs = r.long(difference)
	}
}

func (r topicReader) compression() Compression {
	switch r.value("compression.type") {
	case "uncompressed":
		return Compression{Codec: CodecNone}
	case "gzip":
		return Compression{Codec: CodecGzip, Level: int(r.int("compression.gzip.level"))}
	case "snappy":
		return Compression{Codec: CodecSnappy}
	case "lz4":
		return Compression{Codec: CodecLZ4, Level: int(r.int("compression.lz4.level"))}
	case "zstd":
		return Compression{Codec: CodecZstd, Level: int(r.int("compression.zstd.level"))}
	}
	return Compression{Codec: CodecProducer}
}
