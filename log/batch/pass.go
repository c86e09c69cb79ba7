package batch

import (
	"fmt"
	"math"
	"slices"
)

// pass is one walk over the records of a batch.
type pass struct {
	rules        Rules
	base         int64 // base timestamp
	next         int64 // offset delta of the next record
	maxTimestamp int64
	bad          []BadRecord
	badTimestamp bool
	claimed      bool // the producer says that the broker set the timestamps
}

// plain walks over records that are not compressed.
func (p *pass) plain(body []byte, count int) error {
	at := 0
	for range count {
		size, i := varint(body, at)
		if i < 0 || size < 0 || size > int64(len(body)-i) {
			return fmt.Errorf("%w: record %d has length %d, %d bytes are left", ErrInvalid, p.next, size, len(body)-at)
		}
		at = i + int(size)
		if err := p.record(body[i:at]); err != nil {
			return err
		}
	}
	if at != len(body) {
		return fmt.Errorf("%w: %d bytes follow the last record", ErrInvalid, len(body)-at)
	}
	return nil
}

// record checks one record, without its length.
func (p *pass) record(rec []byte) error {
	ts, i := varlong(rec, 1)
	delta, i := varint(rec, i)
	key, i := varint(rec, i)
	if i < 0 || key < -1 || key > int64(len(rec)-i) {
		return p.malformed("key")
	}
	i += int(max(key, 0))
	value, i := varint(rec, i)
	if i < 0 || value < -1 || value > int64(len(rec)-i) {
		return p.malformed("value")
	}
	i += int(max(value, 0))
	headers, i := varint(rec, i)
	if i < 0 || headers < 0 {
		return p.malformed("header count")
	}
	if headers > 0 {
		i = skipHeaders(rec, i, headers)
	}
	if i != len(rec) {
		return p.malformed("length or headers")
	}
	return p.note(ts, delta, key < 0)
}

// skipHeaders returns the index after n headers that start at b[i:], or -1.
func skipHeaders(b []byte, i int, n int64) int {
	for ; n > 0; n-- {
		key, k := varint(b, i)
		if k < 0 || key < 0 || key > int64(len(b)-k) {
			return -1
		}
		value, v := varint(b, k+int(key))
		if v < 0 || value < -1 || value > int64(len(b)-v) {
			return -1
		}
		i = v + int(max(value, 0))
	}
	return i
}

func (p *pass) malformed(what string) error {
	return fmt.Errorf("%w: record %d has a bad %s", ErrInvalid, p.next, what)
}

// note checks what a record says of itself.
func (p *pass) note(tsDelta, offsetDelta int64, noKey bool) error {
	if offsetDelta != p.next {
		return fmt.Errorf("%w: record %d has offset delta %d", ErrInvalid, p.next, offsetDelta)
	}
	ts := p.base + tsDelta
	if ts > p.maxTimestamp {
		p.maxTimestamp = ts
	}
	switch {
	case noKey && p.rules.RequireKey:
		p.refuse("Compacted topic cannot accept message without key.")
	case p.claimed:
		p.badTimestamp = true
		p.refuse("The producer has set the timestamp type to LogAppendTime.")
	case !p.rules.LogAppendTime && p.outOfRange(ts):
		p.badTimestamp = true
		p.refuseTimestamp(ts)
	}
	p.next++
	return nil
}

func (p *pass) outOfRange(ts int64) bool {
	if ts == -1 {
		return false
	}
	r := &p.rules
	if ts <= r.Now {
		before := r.Now - ts
		return (before > r.BeforeMax || before < 0) && r.BeforeMax != math.MaxInt64
	}
	after := ts - r.Now
	return (after > r.AfterMax || after < 0) && r.AfterMax != math.MaxInt64
}

func (p *pass) refuseTimestamp(ts int64) {
	if len(p.bad) == MaxRecordErrors {
		return
	}
	r := &p.rules
	p.refuse(fmt.Sprintf("Timestamp %d is out of range. The timestamp should be within [%d, %d].", ts,
		saturate(r.Now, -r.BeforeMax), saturate(r.Now, r.AfterMax)))
}

// saturate is a+b within int64; a is not negative.
func saturate(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (p *pass) refuse(message string) {
	if len(p.bad) < MaxRecordErrors {
		p.bad = append(p.bad, BadRecord{Index: int32(p.next), Message: message})
	}
}

// refusal is the verdict on records that are well formed.
func (p *pass) refusal() error {
	if len(p.bad) == 0 {
		return nil
	}
	err := ErrInvalid
	if p.badTimestamp {
		err = ErrTimestamp
	}
	return &RecordError{Err: err, Records: slices.Clip(p.bad)}
}

// inflated walks over records as they are inflated.
func (p *pass) inflated(w *window, count int) error {
	for range count {
		size, _, err := w.varint(5)
		if err != nil {
			return err
		}
		if size < 0 {
			return p.malformed("length")
		}
		if size <= windowSize {
			rec, err := w.take(int(size))
			if err != nil {
				return err
			}
			err = p.record(rec)
			if err != nil {
				return err
			}
			continue
		}
		if err := p.large(w, size); err != nil {
			return err
		}
	}
	end, err := w.atEnd()
	if err != nil {
		return err
	}
	if !end {
		return fmt.Errorf("%w: data follows the last record", ErrInvalid)
	}
	return nil
}

// large checks a record of size bytes that is larger than the window, field by field.
func (p *pass) large(w *window, size int64) error {
	f := fields{w: w, left: size}
	f.skip(1) // attributes
	ts := f.varint(10)
	delta := f.varint(5)
	key := f.blob(-1)
	f.blob(-1)
	headers := f.varint(5)
	if headers < 0 {
		f.fail(p.malformed("header count"))
	}
	for ; headers > 0 && f.err == nil; headers-- {
		f.blob(0)
		f.blob(-1)
	}
	if f.err == nil && f.left != 0 {
		f.fail(p.malformed("length or headers"))
	}
	if f.err != nil {
		return f.err
	}
	return p.note(ts, delta, key < 0)
}

// fields reads the fields of one record of known size. After the first error it does nothing.
type fields struct {
	w    *window
	left int64
	err  error
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) varint(most int) int64 {
	if f.err != nil {
		return 0
	}
	v, size, err := f.w.varint(most)
	f.left -= int64(size)
	if err == nil && f.left < 0 {
		err = fmt.Errorf("%w: record is longer than its length", ErrInvalid)
	}
	f.err = err
	return v
}

func (f *fields) skip(n int64) {
	if f.err != nil {
		return
	}
	f.left -= n
	if f.left < 0 {
		f.err = fmt.Errorf("%w: record is longer than its length", ErrInvalid)
		return
	}
	f.err = f.w.skip(n)
}

// blob passes over a length of at least least and so many bytes, and returns the length.
func (f *fields) blob(least int64) int64 {
	n := f.varint(5)
	if f.err == nil && n < least {
		f.fail(fmt.Errorf("%w: record has a field of length %d", ErrInvalid, n))
	}
	f.skip(max(n, 0))
	return n
}
