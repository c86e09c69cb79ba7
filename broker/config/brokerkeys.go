package config

const (
	oneCheckpoint = "all checkpoints are written at log.flush.offset.checkpoint.interval.ms"
	noGroups      = "this part of consumer groups is not built: classic groups are, the newer protocol (KIP-848) is not"
	noTxns        = "this part of transactions is not built: nothing depends on it"
	noReplicas    = "clusters are not built yet: this broker stands alone and every topic has one replica"
	notTiered     = "tiered storage does not exist here: all segments stay in the log directory"
	defaultDir    = "./gregor-data"
	defaultAddr   = "PLAINTEXT://127.0.0.1:9092"
)

func serverKeys() []key {
	return []key{
		{name: "broker.id", typ: Int, def: "-1", rule: atLeast(-1),
			doc: "Number of this broker, unique in its cluster. -1 takes the one that the data directory has, or 0 in a new one."},
		{name: "node.id", typ: Int, null: true, rule: atLeast(0), doc: "broker.id as Kafka names it since 3.3."},
		{name: "broker.rack", typ: String, null: true, doc: "Rack of this broker, as clients see it."},
		{name: "log.dir", typ: List, def: defaultDir, doc: "Directory for the data, or several. Used when log.dirs is not set."},
		{name: "log.dirs", typ: List, null: true, doc: "Directories for the data, best each on a disk of its own. The first has the metadata too. A new partition goes to the one with the fewest."},
		{name: "auto.create.topics.enable", typ: Boolean, def: "true", doc: "Whether a topic is created when a client first asks for it by name."},
		{name: "delete.topic.enable", typ: Boolean, def: "true", doc: "Whether topics can be deleted."},
		{name: "telemetry.max.bytes", typ: Int, def: "1048576", rule: atLeast(1), doc: "Bytes of metrics, compressed, that a client may push at once."},
		{name: "gregor.fast.boot", typ: Boolean, def: "false",
			doc: "Open logs after a crash without checking their ends. Faster, and unsafe after a power cut."},
		{name: "gregor.metrics.listener", typ: String, null: true, rule: hostPort{},
			doc: "Address for Prometheus to read metrics from, as HOST:PORT: http://HOST:PORT/metrics. Empty is none. Port 0 takes a free port."},
	}
}

// topicDefaultKeys are those that a new topic takes its shape from.
func topicDefaultKeys() []key {
	return []key{
		{name: "num.partitions", typ: Int, def: "1", rule: atLeast(1), doc: "Partitions of a topic that is created without a number of them."},
		{name: "default.replication.factor", typ: Int, def: "1", rule: between{1, 32767},
			doc: "Replicas of a topic that is created without a number of them. More than there are brokers means as many as there are."},
	}
}

