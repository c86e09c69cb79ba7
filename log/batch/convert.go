package batch

import (
	"encoding/binary"
	"fmt"
)

// Converter makes batches of magic 2 from what cannot be stored as a client sent it. It reuses its scratch; the zero value is ready. It is for
// one goroutine at a time.
type Converter struct {
	reader  Reader
	builder Builder
	pass    pass
}

// Legacy appends one magic 2 batch to dst that holds what a set of messages of magic 0 and 1 holds (Produce below version 3), compressed with
// codec; a codec below 0 is that of the set (compression.type=producer). It applies r as Check does, message by message. A message that
// is cut off at the end of the set is left out, as Kafka does; a header with a count of 0 says that there was no whole one and nothing was
// appended. Offsets of the set do not matter.
//
// Errors: as those of Check. Mixed magics, magic 2 and compressed sets inside compressed sets are ErrInvalid.
func (c *Converter) Legacy(dst, set []byte, r Rules, codec Codec) ([]byte, Header, error) {
	source, err := c.collect(set, r)
	if err != nil || c.builder.Len() == 0 {
		return dst, Header{}, err
	}
	if codec < 0 {
		codec = source
	}
	c.builder.options.Codec = codec
	return c.finish(dst, &r)
}

// Collect is Legacy for a topic that stores messages of magic 0 and 1 itself: the batch is not compressed and has no limit of size, which holds
// for what Downgrader.Set makes of it. It returns the codec of the set too.
func (c *Converter) Collect(dst, set []byte, r Rules) ([]byte, Codec, error) {
	source, err := c.collect(set, r)
	if err != nil || c.builder.Len() == 0 {
		return dst, source, err
	}
	r.MaxBytes = 0
	out, _, err := c.finish(dst, &r)
	return out, source, err
}

// Split is Legacy for a set that is larger as one batch than max.message.bytes although each message of it is not: producers of old formats put
// as many messages into a set as they like. It appends several batches, one after the other, with offsets from 0 on.
func (c *Converter) Split(dst, set []byte, r Rules, codec Codec) ([]byte, error) {
	whole, source, err := c.Collect(nil, set, r)
	if err != nil || len(whole) == 0 {
		return dst, err
	}
	if codec < 0 {
		codec = source
	}
	defer c.reader.Release()
	if err := c.reader.Reset(whole, 0); err != nil {
		return dst, err
	}
	room := r.MaxBytes
	if codec != None {
		room -= room/64 + 100 // what does not compress grows
	}
	out, next := dst, int64(0)
	var rec Record
	for more := c.reader.Next(&rec); more; {
		c.builder.Reset(Options{BaseOffset: next, LeaderEpoch: -1, Codec: codec})
		for fits := true; more && fits; {
			c.builder.AppendRecord(&rec)
			next++
			more = c.reader.Next(&rec)
			fits = HeaderSize+c.builder.Size()+maxRecordOverhead+len(rec.Key)+len(rec.Value) <= room
		}
		start := len(out)
		if out, err = c.builder.Finish(out); err != nil {
			return dst, err
		}
		h, err := ReadHeader(out[start:])
		if err != nil {
			return dst, err
		}
		if h.Size() > r.MaxBytes {
			return dst, fmt.Errorf("%w: %d bytes once converted, max.message.bytes is %d", ErrTooLarge, h.Size(), r.MaxBytes)
		}
		rewrite(out[start:], &h, &r, h.MaxTimestamp)
	}
	if err := c.reader.Err(); err != nil {
		return dst, err
	}
	return out, nil
}

// maxRecordOverhead is what a record without headers takes at most beside key and value.
const maxRecordOverhead = 5 + 1 + 10 + 5 + 5 + 5 + 1

// collect takes the records of the set into the builder.
func (c *Converter) collect(set []byte, r Rules) (Codec, error) {
	c.pass = pass{rules: r, maxTimestamp: -1}
	c.builder.Reset(Options{LeaderEpoch: -1})
	defer c.reader.Release()
	limit := r.MaxDecompressed
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	source, err := c.messages(set, limit)
	if err == nil {
		err = c.pass.refusal()
	}
	return source, err
}

func (c *Converter) finish(dst []byte, r *Rules) ([]byte, Header, error) {
	start := len(dst)
	out, err := c.builder.Finish(dst)
	if err != nil {
		return dst, Header{}, err
	}
	if size := len(out) - start; r.MaxBytes > 0 && size > r.MaxBytes {
		return dst, Header{}, fmt.Errorf("%w: %d bytes once converted, max.message.bytes is %d", ErrTooLarge, size, r.MaxBytes)
	}
	h, err := ReadHeader(out[start:])
	if err != nil {
		return dst, h, err
	}
	rewrite(out[start:], &h, r, c.pass.maxTimestamp)
	return out, h, nil
}

