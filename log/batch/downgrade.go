package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Downgrader makes messages of magic 0 and 1 of what is stored in a newer format, for clients that read no other. It reuses its scratch; the
// zero value is ready. It is for one goroutine at a time. Beside what it appends to its memory does not grow with what an entry inflates to.
//
//   - An entry that is old enough is copied. Control batches are left out, headers of records too.
//   - Records that are not compressed become messages of their own. Those below the fetch offset are left out.
//   - Compressed records become one message set in one wrapper, compressed with the same codec, with the offset of the last of them (KIP-31).
//     The offsets inside are absolute in magic 0, in magic 1 relative to the first record.
type Downgrader struct {
	reader   Reader
	deflater deflater
	message  []byte
	stream   stream

	copied  []byte // an entry that is old enough
	strict  bool   // refuse headers instead of leaving them out
	magic   int8
	from    int64
	records int
}

// Start begins with the whole entry b, which must not change until Next is done with it, for a client that reads magic (0 or 1) at most and
// asked for offset from. The checksum of b is not checked. Errors: ErrCodec for zstd, which came with magic 2, and those of Reader.
func (d *Downgrader) Start(b []byte, magic int8, from int64) error {
	d.magic, d.from, d.records, d.copied, d.strict = magic, from, 0, nil, false
	d.deflater.fast = true
	size, err := EntrySize(b)
	if err != nil {
		return err
	}
	if size > len(b) {
		return fmt.Errorf("%w: %d bytes of %d", ErrShort, len(b), size)
	}
	if int8(b[MagicPos]) <= magic {
		d.reader.Release()
		d.copied = b[:size]
		return nil
	}
	if b[MagicPos] == 2 {
		h, err := ReadHeader(b)
		switch {
		case err != nil:
			return err
		case h.Control():
			d.reader.Release()
			return nil
		case h.Codec() == Zstd:
			return fmt.Errorf("%w: zstd cannot be read by clients of magic %d", ErrCodec, magic)
		}
	}
	return d.reader.Reset(b, 0)
}

// Next appends what comes next of the entry, until dst has limit bytes or more, or the entry is done. A wrapper is not divided. After an error
// nothing was appended.
func (d *Downgrader) Next(dst []byte, limit int) (out []byte, done bool, err error) {
	if d.copied != nil {
		return append(dst, d.copied...), true, nil
	}
	if codec := d.reader.header.Codec(); codec != None {
		out, err := d.wrap(dst, codec)
		return out, true, err
	}
	return d.plain(dst, limit)
}

// plain appends messages that are not compressed.
func (d *Downgrader) plain(dst []byte, limit int) (out []byte, done bool, err error) {
	out = dst
	var rec Record
	for d.reader.Next(&rec) {
		if rec.Offset < d.from {
			continue
		}
		if d.strict && rec.Headers.n > 0 {
			return dst, true, errHeaders
		}
		out = d.append(out, rec.Offset, &rec)
		d.records++
		if len(out) >= limit {
			return out, false, nil
		}
	}
	if err := d.reader.Err(); err != nil {
		return dst, true, err
	}
	return out, true, nil
}

// Records is how many records of the entry were converted so far; none are of one that is copied.
func (d *Downgrader) Records() int { return d.records }

// errHeaders is a record that a topic cannot store.
var errHeaders = fmt.Errorf("%w: records with headers need message.format.version 0.11 or later", ErrFormat)

// Set appends to dst what a topic that stores magic 0 or 1 keeps of b, a batch of magic 2 that Check has accepted or Converter.Collect made:
// messages one by one, or in one wrapper of a codec, at the base offset of b.
//
// Errors: ErrFormat for what these formats do not have: headers, idempotent producers, transactions; ErrCodec for zstd; ErrTooLarge.
func (d *Downgrader) Set(dst, b []byte, o SetOptions) ([]byte, error) {
	h, err := ReadHeader(b)
	switch {
	case err != nil:
		return dst, err
	case h.ProducerID >= 0:
		return dst, fmt.Errorf("%w: idempotent and transactional producers need message.format.version 0.11 or later", ErrFormat)
	case o.Codec == Zstd:
		return dst, fmt.Errorf("%w: zstd needs message.format.version 0.11 or later", ErrCodec)
	}
	d.magic, d.from, d.records, d.copied, d.strict = o.Magic, math.MinInt64, 0, nil, true
	d.deflater.fast = false
	defer d.reader.Release()
	if err := d.reader.Reset(b, o.MaxDecompressed); err != nil {
		return dst, err
	}
	out := dst
	if o.Codec == None {
		out, _, err = d.plain(dst, math.MaxInt)
	} else {
		out, err = d.wrap(dst, o.Codec)
	}
	if err != nil {
		return dst, err
	}
	for set := out[len(dst):]; len(set) > 0; {
		size, err := EntrySize(set)
		if err != nil {
			return dst, err
		}
		if o.MaxBytes > 0 && size > o.MaxBytes {
			return dst, fmt.Errorf("%w: %d bytes once converted, max.message.bytes is %d", ErrTooLarge, size, o.MaxBytes)
		}
		set = set[size:]
	}
	return out, nil
}

