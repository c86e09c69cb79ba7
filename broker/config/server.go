package config

import (
	"math"
	"time"
)

// Server is the configuration of one broker, typed and checked. It is made by NewServer and never changes.
type Server struct {
	// NodeID is broker.id or node.id, -1 when neither was given.
	NodeID int32
	Rack   string
	// LogDir is the first data directory, which has the metadata, and LogDirs are all, as they were given.
	LogDir    string
	LogDirs   []string
	Listeners []Listener
	// Advertised is empty when clients are told the address that they came in on.
	Advertised []Listener

	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopics             bool

	SocketRequestMaxBytes int32
	// QueuedMaxRequestBytes is 0 when the broker is to choose.
	QueuedMaxRequestBytes int64
	// SocketSendBuffer and SocketReceiveBuffer are in bytes; 0 leaves them to the operating system.
	SocketSendBuffer    int32
	SocketReceiveBuffer int32
	ConnectionsMaxIdle  time.Duration // 0: never
	MaxConnections      int32         // 0: no limit
	MaxConnectionsPerIP int32         // 0: no limit, -1: only those of ConnectionOverrides
	ConnectionOverrides []ConnectionOverride
	ConnectionRate      int32 // connections a second; 0: no limit
	// OfListener are limits of single listeners, listener.name.NAME.KEY, by NAME in upper case.
	OfListener        map[string]ListenerLimits
	FetchMaxBytes     int32
	FetchSessionSlots int32
	// Usage is measured over so many windows of that length: quota.window.num, quota.window.size.seconds.
	QuotaWindows int32
	// DescribedPartitions is max.request.partition.size.limit.
	DescribedPartitions int32
	QuotaWindow         time.Duration

	RetentionCheckInterval            time.Duration
	FlushOffsetCheckpointInterval     time.Duration
	StartOffsetCheckpointInterval     time.Duration
	HighWatermarkCheckpointInterval   time.Duration
	ProducerIDExpiration              time.Duration
	ProducerIDExpirationCheckInterval time.Duration
	RecoveryThreads                   int32

	// Cleaner is how compaction works.
	Cleaner Cleaner

	OffsetsTopicPartitions     int32
	OffsetsTopicReplication    int16
	OffsetsTopicSegmentBytes   int32
	OffsetsTopicCodec          int8 // number of the codec, as in a batch
	GroupMinSession            time.Duration
	GroupMaxSession            time.Duration
	GroupInitialDelay          time.Duration
	GroupMaxSize               int32
	OffsetsRetention           time.Duration
	OffsetsRetentionCheck      time.Duration
	OffsetsCommitTimeout       time.Duration
	OffsetMetadataMax          int32 // characters
	TransactionTopicPartitions int32
	TransactionReplication     int16
	TransactionSegmentBytes    int32
	TransactionMinISR          int32
	TransactionMaxTimeout      time.Duration
	TransactionAbortCheck      time.Duration // between looks for transactions that took too long
	TransactionIDExpiration    time.Duration
	TransactionIDCheck         time.Duration // between looks for ids that are not used any more
	TransactionVerification    bool
	TransactionTwoPhase        bool
	TransactionPatience        time.Duration // that a request waits for the transaction before

	// MetricsListener is gregor.metrics.listener: host:port, or empty.
	TelemetryMaxBytes int32 // of metrics that a client may push at once, compressed
	MetricsListener   string
	// FastBoot is gregor.fast.boot: logs are opened without checking them.
	FastBoot bool

	// ZooKeeper is where the metadata is, if not in the data directory.
	ZooKeeper ZooKeeper

	// Defaults is the configuration of a topic without keys of its own.
	Defaults Topic

	// values are the effective values of all broker keys, nil for those without one.
	values map[string]any
	// layers are what was given, the strongest source first, one for each source.
	layers []Layer
}

// Cleaner is the configuration of compaction, for all threads together.
type Cleaner struct {
	Enable         bool
	Threads        int32
	BytesPerSecond float64
	DedupeBytes    int64
	BufferBytes    int32
	LoadFactor     float64
	Backoff        time.Duration
}

// The accessors are for keys of the right type that have a value, which the tests see to.

func (s *Server) integer(name string) int64 {
	n, _ := s.values[name].(int64)
	return n
}

func (s *Server) double(name string) float64 {
	f, _ := s.values[name].(float64)
	return f
}

func (s *Server) boolean(name string) bool {
	b, _ := s.values[name].(bool)
	return b
}

func (s *Server) text(name string) string { return format(s.values[name]) }

func (s *Server) list(name string) []string {
	l, _ := s.values[name].([]string)
	return l
}