// messages adds the records of all whole entries. It returns the codec of the last that is compressed.
func (c *Converter) messages(set []byte, limit int64) (Codec, error) {
	source, magic := None, byte(0)
	for first := true; len(set) >= OverheadSize; first = false {
		if size := int32(binary.BigEndian.Uint32(set[LengthPos:])); size < minMessageV0 {
			return source, fmt.Errorf("%w: message of %d bytes", ErrCorrupt, size)
		}
		if len(set) <= MagicPos {
			break
		}
		size, err := EntrySize(set)
		if err != nil {
			return source, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if size > len(set) {
			break
		}
		if first {
			magic = set[MagicPos]
		}
		if set[MagicPos] != magic {
			return source, fmt.Errorf("%w: message of magic %d in a set of magic %d", ErrInvalid, set[MagicPos], magic)
		}
		used, err := c.message(set[:size], limit)
		if err != nil {
			return source, err
		}
		if used != None {
			source = used
		}
		set = set[size:]
	}
	return source, nil
}

// message adds the records of one whole entry. It returns the entry's codec.
func (c *Converter) message(b []byte, limit int64) (Codec, error) {
	r := &c.pass.rules
	if b[MagicPos] > 1 {
		return None, fmt.Errorf("%w: %w: %d in a set of magic 0 and 1", ErrInvalid, ErrMagic, b[MagicPos])
	}
	if r.MaxBytes > 0 && len(b) > r.MaxBytes {
		return None, fmt.Errorf("%w: %d bytes, max.message.bytes is %d", ErrTooLarge, len(b), r.MaxBytes)
	}
	if err := Verify(b); err != nil {
		return None, err
	}
	c.pass.claimed = b[MagicPos] == 1 && b[legacyAttrPos]&AttrLogAppendTime != 0 &&
		(r.LogAppendTime || int64(binary.BigEndian.Uint64(b[legacyTimePos:])) == -1)
	if err := c.reader.Reset(b, limit); err != nil {
		return None, err
	}
	c.reader.legacy.verify = true
	var rec Record
	for c.reader.Next(&rec) {
		if err := c.pass.note(rec.Timestamp, c.pass.next, rec.Key == nil); err != nil {
			return None, err
		}
		c.builder.Append(rec.Timestamp, rec.Key, rec.Value)
		if int64(c.builder.Size()) > limit {
			return None, fmt.Errorf("%w: it inflates to more than the limit", ErrTooLarge)
		}
	}
	h := c.reader.Header()
	return h.Codec(), c.reader.Err()
}

// Recompress appends b, a magic 2 batch that Check has accepted, to dst, compressed with codec (compression.type). limit bounds the result
// in bytes (max.message.bytes; 0 is none) and maxDecompressed what b may inflate to (0 is DefaultMaxDecompressed). Records and all
// of the header but the codec stay as they are.
func (c *Converter) Recompress(dst, b []byte, codec Codec, limit int, maxDecompressed int64) ([]byte, error) {
	h, err := ReadHeader(b)
	if err != nil {
		return dst, err
	}
	if h.Size() != len(b) {
		return dst, fmt.Errorf("%w: %d bytes of %d", ErrShort, len(b), h.Size())
	}
	body, err := c.inflate(b[HeaderSize:], h.Codec(), maxDecompressed)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := append(dst, b[:HeaderSize]...)
	if out, err = c.builder.deflater.append(out, codec, body); err != nil {
		return dst, err
	}
	size := len(out) - start
	if limit > 0 && size > limit || size > maxBatch {
		return dst, fmt.Errorf("%w: %d bytes once compressed again, max.message.bytes is %d", ErrTooLarge, size, limit)
	}
	binary.BigEndian.PutUint32(out[start+LengthPos:], uint32(size-OverheadSize))
	binary.BigEndian.PutUint16(out[start+AttributesPos:], uint16(h.Attributes&^7)|uint16(codec))
	setCRC(out[start:])
	return out, nil
}

// inflate returns the whole body, in scratch.
func (c *Converter) inflate(body []byte, codec Codec, limit int64) ([]byte, error) {
	if codec == None {
		return body, nil
	}
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	stream, err := c.reader.inflater.open(codec, body, 2)
	if err != nil {
		return nil, err
	}
	defer c.reader.Release()
	w := &c.reader.window
	w.reset(stream, limit)
	out := c.builder.body[:0]
	for {
		end, err := w.atEnd()
		if err != nil {
			return nil, err
		}
		if end {
			c.builder.body = out
			return out, nil
		}
		out = append(out, w.buf[w.pos:w.end]...)
		w.pos = w.end
	}
}

// Release lets go of scratch that is too large to keep. It is only needed before a Converter is put away.
func (c *Converter) Release() {
	c.reader.Release()
	c.pass = pass{}
	if cap(c.builder.body) > keepScratch {
		c.builder.body = nil
	}
	if cap(c.builder.scratch) > keepScratch {
		c.builder.scratch = nil
	}
}
