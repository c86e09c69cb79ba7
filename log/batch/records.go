package batch

import (
	"fmt"
	"iter"
)

// Record is one record of an entry. Its slices alias the entry or the reader's scratch: they are valid until the next call of the Reader.
type Record struct {
	Offset    int64
	Timestamp int64  // milliseconds; -1 none. The entry's max timestamp where the timestamp type is LogAppendTime
	Key       []byte // nil is null
	Value     []byte // nil is null
	Headers   Headers
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

// All iterates over the headers. Keys are copied, values alias.
func (h Headers) All() iter.Seq[RecordHeader] {
	return func(yield func(RecordHeader) bool) {
		for i := 0; i < len(h.raw); {
			n, k := varint(h.raw, i)
			key := string(h.raw[k : k+int(n)])
			value, end := blob(h.raw, k+int(n))
			if !yield(RecordHeader{Key: key, Value: value}) {
				return
			}
			i = end
		}
	}
}

// blob reads a nullable byte string at b[i:]; its index is -1 if it is damaged.
func blob(b []byte, i int) ([]byte, int) {
	n, i := varint(b, i)
	if i < 0 || n < -1 || n > int64(len(b)-i) {
		return nil, -1
	}
	if n < 0 {
		return nil, i
	}
	end := i + int(n)
	return b[i:end:end], end
}

// decodeRecord decodes a record of a magic 2 batch, without its length. Offset and Timestamp are the deltas.
func decodeRecord(b []byte, rec *Record) error {
	ts, i := varlong(b, 1)
	delta, i := varint(b, i)
	rec.Key, i = blob(b, i)
	rec.Value, i = blob(b, i)
	n, i := varint(b, i)
	if i < 0 || n < 0 || delta < 0 {
		return fmt.Errorf("%w: a record is malformed", ErrInvalid)
	}
	rec.Headers = Headers{n: int32(n), raw: b[i:]}
	if skipHeaders(b, i, n) != len(b) {
		return fmt.Errorf("%w: a record has malformed headers", ErrInvalid)
	}
	rec.Offset, rec.Timestamp = delta, ts
	return nil
}