func socketKeys() []key {
	return []key{
		{name: "listeners", typ: List, def: defaultAddr, dynamic: true,
			doc: "Addresses to listen on, as NAME://HOST:PORT. Kafka listens on every address unless told otherwise; here the default is this machine only, " +
				defaultAddr + ". PLAINTEXT://:9092 listens on every address. Port 0 takes a free port."},
		{name: "advertised.listeners", typ: List, null: true, dynamic: true,
			doc: "Addresses that clients are told to connect to. Unless set, each client is told the address that it came in on."},
		{name: "listener.security.protocol.map", typ: String, dynamic: true, def: "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
			doc: "Security protocol of each listener name. Only PLAINTEXT is built so far."},
		{name: "socket.request.max.bytes", typ: Int, def: "104857600", rule: atLeast(1), doc: "Largest request in bytes."},
		{name: "queued.max.request.bytes", typ: Long, def: "-1", rule: atLeast(-1),
			doc: "Bytes of requests that may be in memory over all connections; then nothing more is read until some are done. -1 lets the broker choose."},
		{name: "socket.send.buffer.bytes", typ: Int, def: "102400", rule: atLeast(-1),
			doc: "Size of a connection's send buffer in bytes; -1 leaves it to the operating system, which far away consumers may need. A small one keeps what is sent in the processor's cache."},
		{name: "socket.receive.buffer.bytes", typ: Int, def: "-1", rule: atLeast(-1),
			doc: "Size of a connection's receive buffer in bytes; -1, unlike Kafka's 102400, leaves it to the operating system."},
		{name: "connections.max.idle.ms", typ: Long, def: "600000", doc: "Milliseconds after which a connection without traffic is closed; negative is never."},
		{name: "max.connections", typ: Int, def: maxInt, rule: atLeast(1), dynamic: true, doc: "Connections that may be open; more are refused."},
		{name: "max.connections.per.ip", typ: Int, def: maxInt, rule: atLeast(0), dynamic: true, doc: "Connections that may be open from one address."},
		{name: "max.connections.per.ip.overrides", typ: String, def: "", rule: overrides{}, dynamic: true,
			doc: "Connections that may be open from certain addresses or hosts, as HOST:NUMBER,HOST:NUMBER, in place of max.connections.per.ip."},
		{name: "max.connection.creation.rate", typ: Int, def: maxInt, rule: atLeast(0), dynamic: true,
			doc: "Connections that are taken in a second, measured over quota.window.num samples; later ones wait."},
		{name: "fetch.max.bytes", typ: Int, def: "57671680", rule: atLeast(1024), doc: "Largest fetch answer in bytes, whatever the client asks for."},
		{name: "max.request.partition.size.limit", typ: Int, def: "2000", rule: atLeast(1), doc: "Most partitions in an answer to DescribeTopicPartitions; clients ask again for the rest."},
		{name: "quota.window.num", typ: Int, def: "11", rule: atLeast(1), doc: "Samples that the use of a quota is measured over."},
		{name: "quota.window.size.seconds", typ: Int, def: "1", rule: atLeast(1), doc: "Length of such a sample."},
		{name: "max.incremental.fetch.session.cache.slots", typ: Int, def: "1000", rule: atLeast(0), doc: "Fetch sessions (KIP-227) that are kept."},
	}
}

func logKeys() []key {
	return []key{
		{name: "log.segment.bytes", typ: Int, def: "1073741824", rule: atLeast(smallestSegment), dynamic: true, doc: "Default of segment.bytes."},
		{name: "log.index.size.max.bytes", typ: Int, def: "10485760", rule: atLeast(4), dynamic: true, doc: "Default of segment.index.bytes."},
		{name: "log.index.interval.bytes", typ: Int, def: "4096", rule: atLeast(0), dynamic: true, doc: "Default of index.interval.bytes."},
		{name: "log.preallocate", typ: Boolean, def: "false", dynamic: true, doc: "Default of preallocate."},
		{name: "log.segment.delete.delay.ms", typ: Long, def: "60000", rule: atLeast(0), dynamic: true, doc: "Default of file.delete.delay.ms."},
		{name: "log.cleanup.policy", typ: List, def: "delete", rule: oneOf{"compact", "delete"}, dynamic: true, doc: "Default of cleanup.policy."},
		{name: "log.flush.interval.messages", typ: Long, def: "1", rule: atLeast(1), dynamic: true,
			doc: "Default of flush.messages. 1 here, so that what was acknowledged survives a power cut; " + maxLong + " in Kafka."},
		{name: "log.flush.interval.ms", typ: Long, null: true, rule: atLeast(0), dynamic: true, doc: "Default of flush.ms."},
		{name: "log.flush.scheduler.interval.ms", typ: Long, def: maxLong, rule: atLeast(0), doc: "Default of log.flush.interval.ms."},
		{name: "log.flush.offset.checkpoint.interval.ms", typ: Int, def: "60000", rule: atLeast(1),
			doc: "Milliseconds between writes of the recovery points. More often makes a start after a crash shorter."},
		{name: "log.flush.start.offset.checkpoint.interval.ms", typ: Int, def: "60000", rule: atLeast(1),
			idle: oneCheckpoint, doc: "Milliseconds between writes of the log start offsets."},
		{name: "replica.high.watermark.checkpoint.interval.ms", typ: Long, def: "5000", rule: atLeast(1),
			idle: oneCheckpoint, doc: "Milliseconds between writes of the high watermarks."},
		{name: "num.recovery.threads.per.data.dir", typ: Int, def: "2", rule: atLeast(1), dynamic: true,
			doc: "Logs that are opened at a time at the start and flushed at a time at the stop."},
		{name: "producer.id.expiration.ms", typ: Int, def: "86400000", rule: atLeast(1), dynamic: true,
			doc: "Milliseconds after its last write that an idempotent producer's sequence is remembered."},
		{name: "producer.id.expiration.check.interval.ms", typ: Int, def: "600000", rule: atLeast(1),
			idle: noUse, doc: "Milliseconds between looks for producers to forget."},
	}
}

