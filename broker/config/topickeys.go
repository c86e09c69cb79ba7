package config

const (
	maxLong = "9223372036854775807"
	maxInt  = "2147483647"
	minute  = 60 * 1000
	hour    = 60 * minute
)

// smallestSegment is the least segment.bytes, that of Kafka before 4.0: what older tools set must go on working.
const smallestSegment = 14

func same(name string) []link { return []link{{name, 1}} }

func topicLogKeys() []key {
	return []key{
		{name: "segment.bytes", typ: Int, rule: atLeast(smallestSegment), from: same("log.segment.bytes"),
			doc: "Size in bytes at which a segment file is full and a new one is begun. A batch is never split, and retention removes whole segments."},
		{name: "internal.segment.bytes", typ: Int, null: true, hidden: true, rule: atLeast(smallestSegment),
			doc: "Overrides segment.bytes, for tests of tools."},
		{name: "segment.ms", typ: Long, rule: atLeast(1), from: []link{{"log.roll.ms", 1}, {"log.roll.hours", hour}},
			doc: "Age in milliseconds at which a segment that has data is closed even if it is not full, so that retention and compaction can reach it."},
		{name: "segment.jitter.ms", typ: Long, rule: atLeast(0), from: []link{{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", hour}},
			doc: "Up to this many milliseconds, chosen at random, are taken from segment.ms, so that many partitions do not roll at once."},
		{name: "segment.index.bytes", typ: Int, rule: atLeast(4), from: same("log.index.size.max.bytes"),
			doc: "Largest size in bytes of a segment's offset index; a full index rolls the segment."},
		{name: "index.interval.bytes", typ: Int, rule: atLeast(0), from: same("log.index.interval.bytes"),
			doc: "An index entry is written about every so many bytes of log. Less makes lookups shorter and the index larger."},
		{name: "preallocate", typ: Boolean, from: same("log.preallocate"),
			doc: "Reserve the disk space of a segment when it is made."},
		{name: "flush.messages", typ: Long, rule: atLeast(1), from: same("log.flush.interval.messages"),
			doc: "Messages after which the log is synced to disk. 1, the default here, means that acks=all is answered after the sync and a power cut takes " +
				"nothing back that was acknowledged. Kafka's default, " + maxLong + ", leaves it to the operating system."},
		{name: "flush.ms", typ: Long, rule: atLeast(0), from: []link{{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}},
			doc: "Milliseconds after which unsynced messages are synced to disk."},
		{name: "file.delete.delay.ms", typ: Long, rule: atLeast(0), from: same("log.segment.delete.delay.ms"),
			doc: "Milliseconds between a segment leaving the log and its files leaving the disk."},
	}
}

func topicCleanKeys() []key {
	return []key{
		{name: "cleanup.policy", typ: List, rule: oneOf{"compact", "delete"}, from: same("log.cleanup.policy"),
			doc: "What happens to old segments: delete removes them by age or size, compact keeps the last message of each key; both may be given, " +
				"and an empty list keeps everything."},
		{name: "retention.ms", typ: Long, rule: atLeast(-1),
			from: []link{{"log.retention.ms", 1}, {"log.retention.minutes", minute}, {"log.retention.hours", hour}},
			doc:  "Milliseconds that messages are kept with cleanup.policy delete; -1 is for ever."},
		{name: "retention.bytes", typ: Long, from: same("log.retention.bytes"),
			doc: "Bytes that each partition is kept below with cleanup.policy delete; -1 is no limit."},
		{name: "delete.retention.ms", typ: Long, rule: atLeast(0), from: same("log.cleaner.delete.retention.ms"),
			doc: "Milliseconds that tombstones and transaction markers of a compacted topic are kept, so that a reader from the start sees them."},
		{name: "min.compaction.lag.ms", typ: Long, rule: atLeast(0), from: same("log.cleaner.min.compaction.lag.ms"),
			doc: "Milliseconds that a message stays as it is before compaction may remove it."},
		{name: "max.compaction.lag.ms", typ: Long, rule: atLeast(1), from: same("log.cleaner.max.compaction.lag.ms"),
			doc: "Milliseconds after which a message is due for compaction whatever min.cleanable.dirty.ratio says."},
		{name: "min.cleanable.dirty.ratio", typ: Double, rule: between{0, 1}, from: same("log.cleaner.min.cleanable.ratio"),
			doc: "Share of the log that must not have been compacted yet before compaction begins."},
	}
}

func topicMessageKeys() []key {
	return []key{
		{name: "max.message.bytes", typ: Int, rule: atLeast(0), from: same("message.max.bytes"),
			doc: "Largest batch in bytes as it arrives, after compression."},
		{name: "max.decompressed.message.bytes", typ: Int, rule: atLeast(1), from: same("max.decompressed.message.bytes"),
			doc: "Largest size in bytes that a batch may have after decompression. No more than 134217728 is taken in any case."},
		{name: "compression.type", typ: String, rule: compressionTypes(), from: same("compression.type"),
			doc: "Codec in which batches are stored; producer keeps what the producer chose."},
		{name: "compression.gzip.level", typ: Int, rule: gzipLevel{}, from: same("compression.gzip.level"),
			doc: "Level for compression.type gzip."},
		{name: "compression.lz4.level", typ: Int, rule: between{1, 17}, from: same("compression.lz4.level"),
			doc: "Level for compression.type lz4."},
		{name: "compression.zstd.level", typ: Int, rule: between{-131072, 22}, from: same("compression.zstd.level"),
			doc: "Level for compression.type zstd."},
		{name: "message.timestamp.type", typ: String, rule: oneOf{"CreateTime", "LogAppendTime"}, from: same("log.message.timestamp.type"),
			doc: "Whether a message's timestamp is the producer's (CreateTime) or the broker's clock (LogAppendTime)."},
		{name: "message.timestamp.before.max.ms", typ: Long, rule: atLeast(0), from: same("log.message.timestamp.before.max.ms"),
			doc: "Milliseconds that a producer's timestamp may be behind the broker's clock; older messages are refused."},
		{name: "message.timestamp.after.max.ms", typ: Long, rule: atLeast(0), from: same("log.message.timestamp.after.max.ms"),
			doc: "Milliseconds that a producer's timestamp may be ahead of the broker's clock; newer messages are refused."},
	}
}

func compressionTypes() rule {
	return oneOf{"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"}
}

func topicReplicaKeys() []key {
	return []key{
		{name: "min.insync.replicas", typ: Int, rule: atLeast(1), from: same("min.insync.replicas"),
			doc: "Replicas that must be in sync for a write with acks=all."},
		{name: "unclean.leader.election.enable", typ: Boolean, idle: noReplicas, from: same("unclean.leader.election.enable"),
			doc: "Whether a replica that is not in sync may become leader, at the price of losing messages."},
		{name: "leader.replication.throttled.replicas", typ: List, rule: throttled{"leader.replication.throttled.replicas"}, idle: noReplicas,
			doc: "Replicas, as partition:broker pairs or *, whose outgoing replication is throttled."},
		{name: "follower.replication.throttled.replicas", typ: List, rule: throttled{"follower.replication.throttled.replicas"}, idle: noReplicas,
			doc: "Replicas, as partition:broker pairs or *, whose incoming replication is throttled."},
		{name: "errors.deadletterqueue.group.enable", typ: Boolean, def: "false", idle: noShare,
			doc: "Whether share groups may use this topic as a dead letter queue. Kept for tools; has no effect."},
	}
}

func topicRemoteKeys() []key {
	const idle = " Tiered storage does not exist here; kept for tools."
	return allIdle(notTiered, []key{
		{name: "remote.storage.enable", typ: Boolean, def: "false", doc: "Whether old segments move to a remote store." + idle},
		{name: "remote.log.copy.disable", typ: Boolean, def: "false", doc: "Whether copying to the remote store stops." + idle},
		{name: "remote.log.delete.on.disable", typ: Boolean, def: "false", doc: "Whether disabling the remote store deletes from it." + idle},
		{name: "local.retention.ms", typ: Long, rule: atLeast(-2), from: same("log.local.retention.ms"),
			doc: "Milliseconds that segments stay on the local disk; -2 is retention.ms." + idle},
		{name: "local.retention.bytes", typ: Long, rule: atLeast(-2), from: same("log.local.retention.bytes"),
			doc: "Bytes that stay on the local disk; -2 is retention.bytes." + idle},
		{name: "remote.copy.lag.ms", typ: Long, rule: atLeast(-1), from: same("log.remote.copy.lag.ms"),
			doc: "Milliseconds before a segment is copied." + idle},
		{name: "remote.copy.lag.bytes", typ: Long, rule: atLeast(-1), from: same("log.remote.copy.lag.bytes"),
			doc: "Bytes before a segment is copied." + idle},
	})
}

// topicOwnKeys are those that Kafka does not have.
func topicOwnKeys() []key {
	return []key{
		{name: "gregor.write.enabled", typ: String, def: "true", hidden: true, rule: partitions{},
			doc: "Partitions that can be written to: true, false, or a list such as 0-3,7,9-. Producers try again until theirs is opened."},
		{name: "gregor.read.enabled", typ: String, def: "true", hidden: true, rule: partitions{},
			doc: "Partitions that can be read: true, false, or a list such as 0-3,7,9-. Consumers try again until theirs is opened."},
	}
}

// topicLegacyKeys are those that Kafka 4.0 removed. Clients before 4.0 still set them.
func topicLegacyKeys() []key {
	return []key{
		{name: "message.format.version", typ: String, rule: formatVersion{}, from: same("log.message.format.version"),
			doc: "Format that messages are stored in: with a version of Kafka up to 0.9 format 0, with 0.10 format 1, with later ones format 2. " +
				"Formats 0 and 1 have no headers, transactions or idempotent producers."},
		{name: "message.downconversion.enable", typ: Boolean, from: same("log.message.downconversion.enable"),
			doc: "Whether messages are converted for consumers that cannot read the stored format: Fetch below version 4. If not, they get an error."},
		{name: "message.timestamp.difference.max.ms", typ: Long, rule: atLeast(0), from: same("log.message.timestamp.difference.max.ms"),
			doc: "Milliseconds that a producer's timestamp may differ from the broker's clock, as Kafka before 3.6 named it. " +
				"It counts where message.timestamp.before.max.ms or message.timestamp.after.max.ms is not set."},
	}
}
