package batch

import "fmt"

// Reader iterates over the records of an entry of any magic, inflating as it goes. It reuses its scratch; the zero value is ready. It is
// for one goroutine at a time.
type Reader struct {
	inflater inflater
	window   window
	header   Header
	body     []byte // rest of the records of a magic 2 batch that is not compressed
	left     int    // records to come, magic 2
	raw      []byte // the last record as it is stored, for Rebuilder
	plain    bool
	legacy   legacy
	err      error
}

// Reset starts on the whole entry b, which must not change while it is read. The checksum is not checked (Verify). maxDecompressed bounds
// what the entry may inflate to, in bytes; 0 is DefaultMaxDecompressed.
func (r *Reader) Reset(b []byte, maxDecompressed int64) error {
	r.Release()
	r.err = r.reset(b, maxDecompressed)
	return r.err
}

// Release lets go of the entry and of large scratch. It is only needed before a Reader is put away.
func (r *Reader) Release() {
	r.inflater.release()
	r.window.release()
	r.header, r.body, r.left, r.raw, r.plain, r.legacy, r.err = Header{}, nil, 0, nil, false, legacy{}, nil
}

func (r *Reader) reset(b []byte, limit int64) error {
	size, err := EntrySize(b)
	if err != nil {
		return err
	}
	if size > len(b) {
		return fmt.Errorf("%w: %d bytes of %d", ErrShort, len(b), size)
	}
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	b = b[:size]
	if b[MagicPos] != 2 {
		return r.resetLegacy(b, limit)
	}
	if r.header, err = ReadHeader(b); err != nil {
		return err
	}
	if r.header.Count < 0 {
		return fmt.Errorf("%w: record count is %d", ErrInvalid, r.header.Count)
	}
	r.left = int(r.header.Count)
	r.body = b[HeaderSize:]
	r.plain = r.header.Codec() == None
	if r.plain || r.left == 0 {
		return nil
	}
	stream, err := r.inflater.open(r.header.Codec(), r.body, 2)
	if err != nil {
		return err
	}
	r.window.reset(stream, limit)
	return nil
}

// Header is the header of a magic 2 batch; for other entries only Magic, BaseOffset, MaxTimestamp and Attributes are set.
func (r *Reader) Header() Header { return r.header }

// Next reads the next record into rec. It reports false at the end and on damage; Err tells them apart.
func (r *Reader) Next(rec *Record) bool {
	if r.err != nil {
		return false
	}
	more := false
	if r.header.Magic == 2 {
		more, r.err = r.next(rec)
	} else {
		more, r.err = r.nextLegacy(rec)
	}
	return more && r.err == nil
}

// Err is what ended Next early: ErrCorrupt, ErrInvalid, ErrTooLarge or ErrCodec, or nil.
func (r *Reader) Err() error { return r.err }

func (r *Reader) next(rec *Record) (bool, error) {
	if r.left == 0 {
		return false, nil
	}
	r.left--
	b, err := r.take()
	if err != nil {
		return false, err
	}
	if err := decodeRecord(b, rec); err != nil {
		return false, err
	}
	r.raw = b
	rec.Offset += r.header.BaseOffset
	rec.Timestamp += r.header.BaseTimestamp
	if r.header.Attributes&AttrLogAppendTime != 0 {
		rec.Timestamp = r.header.MaxTimestamp
	}
	return true, nil
}

// take cuts off the next record of a magic 2 batch.
func (r *Reader) take() ([]byte, error) {
	if !r.plain {
		size, _, err := r.window.varint(5)
		if err != nil {
			return nil, err
		}
		if size < 0 {
			return nil, fmt.Errorf("%w: a record has length %d", ErrInvalid, size)
		}
		return r.window.take(int(size))
	}
	size, i := varint(r.body, 0)
	if i < 0 || size < 0 || size > int64(len(r.body)-i) {
		return nil, fmt.Errorf("%w: a record has length %d, %d bytes are left", ErrInvalid, size, len(r.body))
	}
	end := i + int(size)
	b := r.body[i:end:end]
	r.body = r.body[end:]
	return b, nil
}

// Search finds the first record of the whole entry b whose timestamp is at least ts and whose offset is at least from. With ts the entry's
// max timestamp it finds the record that has it.
func (r *Reader) Search(b []byte, ts, from int64) (offset, timestamp int64, ok bool, err error) {
	if err := r.Reset(b, 0); err != nil {
		return 0, 0, false, err
	}
	var rec Record
	for r.Next(&rec) {
		if rec.Timestamp >= ts && rec.Offset >= from {
			return rec.Offset, rec.Timestamp, true, nil
		}
	}
	return 0, 0, false, r.err
}
