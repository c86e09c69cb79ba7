// Package log is the segmented log of one partition, on disk in Apache Kafka's formats: `%020d.log` segments of record batches with their
// sparse .index and .timeindex, .txnindex of aborted transactions, .snapshot files of producer state and the leader-epoch-checkpoint.
//
// Entries may be of any magic, and mixed: batches of magic 2, messages of magic 0 and 1, and compressed sets of those, whose entry has the offset
// of its last record.
//
// Promise. Append returns after the bytes are written to the operating system; they become visible to consumers when the high watermark passes
// them. With FlushMessages 1 (the default) the high watermark moves only over synced bytes: nobody reads what a power cut could take back. After a
// crash Open cuts a torn tail at the last whole, valid batch above the recovery point; damage below it is a *CorruptError, never a silent loss.
// Indexes, snapshots and checkpoints are hints, checked against the log and rebuilt when wrong.
//
// Locks. Log.mu serialises writers (append, roll, truncate) and is held over pwrite, never over a sync or a wait; only truncation, which is
// rare, syncs under it. Log.files serialises whoever deletes, replaces or renames files of segments, and is held over that I/O, which appends and
// syncs do not wait for. Readers take no lock: they work on an immutable snapshot of the segment list and on
// atomic offsets, and wait for the writer only when a read failed that a truncation may have crossed. Order: Log.proving (held
// while a transaction index is compared with the log) > Log.files > (exclude) > Log.mu > flush > waiters.mu and
// HandleCache.mu; segment.loadMu is held over reads and takes only flush and HandleCache.mu. No Waiter and no Committer is called under any.
// Besides the locks, a sync, a truncation and a close exclude each other (exclude, ready): whoever waits for that holds no lock.
//
// Compaction (clean*.go, package compact) reads and writes without a lock; its swap is a change of files like a deletion. It keeps offsets, so that
// there are gaps between batches and at the ends of segments.
//
// Goroutines: none. The committer (package commit) calls BeginSync and EndSync on its own goroutine.
package log
