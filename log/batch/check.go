package batch

import (
	"encoding/binary"
	"fmt"
)

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
type Checker struct {
	inflater inflater
	window   window
	pass     pass
}

// Check decides if b is exactly one batch of magic 2 that a client may append under r, down to every record, and makes it ready
// to be stamped: it may rewrite the timestamp type and the max timestamp in place, with the CRC. It returns the header as it is then. b
// is not kept. After an error b is as it was.
//
// Errors: ErrInvalid, ErrCorrupt, ErrTooLarge, ErrCodec, ErrTimestamp or *RecordError (per-record reasons). Magic 0 and 1
// are ErrMagic and ErrInvalid, a magic that does not exist is ErrMagic and ErrCorrupt; a batch that is cut off is ErrShort and ErrInvalid.
func (c *Checker) Check(b []byte, r Rules) (Header, error) {
	h, err := checkFrame(b, &r)
	if err != nil {
		return h, err
	}
	if err := checkHeader(&h, &r); err != nil {
		return h, err
	}
	c.pass = pass{rules: r, base: h.BaseTimestamp, maxTimestamp: -1}
	err = c.records(b[HeaderSize:], &h, &r)
	maxTimestamp := c.pass.maxTimestamp
	if err == nil {
		err = c.pass.refusal()
	}
	c.pass = pass{}
	if err != nil {
		return h, err
	}
	rewrite(b, &h, &r, maxTimestamp)
	return h, nil
}

// checkFrame checks that b is one whole batch with a right checksum, cheapest first.
func checkFrame(b []byte, r *Rules) (Header, error) {
	if len(b) <= MagicPos {
		return Header{}, fmt.Errorf("%w: %w: %d bytes", ErrInvalid, ErrShort, len(b))
	}
	if m := int8(b[MagicPos]); m < 0 || m > 2 {
		return Header{}, fmt.Errorf("%w: %w: %d", ErrCorrupt, ErrMagic, m)
	} else if m != 2 {
		return Header{}, fmt.Errorf("%w: %w: %d, need 2", ErrInvalid, ErrMagic, m)
	}
	if size := int32(binary.BigEndian.Uint32(b[LengthPos:])); size < HeaderSize-OverheadSize {
		return Header{}, fmt.Errorf("%w: length %d is below the header's %d", ErrCorrupt, size, HeaderSize-OverheadSize)
	} else if int64(size)+OverheadSize > int64(len(b)) {
		return Header{}, fmt.Errorf("%w: %w: %d bytes of %d", ErrInvalid, ErrShort, len(b), int64(size)+OverheadSize)
	}
	h, err := ReadHeader(b)
	switch {
	case err != nil:
		return h, err
	case h.Size() != len(b):
		return h, fmt.Errorf("%w: %d bytes follow the batch; one batch per partition is allowed", ErrInvalid, len(b)-h.Size())
	case h.BaseOffset != 0:
		return h, fmt.Errorf("%w: base offset is %d, must be 0 from a client", ErrInvalid, h.BaseOffset)
	case r.MaxBytes > 0 && len(b) > r.MaxBytes:
		return h, fmt.Errorf("%w: %d bytes, max.message.bytes is %d", ErrTooLarge, len(b), r.MaxBytes)
	}
	if crc := castagnoli(b[AttributesPos:]); crc != h.CRC {
		return h, fmt.Errorf("%w: crc is %08x, the bytes have %08x", ErrCorrupt, h.CRC, crc)
	}
	return h, nil
}

// checkHeader checks the fields that a client may set.
func checkHeader(h *Header, r *Rules) error {
	switch {
	case h.Codec() > Zstd:
		return fmt.Errorf("%w: %d", ErrCodec, h.Codec())
	case h.Codec() == Zstd && r.NoZstd:
		return fmt.Errorf("%w: zstd needs Produce version 7", ErrCodec)
	case h.Count < 1:
		return fmt.Errorf("%w: record count is %d", ErrInvalid, h.Count)
	case h.LastDelta < 0 || int64(h.LastDelta)+1 != int64(h.Count):
		return fmt.Errorf("%w: record count is %d, last offset delta %d", ErrInvalid, h.Count, h.LastDelta)
	case h.Control():
		return fmt.Errorf("%w: control batch from a client", ErrInvalid)
	case h.Attributes&AttrDeleteHorizon != 0:
		return fmt.Errorf("%w: delete horizon from a client", ErrInvalid)
	case h.ProducerID >= 0 && (h.BaseSequence < 0 || h.ProducerEpoch < 0):
		return fmt.Errorf("%w: producer %d has epoch %d and base sequence %d", ErrInvalid, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	case h.ProducerID < 0 && h.Transactional():
		return fmt.Errorf("%w: transactional batch without producer id", ErrInvalid)
	case h.Attributes&AttrLogAppendTime != 0 && (r.LogAppendTime || h.MaxTimestamp == -1):
		return fmt.Errorf("%w: the producer has set the timestamp type to LogAppendTime", ErrTimestamp)
	}
	return nil
}

// records checks the body.
func (c *Checker) records(body []byte, h *Header, r *Rules) error {
	if h.Codec() == None {
		return c.pass.plain(body, int(h.Count))
	}
	stream, err := c.inflater.open(h.Codec(), body, 2)
	if err != nil {
		return err
	}
	defer c.inflater.release()
	limit := r.MaxDecompressed
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	c.window.reset(stream, limit)
	defer c.window.release()
	return c.pass.inflated(&c.window, int(h.Count))
}

// rewrite sets the fields that the broker decides and the CRC covers. Nearly always there is nothing to do.
func rewrite(b []byte, h *Header, r *Rules, maxTimestamp int64) {
	attributes := h.Attributes &^ AttrLogAppendTime
	if r.LogAppendTime {
		attributes |= AttrLogAppendTime
		maxTimestamp = r.Now
	}
	if attributes == h.Attributes && maxTimestamp == h.MaxTimestamp {
		return
	}
	attributes &= attrKnown // as Kafka does when it rewrites
	h.Attributes, h.MaxTimestamp = attributes, maxTimestamp
	binary.BigEndian.PutUint16(b[AttributesPos:], uint16(attributes))
	binary.BigEndian.PutUint64(b[MaxTimePos:], uint64(maxTimestamp))
	h.CRC = setCRC(b)
}