func rollKeys() []key {
	return []key{
		{name: "log.roll.ms", typ: Long, null: true, rule: atLeast(1), dynamic: true, doc: "Default of segment.ms."},
		{name: "log.roll.hours", typ: Int, def: "168", rule: atLeast(1), doc: "Default of segment.ms in hours, when log.roll.ms is not set."},
		{name: "log.roll.jitter.ms", typ: Long, null: true, rule: atLeast(0), dynamic: true, doc: "Default of segment.jitter.ms."},
		{name: "log.roll.jitter.hours", typ: Int, def: "0", rule: atLeast(0), doc: "Default of segment.jitter.ms in hours, when log.roll.jitter.ms is not set."},
		{name: "log.retention.ms", typ: Long, null: true, rule: atLeast(-1), dynamic: true, doc: "Default of retention.ms."},
		{name: "log.retention.minutes", typ: Int, null: true, rule: atLeast(-1), doc: "Default of retention.ms in minutes, when log.retention.ms is not set."},
		{name: "log.retention.hours", typ: Int, def: "168", rule: atLeast(-1), doc: "Default of retention.ms in hours, when neither log.retention.ms nor log.retention.minutes is set."},
		{name: "log.retention.bytes", typ: Long, def: "-1", dynamic: true, doc: "Default of retention.bytes."},
		{name: "log.retention.check.interval.ms", typ: Long, def: "300000", rule: atLeast(1), doc: "Milliseconds between looks for segments to delete."},
	}
}

func cleanerKeys() []key {
	return []key{
		{name: "log.cleaner.delete.retention.ms", typ: Long, def: "86400000", rule: atLeast(0), dynamic: true, doc: "Default of delete.retention.ms."},
		{name: "log.cleaner.min.compaction.lag.ms", typ: Long, def: "0", rule: atLeast(0), dynamic: true, doc: "Default of min.compaction.lag.ms."},
		{name: "log.cleaner.max.compaction.lag.ms", typ: Long, def: maxLong, rule: atLeast(1), dynamic: true, doc: "Default of max.compaction.lag.ms."},
		{name: "log.cleaner.min.cleanable.ratio", typ: Double, def: "0.5", rule: between{0, 1}, dynamic: true, doc: "Default of min.cleanable.dirty.ratio."},
	}
}

// cleanerWorkKeys are for the goroutines that compact.
func cleanerWorkKeys() []key {
	return []key{
		{name: "log.cleaner.enable", typ: Boolean, def: "true", doc: "Whether compaction runs."},
		{name: "log.cleaner.threads", typ: Int, def: "1", rule: atLeast(0), dynamic: true, doc: "Logs that are compacted at a time."},
		{name: "log.cleaner.io.max.bytes.per.second", typ: Double, def: "1.7976931348623157E308", dynamic: true,
			doc: "Bytes that compaction may read and write in a second, all threads together."},
		{name: "log.cleaner.dedupe.buffer.size", typ: Long, def: "134217728", dynamic: true,
			doc: "Most bytes of memory for the offsets of keys, all threads together; 24 bytes a key. It is taken as needed. What does not fit is compacted in several rounds."},
		{name: "log.cleaner.io.buffer.size", typ: Int, def: "524288", rule: atLeast(0), dynamic: true,
			doc: "Bytes of memory for reading and writing, all threads together."},
		{name: "log.cleaner.io.buffer.load.factor", typ: Double, def: "0.9", dynamic: true,
			doc: "How full the memory for the offsets of keys may get. More holds more keys and makes each look-up longer."},
		{name: "log.cleaner.backoff.ms", typ: Long, def: "15000", rule: atLeast(0), dynamic: true,
			doc: "Milliseconds between looks for logs to compact when there was none."},
	}
}

