package batch

// Record is one record of an entry. Its slices alias the entry or the reader's scratch: they are valid until the next call of the Reader.
type Record struct {
	Offset     int64
	Timestamp  int64  // milliseconds; -1 none. The entry's max timestamp where the timestamp type is LogAppendTime
	Key, Value []byte // nil is null
	Headers    Headers
}

// Headers are the headers of a record, encoded and checked.
type Headers struct {
	n   int32
	raw []byte
}

// RecordHeader is a key and a value of Record.Headers.
type RecordHeader struct {
	Key   string
	Value []byte // nil is null
}

// Len is the number of headers.
func (h Headers) Len() int { return int(h.n) }

// Reader iterates over the records of an entry of any magic, inflating as it goes. It reuses its scratch; the zero value is ready. It is
// for one goroutine at a time.
type Reader struct{}

// Reset starts on the whole entry b, which must not change while it is read. The checksum is not checked (Verify). maxDecompressed bounds
// what the entry may inflate to, in bytes; 0 is DefaultMaxDecompressed.
func (r *Reader) Reset(b []byte, maxDecompressed int64) error { return nil }

// Next reads the next record into rec. It reports false at the end and on damage; Err tells them apart.
func (r *Reader) Next(rec *Record) bool { return false }

// Err is what ended Next early: ErrCorrupt, ErrInvalid, ErrTooLarge or ErrCodec, or nil.
func (r *Reader) Err() error { return nil }

// Search finds the first record of the whole entry b whose timestamp is at least ts and whose offset is at least from. With ts the entry's
// max timestamp it finds the record that has it.
func (r *Reader) Search(b []byte, ts, from int64) (offset, timestamp int64, ok bool, err error) {
	return 0, 0, false, nil
}
