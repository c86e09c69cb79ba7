// Package compact decides what log compaction keeps: an index of the newest offset of each key, and a filter that passes the entries of a
// log through it. It is pure: no I/O, no clock, no goroutine; the log reads, writes and swaps the files (log/clean*.go).
//
// Promise, as Apache Kafka's cleaner. Of each key the newest record is kept, with its offset, time and headers; order does not change. A tombstone is the
// newest record of its key until the delete horizon that the first clean writes into its batch (KIP-534: bit 6 of the attributes, the time in the
// place of the base timestamp; record times stay what they were). Records without key go. Records of aborted transactions go at once, a marker when
// nothing of its transaction is left and its horizon passed. The last batch of each active producer and the last batch of a
// round stay, without records if need be, for the producer's sequence and the end offset. Batches from which nothing goes are copied as they
// are.
//
// Memory. Index is bounded by what it is made with, whatever the log's size: when it is full, the clean ends there and the next goes on. Besides it there is
// one entry, compressed and not, and two windows of 64 KiB.
package compact
