// Package batch knows the bytes of record batches: headers, checks, stamping and iteration, on byte slices that belong to the
// caller. It does no I/O and starts no goroutine.
//
// Formats: LogOverhead framing common to magic 0, 1 and 2; the magic 2 record batch (KIP-98); compression codecs. A batch from a
// client is checked once, before a byte is written (Checker), and then stored as it came: base offset and leader epoch are
// stamped in place, both lie outside the CRC. Converter is for what cannot be stored as it came, Reader reads what is stored,
// Builder makes new batches, Downgrader makes messages of magic 0 and 1.
//
// Checker, Reader, Converter, Downgrader and Builder own scratch that they reuse; each is for one goroutine at a time and worth pooling. Data
// is inflated through a window of 64 KiB: a batch that claims or inflates to gigabytes is ErrTooLarge or ErrInvalid and costs no memory.
// What a decompressor itself needs comes on top: for zstd the window of the frame (at most 128 MiB, kept up to 8 MiB), for a raw
// snappy block 22 times the batch, for lz4 a block of 4 MiB.
//
// Where Apache Kafka would store a batch that its own consumers cannot read, Check refuses it: record lengths and offset deltas must be
// exact in compressed batches too, and all checksums of a compressed frame must be right.
package batch