func messageKeys() []key {
	return []key{
		{name: "message.max.bytes", typ: Int, def: "1048588", rule: atLeast(0), dynamic: true, doc: "Default of max.message.bytes."},
		{name: "max.decompressed.message.bytes", typ: Int, def: "2147483639", rule: atLeast(1), dynamic: true, doc: "Default of the topic key of this name."},
		{name: "compression.type", typ: String, def: "producer", rule: compressionTypes(), dynamic: true, doc: "Default of the topic key of this name."},
		{name: "compression.gzip.level", typ: Int, def: "-1", rule: gzipLevel{}, dynamic: true, doc: "Default of the topic key of this name."},
		{name: "compression.lz4.level", typ: Int, def: "9", rule: between{1, 17}, dynamic: true, doc: "Default of the topic key of this name."},
		{name: "compression.zstd.level", typ: Int, def: "3", rule: between{-131072, 22}, dynamic: true, doc: "Default of the topic key of this name."},
		{name: "log.message.timestamp.type", typ: String, def: "CreateTime", rule: oneOf{"CreateTime", "LogAppendTime"}, dynamic: true,
			doc: "Default of message.timestamp.type."},
		{name: "log.message.timestamp.before.max.ms", typ: Long, def: maxLong, rule: atLeast(0), dynamic: true, doc: "Default of message.timestamp.before.max.ms."},
		{name: "log.message.timestamp.after.max.ms", typ: Long, def: "3600000", rule: atLeast(0), dynamic: true, doc: "Default of message.timestamp.after.max.ms."},
		{name: "log.message.timestamp.difference.max.ms", typ: Long, def: maxLong, rule: atLeast(0), dynamic: true,
			doc: "Default of message.timestamp.difference.max.ms. It counts where log.message.timestamp.before.max.ms or log.message.timestamp.after.max.ms is not set."},
		{name: "log.message.format.version", typ: String, def: "3.0-IV1", rule: formatVersion{}, doc: "Default of message.format.version."},
		{name: "log.message.downconversion.enable", typ: Boolean, def: "true", dynamic: true, doc: "Default of message.downconversion.enable."},
		{name: "min.insync.replicas", typ: Int, def: "1", rule: atLeast(1), dynamic: true, doc: "Default of the topic key of this name."},
		{name: "unclean.leader.election.enable", typ: Boolean, def: "false", dynamic: true, idle: noReplicas, doc: "Default of the topic key of this name."},
	}
}

// internalTopicKeys shape topics that a broker makes for itself. Tools read them from DescribeConfigs.
func internalTopicKeys() []key {
	return []key{
		{name: "offsets.topic.num.partitions", typ: Int, def: "50", rule: atLeast(1), doc: "Partitions of __consumer_offsets."},
		{name: "offsets.topic.replication.factor", typ: Short, def: "3", rule: atLeast(1), moot: "1", idle: noReplicas,
			doc: "Replicas of __consumer_offsets. More than there are brokers means as many as there are."},
		{name: "offsets.topic.compression.codec", typ: Int, def: "0", rule: between{0, 4}, doc: "How batches of __consumer_offsets are compressed: 0 not at all, 1 gzip, 2 snappy, 3 lz4, 4 zstd."},
		{name: "offsets.topic.segment.bytes", typ: Int, def: "104857600", rule: atLeast(1), doc: "segment.bytes of __consumer_offsets."},
		{name: "offsets.retention.minutes", typ: Int, def: "10080", rule: atLeast(1),
			doc: "Minutes that the offsets of a group without members are kept."},
		{name: "offsets.retention.check.interval.ms", typ: Long, def: "600000", rule: atLeast(1), doc: "Milliseconds between looks for offsets that were kept long enough."},
		{name: "offsets.commit.timeout.ms", typ: Int, def: "5000", rule: atLeast(1), doc: "Milliseconds that a commit may take to become durable."},
		{name: "offset.metadata.max.bytes", typ: Int, def: "4096", rule: atLeast(0), doc: "Largest metadata that goes with a committed offset, in characters."},
		{name: "transaction.state.log.num.partitions", typ: Int, def: "50", rule: atLeast(1), doc: "Partitions of __transaction_state."},
		{name: "transaction.state.log.replication.factor", typ: Short, def: "3", rule: atLeast(1), moot: "1", idle: noReplicas,
			doc: "Replicas of __transaction_state. More than there are brokers means as many as there are."},
		{name: "transaction.state.log.min.isr", typ: Int, def: "2", rule: atLeast(1), moot: "1", idle: noReplicas,
			doc: "min.insync.replicas of __transaction_state. More than there are brokers means as many as there are."},
		{name: "transaction.state.log.segment.bytes", typ: Int, def: "104857600", rule: atLeast(1), doc: "segment.bytes of __transaction_state."},
	}
}

