// Package batch knows the bytes of record batches: headers, checks, stamping and iteration, on byte slices that belong to the
// caller. It does no I/O and starts no goroutine.
//
// Formats: LogOverhead framing common to magic 0, 1 and 2; the magic 2 record batch (KIP-98); compression codecs. A batch from a
// client is checked once, before a byte is written (Check), and then stored as it came: base offset and leader epoch are
// stamped in place, both lie outside the CRC.
package batch
