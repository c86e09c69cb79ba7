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
	most    int // bytes that a batch in the making may have; 0 is no limit
}

// Legacy appends one magic 2 batch to dst that holds what a set of messages of magic 0 and 1 holds (Produce below version 3), compressed with
// codec; a codec below 0 is that of the set (compression.type=producer). It applies r as Check does, message by message. A message that
// is cut off at the end of the set is left out, as Kafka does; a header with a count of 0 says that there was no whole one and nothing was
// appended. Offsets of the set do not matter.
//
// Errors: as those of Check. Mixed magics, magic 2 and compressed sets inside compressed sets are ErrInvalid.
func (c *Converter) Legacy(dst, set []byte, r Rules, codec Codec) ([]byte, Header, error) {
	if codec < 0 {
		codec = setCodec(set)
	}
	c.most = r.MaxBytes
	if err := c.collect(set, r, codec); err != nil || c.builder.Len() == 0 {
		return dst, Header{}, err
	}
	return c.finish(dst, &r)
}

// setCodec is the codec of a set: that of the last entry that is compressed. The set is not checked yet.
func setCodec(set []byte) Codec {
	codec := None
	for len(set) > legacyAttrPos {
		size := int64(int32(binary.BigEndian.Uint32(set[LengthPos:]))) + OverheadSize
		if size < MinEntrySize || size > int64(len(set)) {
			break
		}
		if c := Codec(set[legacyAttrPos] & 7); c != None {
			codec = c
		}
		set = set[size:]
	}
	return codec
}

// Collect is Legacy for a topic that stores messages of magic 0 and 1 itself: the batch has no limit of size, which holds for what
// Downgrader.Set makes of it, and is compressed quickly if the set is compressed. It returns the codec of the set too.
func (c *Converter) Collect(dst, set []byte, r Rules) ([]byte, Codec, error) {
	source, between := setCodec(set), None
	if source != None {
		between = Snappy // so that it takes no more memory than it came in
	}
	c.most = 0
	if err := c.collect(set, r, between); err != nil || c.builder.Len() == 0 {
		return dst, source, err
	}
	r.MaxBytes = 0
	out, _, err := c.finish(dst, &r)
	return out, source, err
}