// groupKeys are for consumer groups.
func groupKeys() []key {
	return []key{
		{name: "group.min.session.timeout.ms", typ: Int, def: "6000", doc: "Least session timeout of a group's member."},
		{name: "group.max.session.timeout.ms", typ: Int, def: "1800000", doc: "Largest session timeout of a group's member."},
		{name: "group.initial.rebalance.delay.ms", typ: Int, def: "3000", doc: "Milliseconds that an empty group waits for more members."},
		{name: "group.max.size", typ: Int, def: "2147483647", rule: atLeast(1), doc: "Most members of a group."},
	}
}

// transactionKeys are for transactions.
func transactionKeys() []key {
	return []key{
		{name: "transaction.max.timeout.ms", typ: Int, def: "900000", rule: atLeast(1), doc: "Largest transaction timeout that a producer may ask for, in milliseconds."},
		{name: "transactional.id.expiration.ms", typ: Int, def: "604800000", rule: atLeast(1), doc: "Milliseconds that an unused transactional id is remembered."},
		{name: "transaction.abort.timed.out.transaction.cleanup.interval.ms", typ: Int, def: "10000", rule: atLeast(1),
			doc: "Milliseconds between looks for transactions to abort that took longer than their timeout."},
		{name: "transaction.remove.expired.transaction.cleanup.interval.ms", typ: Int, def: "3600000", rule: atLeast(1),
			doc: "Milliseconds between looks for transactional ids to forget."},
		{name: "transaction.partition.verification.enable", typ: Boolean, def: "true", dynamic: true,
			doc: "Whether a partition that a producer writes to must be in its transaction. Without it a late write can leave a transaction open for ever."},
		{name: "transaction.two.phase.commit.enable", typ: Boolean, def: "false",
			doc: "Whether producers may have transactions that never time out and that outlive them, for a two-phase commit with other systems (KIP-939). InitProducerId goes up to version 6 then."},
		{name: "add.partitions.to.txn.retry.backoff.max.ms", typ: Int, def: "100", rule: atLeast(0),
			doc: "Milliseconds that a request waits for the end of the transaction before; then it is told to try again."},
	}
}

// idleKeys are those that tools look for in DescribeConfigs although nothing depends on them yet.
func idleKeys() []key {
	return []key{
		{name: "authorizer.class.name", typ: String, def: "", idle: "access control is not built yet: everyone may do everything", doc: "Class of the authorizer; empty is none."},
		{name: "inter.broker.protocol.version", typ: String, def: "3.9-IV0", rule: formatVersion{}, idle: noReplicas, doc: "Version of the requests between brokers."},
		{name: "replica.lag.time.max.ms", typ: Long, def: "30000", rule: atLeast(1), idle: noReplicas, doc: "Milliseconds that a replica in sync may lag."},
		{name: "log.local.retention.ms", typ: Long, def: "-2", rule: atLeast(-2), dynamic: true, idle: notTiered, doc: "Default of local.retention.ms."},
		{name: "log.local.retention.bytes", typ: Long, def: "-2", rule: atLeast(-2), dynamic: true, idle: notTiered, doc: "Default of local.retention.bytes."},
		{name: "log.remote.copy.lag.ms", typ: Long, def: "0", rule: atLeast(-1), dynamic: true, idle: notTiered, doc: "Default of remote.copy.lag.ms."},
		{name: "log.remote.copy.lag.bytes", typ: Long, def: "-1", rule: atLeast(-1), dynamic: true, idle: notTiered, doc: "Default of remote.copy.lag.bytes."},
	}
}