// duration reads a key in milliseconds; what a time.Duration cannot hold becomes its largest value, 292 years.
func (s *Server) duration(name string) time.Duration {
	ms := s.integer(name)
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// limit reads a key whose largest value means none.
func (s *Server) limit(name string) int32 {
	if n := s.integer(name); n != math.MaxInt32 {
		return int32(n)
	}
	return 0
}

func (s *Server) fill() {
	s.Rack = s.text("broker.rack")
	s.NumPartitions = int32(s.integer("num.partitions"))
	s.DefaultReplicationFactor = int16(s.integer("default.replication.factor"))
	s.AutoCreateTopics = s.boolean("auto.create.topics.enable")
	s.DeleteTopics = s.boolean("delete.topic.enable")
	s.SocketRequestMaxBytes = int32(s.integer("socket.request.max.bytes"))
	s.QueuedMaxRequestBytes = max(0, s.integer("queued.max.request.bytes"))
	s.SocketSendBuffer = int32(max(0, s.integer("socket.send.buffer.bytes")))
	s.SocketReceiveBuffer = int32(max(0, s.integer("socket.receive.buffer.bytes")))
	s.ConnectionsMaxIdle = max(0, s.duration("connections.max.idle.ms"))
	s.MaxConnections = s.limit("max.connections")
	s.MaxConnectionsPerIP = s.limit("max.connections.per.ip")
	if s.integer("max.connections.per.ip") == 0 {
		s.MaxConnectionsPerIP = -1
	}
	s.ConnectionOverrides, _ = parseOverrides(s.text("max.connections.per.ip.overrides"))
	s.ConnectionRate = s.limit("max.connection.creation.rate")
	s.FetchMaxBytes = int32(s.integer("fetch.max.bytes"))
	s.DescribedPartitions = int32(s.integer("max.request.partition.size.limit"))
	s.QuotaWindows = int32(s.integer("quota.window.num"))
	s.QuotaWindow = time.Duration(s.integer("quota.window.size.seconds")) * time.Second
	s.FetchSessionSlots = int32(s.integer("max.incremental.fetch.session.cache.slots"))
	s.RetentionCheckInterval = s.duration("log.retention.check.interval.ms")
	s.FlushOffsetCheckpointInterval = s.duration("log.flush.offset.checkpoint.interval.ms")
	s.StartOffsetCheckpointInterval = s.duration("log.flush.start.offset.checkpoint.interval.ms")
	s.HighWatermarkCheckpointInterval = s.duration("replica.high.watermark.checkpoint.interval.ms")
	s.ProducerIDExpiration = s.duration("producer.id.expiration.ms")
	s.ProducerIDExpirationCheckInterval = s.duration("producer.id.expiration.check.interval.ms")
	s.RecoveryThreads = int32(s.integer("num.recovery.threads.per.data.dir"))
	s.Cleaner = Cleaner{
		Enable:         s.boolean("log.cleaner.enable"),
		Threads:        int32(s.integer("log.cleaner.threads")),
		BytesPerSecond: s.double("log.cleaner.io.max.bytes.per.second"),
		DedupeBytes:    s.integer("log.cleaner.dedupe.buffer.size"),
		BufferBytes:    int32(s.integer("log.cleaner.io.buffer.size")),
		LoadFactor:     s.double("log.cleaner.io.buffer.load.factor"),
		Backoff:        s.duration("log.cleaner.backoff.ms"),
	}
	s.OffsetsTopicPartitions = int32(s.integer("offsets.topic.num.partitions"))
	s.OffsetsTopicReplication = int16(s.integer("offsets.topic.replication.factor"))
	s.OffsetsTopicSegmentBytes = int32(s.integer("offsets.topic.segment.bytes"))
	s.OffsetsTopicCodec = int8(s.integer("offsets.topic.compression.codec"))
	s.GroupMinSession = s.duration("group.min.session.timeout.ms")
	s.GroupMaxSession = s.duration("group.max.session.timeout.ms")
	s.GroupInitialDelay = max(0, s.duration("group.initial.rebalance.delay.ms"))
	s.GroupMaxSize = int32(s.integer("group.max.size"))
	s.OffsetsRetention = time.Duration(s.integer("offsets.retention.minutes")) * time.Minute
	s.OffsetsRetentionCheck = s.duration("offsets.retention.check.interval.ms")
	s.OffsetsCommitTimeout = s.duration("offsets.commit.timeout.ms")
	s.OffsetMetadataMax = int32(s.integer("offset.metadata.max.bytes"))
	s.TransactionTopicPartitions = int32(s.integer("transaction.state.log.num.partitions"))
	s.TransactionReplication = int16(s.integer("transaction.state.log.replication.factor"))
	s.TransactionSegmentBytes = int32(s.integer("transaction.state.log.segment.bytes"))
	s.TransactionMinISR = int32(s.integer("transaction.state.log.min.isr"))
	s.TransactionMaxTimeout = s.duration("transaction.max.timeout.ms")
	s.TransactionAbortCheck = s.duration("transaction.abort.timed.out.transaction.cleanup.interval.ms")
	s.TransactionIDExpiration = s.duration("transactional.id.expiration.ms")
	s.TransactionIDCheck = s.duration("transaction.remove.expired.transaction.cleanup.interval.ms")
	s.TransactionVerification = s.boolean("transaction.partition.verification.enable")
	s.TransactionTwoPhase = s.boolean("transaction.two.phase.commit.enable")
	s.TransactionPatience = s.duration("add.partitions.to.txn.retry.backoff.max.ms")
	s.TelemetryMaxBytes = int32(s.integer("telemetry.max.bytes"))
	s.MetricsListener = s.text("gregor.metrics.listener")
	s.FastBoot = s.boolean("gregor.fast.boot")
	s.Defaults = s.typed(nil)
}
