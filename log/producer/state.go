package producer

// State is what one partition knows about its producers. It is not safe for concurrent use: the log's lock guards it.
type State struct {
	expiry int64
}

// New makes an empty state. Producers without an open transaction that did not append for expiryMillis are forgotten by Expire
// (producer.id.expiration.ms).
func New(expiryMillis int64) *State { return &State{expiry: expiryMillis} }

// SetExpiry changes producer.id.expiration.ms.
func (s *State) SetExpiry(expiryMillis int64) { s.expiry = expiryMillis }

// Len is the number of producers known.
func (s *State) Len() int { return 0 }

// Reset forgets everything, for a log that is truncated: the caller restores a snapshot and replays from there.
func (s *State) Reset() {}

// Check decides if b from a client may be appended at nowMillis (broker clock, milliseconds). dup is not nil if it was appended before: the caller
// answers with it and writes nothing. Errors: ErrOutOfOrder, ErrFenced, ErrInvalidTxnState. Nothing changes. It is only for
// batches with a producer id.
func (s *State) Check(b Batch, nowMillis int64) (dup *Accepted, err error) { return nil, nil }

// Append remembers b, which was appended at firstOffset. It does not check: followers and recovery take what the log says.
func (s *State) Append(b Batch, firstOffset, nowMillis int64) {}

// Expire forgets producers that are idle for longer than the expiry and have no open transaction. It returns how many.
func (s *State) Expire(nowMillis int64) int { return 0 }

// FirstOpenOffset is the first offset that read_committed consumers may not see: the start of the oldest transaction that is
// open, or whose marker is not below the high watermark. ok is false if there is none.
func (s *State) FirstOpenOffset() (offset int64, ok bool) { return 0, false }

// SetHighWatermark says that markers below hw are replicated, so that their transactions are over for FirstOpenOffset.
func (s *State) SetHighWatermark(hw int64) {}
