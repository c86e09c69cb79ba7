// Package logdir is the log directories of a broker in Apache Kafka's layout: of each (Dir) the lock, who it belongs to, how it was left, and the
// logs in it; and all of them together (Set).
//
// Files. `.lock`; `meta.properties` (versions 0 and 1); `.kafka_cleanshutdown`; the checkpoints `recovery-point-offset-checkpoint`,
// `replication-offset-checkpoint`, `log-start-offset-checkpoint` and `cleaner-offset-checkpoint`; a directory `<topic>-<partition>` for each log with
// `partition.metadata` in it; `<topic>-<partition>.<32 hex>-delete` for what is being deleted. Everything else is left alone.
//
// Promise. A partition is durable when Create returns, and its deletion when Delete returns. A log that does not open keeps its
// partition, offline with the error; the others are served. The marker of a clean stop is written last and only when all logs
// closed well, and is durably gone before a log is touched again. Checkpoints are hints: one that does not parse is
// ignored as a whole, and an entry never outlives the partition that it was written for.
//
// Goroutines. A Dir owns two: one writes checkpoints a while after something moved, one removes deleted directories. Both
// sleep without a timer while there is nothing to do, and end with Close or Abandon. Create, Open and Close use up to
// Options.Parallel more while they run.
//
// Locks. Dir.mu guards the set of partitions and is held over nothing. checkpoints.mu lets one goroutine write the files at a time
// and is held over their syncs; nobody on the way of a request takes it. Set.placing is held by Set.Create. Order: Set.placing > checkpoints.mu >
// Dir.mu.
package logdir
