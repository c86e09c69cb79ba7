// Package producer keeps what a partition knows about its idempotent producers (KIP-98, KIP-360): for each producer id the epoch and
// the last five batches, so that a repeated batch is answered with its first offset and a gap is refused. The state is pure:
// no I/O, no clock, no goroutine; the time comes in with each call. It is guarded by the lock of the log that owns it.
//
// The state is written as Kafka's .snapshot file (reference: ProducerSnapshot, version 1) and read back at open.
package producer