// ShiftSet adds base to the offset of each entry of set, which Set made at base offset 0: they lie outside the checksums. Only in wrappers of
// magic 0 that is not enough.
func ShiftSet(set []byte, base int64) error {
	for len(set) > 0 {
		size, err := EntrySize(set)
		if err != nil || size > len(set) {
			return fmt.Errorf("%w: set to shift", ErrShort)
		}
		binary.BigEndian.PutUint64(set, binary.BigEndian.Uint64(set)+uint64(base))
		set = set[size:]
	}
	return nil
}

// SetOptions say how Set stores messages.
type SetOptions struct {
	Magic           int8 // 0 or 1
	Codec           Codec
	MaxBytes        int   // max.message.bytes, of each entry; 0 is no limit
	MaxDecompressed int64 // bytes that the batch may inflate to; 0 is DefaultMaxDecompressed
}

// append appends a message that is not compressed.
func (d *Downgrader) append(dst []byte, offset int64, rec *Record) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(d.magic), d.attributes())
	if d.magic > 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(rec.Timestamp))
	}
	dst = appendLegacyBlob(dst, rec.Key)
	dst = appendLegacyBlob(dst, rec.Value)
	seal(dst[start:])
	return dst
}

// attributes are those of a message that is not compressed: magic 1 has the timestamp type.
func (d *Downgrader) attributes() byte {
	if d.magic == 0 {
		return 0
	}
	return byte(d.reader.header.Attributes) & AttrLogAppendTime
}

func appendLegacyBlob(dst, v []byte) []byte {
	if v == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...)
}

// seal fills in size and checksum of the message m.
func seal(m []byte) {
	binary.BigEndian.PutUint32(m[LengthPos:], uint32(len(m)-OverheadSize))
	binary.BigEndian.PutUint32(m[legacyCRCPos:], crc32.ChecksumIEEE(m[MagicPos:]))
}

// wrap appends the records of the reader in a wrapper.
func (d *Downgrader) wrap(dst []byte, codec Codec) ([]byte, error) {
	var rec Record
	if !d.reader.Next(&rec) {
		return dst, d.reader.Err()
	}
	out := append(dst, make([]byte, legacyTimePos)...)
	if d.magic > 0 {
		out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	out = append(out, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0) // no key, and the size of the value
	value := len(out) - len(dst)
	d.stream.out = out
	defer func() { d.stream.out = nil }()
	last, newest, err := d.inside(codec, rec)
	if err != nil {
		return dst, err
	}
	out = d.stream.out
	m := out[len(dst):]
	if len(m) > math.MaxInt32 {
		return dst, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(m))
	}
	if codec == LZ4 && d.magic == 0 {
		breakLZ4(m[value:])
	}
	binary.BigEndian.PutUint64(m, uint64(last))
	m[MagicPos], m[legacyAttrPos] = byte(d.magic), d.attributes()|byte(codec)
	if d.magic > 0 {
		binary.BigEndian.PutUint64(m[legacyTimePos:], uint64(newest))
	}
	binary.BigEndian.PutUint32(m[value-4:], uint32(len(m)-value))
	seal(m)
	return out, nil
}

// inside writes rec and the records after it, compressed, to d.stream. It returns the last offset and the largest timestamp.
func (d *Downgrader) inside(codec Codec, rec Record) (last, newest int64, err error) {
	w, err := d.deflater.open(codec, &d.stream)
	if err != nil {
		return 0, 0, err
	}
	base := int64(0)
	if d.magic > 0 {
		base = rec.Offset
	}
	newest = -1
	for more := true; more; more = d.reader.Next(&rec) {
		if d.strict && rec.Headers.n > 0 {
			return 0, 0, errHeaders
		}
		d.message = d.append(d.message[:0], rec.Offset-base, &rec)
		if _, err := w.Write(d.message); err != nil {
			return 0, 0, err
		}
		last, newest = rec.Offset, max(newest, rec.Timestamp)
		d.records++
	}
	if err := d.reader.Err(); err != nil {
		return 0, 0, err
	}
	return last, newest, w.Close()
}

// breakLZ4 gives a frame the header checksum that Java clients before 0.10 write and demand: over the magic number too (KAFKA-3160).
func breakLZ4(frame []byte) {
	const checksumPos = 6
	frame[checksumPos] = byte(xxSum(frame[:checksumPos]) >> 8)
}

// Release lets go of scratch that is too large to keep. It is only needed before a Downgrader is put away.
func (d *Downgrader) Release() {
	d.reader.Release()
	d.copied = nil
	if cap(d.message) > keepScratch {
		d.message = nil
	}
}