// Split is Legacy for a set that is larger as one batch than max.message.bytes although each message of it is not: producers of old formats put
// as many messages into a set as they like. It appends several batches, one after the other, with offsets from 0 on. A compressed set, which
// counts as one message, is ErrTooLarge.
func (c *Converter) Split(dst, set []byte, r Rules, codec Codec) ([]byte, error) {
	if setCodec(set) != None {
		return dst, fmt.Errorf("%w: compressed set is larger than max.message.bytes once converted", ErrTooLarge)
	}
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

// collect takes the records of the set into the builder, which compresses them.
func (c *Converter) collect(set []byte, r Rules, codec Codec) error {
	c.pass = pass{rules: r, maxTimestamp: -1}
	c.builder.Reset(Options{LeaderEpoch: -1, Codec: codec})
	c.builder.pack()
	defer c.reader.Release()
	limit := r.MaxDecompressed
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	if err := c.messages(set, limit); err != nil {
		return err
	}
	return c.pass.refusal()
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

// messages adds the records of all whole entries.
func (c *Converter) messages(set []byte, limit int64) error {
	magic := byte(0)
	for first := true; len(set) >= OverheadSize; first = false {
		if size := int32(binary.BigEndian.Uint32(set[LengthPos:])); size < minMessageV0 {
			return fmt.Errorf("%w: message of %d bytes", ErrCorrupt, size)
		}
		if len(set) <= MagicPos {
			break
		}
		size, err := EntrySize(set)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if size > len(set) {
			break
		}
		if first {
			magic = set[MagicPos]
		}
		if set[MagicPos] != magic {
			return fmt.Errorf("%w: message of magic %d in a set of magic %d", ErrInvalid, set[MagicPos], magic)
		}
		if err := c.message(set[:size], limit); err != nil {
			return err
		}
		set = set[size:]
	}
	return nil
}

// message adds the records of one whole entry.
func (c *Converter) message(b []byte, limit int64) error {
	r := &c.pass.rules
	if b[MagicPos] > 1 {
		return fmt.Errorf("%w: %w: %d in a set of magic 0 and 1", ErrInvalid, ErrMagic, b[MagicPos])
	}
	if r.MaxBytes > 0 && len(b) > r.MaxBytes {
		return fmt.Errorf("%w: %d bytes, max.message.bytes is %d", ErrTooLarge, len(b), r.MaxBytes)
	}
	if err := Verify(b); err != nil {
		return err
	}
	c.pass.claimed = b[MagicPos] == 1 && b[legacyAttrPos]&AttrLogAppendTime != 0 &&
		(r.LogAppendTime || int64(binary.BigEndian.Uint64(b[legacyTimePos:])) == -1)
	if err := c.reader.Reset(b, limit); err != nil {
		return err
	}
	c.reader.legacy.verify = true
	var rec Record
	for c.reader.Next(&rec) {
		if err := c.pass.note(rec.Timestamp, c.pass.next, rec.Key == nil); err != nil {
			return err
		}
		c.builder.Append(rec.Timestamp, rec.Key, rec.Value)
		if int64(c.builder.Size()) > limit {
			return fmt.Errorf("%w: it inflates to more than the limit", ErrTooLarge)
		}
		if c.most > 0 && HeaderSize+c.builder.held() > c.most {
			return fmt.Errorf("%w: more than %d bytes once converted, as max.message.bytes has it", ErrTooLarge, c.most)
		}
	}
	return c.reader.Err()
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
	start := len(dst)
	out := append(dst, b[:HeaderSize]...)
	if limit <= 0 {
		limit = maxBatch
	}
	if out, err = c.recode(out, b[HeaderSize:], &h, codec, recodeLimits{start + limit, maxDecompressed}); err != nil {
		return dst, err
	}
	size := len(out) - start
	binary.BigEndian.PutUint32(out[start+LengthPos:], uint32(size-OverheadSize))
	binary.BigEndian.PutUint16(out[start+AttributesPos:], uint16(h.Attributes&^7)|uint16(codec))
	setCRC(out[start:])
	return out, nil
}

// recodeLimits bound recode: the length of what it returns, and what the body inflates to.
type recodeLimits struct {
	end      int
	inflated int64
}

// recode appends the records of body, compressed with another codec, to out. It holds no more of them than their compressed form.
func (c *Converter) recode(out, body []byte, h *Header, codec Codec, most recodeLimits) ([]byte, error) {
	if most.inflated <= 0 {
		most.inflated = DefaultMaxDecompressed
	}
	in, err := c.reader.inflater.open(h.Codec(), body, 2)
	if err != nil {
		return nil, err
	}
	defer c.reader.Release()
	to := &stream{out: out}
	w, err := c.builder.deflater.open(codec, to)
	if err != nil {
		return nil, err
	}
	window := &c.reader.window
	window.reset(in, most.inflated)
	for {
		end, err := window.atEnd()
		if err == nil && end {
			err = w.Close()
		} else if err == nil {
			_, err = w.Write(window.buf[window.pos:window.end])
			window.pos = window.end
		}
		switch {
		case err != nil:
			return nil, err
		case len(to.out) > most.end:
			return nil, fmt.Errorf("%w: more than max.message.bytes once compressed again", ErrTooLarge)
		case end:
			return to.out, nil
		}
	}
}

// Release lets go of scratch that is too large to keep. It is only needed before a Converter is put away.
func (c *Converter) Release() {
	c.reader.Release()
	c.pass = pass{}
	if cap(c.builder.body) > keepScratch {
		c.builder.body = nil
	}
	c.builder.packer = nil
	if cap(c.builder.packed.out) > keepScratch {
		c.builder.packed.out = nil
	}
	if cap(c.builder.scratch) > keepScratch {
		c.builder.scratch = nil
	}
}
