package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// legacy is the state of a Reader in an entry of magic 0 or 1.
type legacy struct {
	entry   []byte // not compressed, not read yet
	wrapped bool   // entry is a wrapper of compressed messages
	shift   int64  // from the offset inside a wrapper to the absolute one
	verify  bool   // check the checksums of messages inside a wrapper
	some    bool   // a message was read
}

// message is a message of magic 0 or 1 without its overhead.
type message struct {
	magic      int8
	attributes int8
	timestamp  int64
	key, value []byte
}

func decodeMessage(b []byte) (m message, err error) {
	const magicPos, attrPos, timePos = MagicPos - OverheadSize, legacyAttrPos - OverheadSize, legacyTimePos - OverheadSize
	if len(b) < minMessageV0 {
		return m, fmt.Errorf("%w: message of %d bytes", ErrInvalid, len(b))
	}
	m = message{magic: int8(b[magicPos]), attributes: int8(b[attrPos]), timestamp: -1}
	i := timePos
	switch {
	case m.magic == 1 && len(b) >= minMessageV1:
		m.timestamp = int64(binary.BigEndian.Uint64(b[i:]))
		i += 8
	case m.magic != 0:
		return m, fmt.Errorf("%w: message of magic %d with %d bytes", ErrInvalid, m.magic, len(b))
	}
	if m.key, i = legacyBlob(b, i); i >= 0 {
		m.value, i = legacyBlob(b, i)
	}
	if i != len(b) {
		return m, fmt.Errorf("%w: message has malformed key or value", ErrInvalid)
	}
	return m, nil
}

// legacyBlob reads a nullable byte string with an int32 length at b[i:]; its index is -1 if it is damaged.
func legacyBlob(b []byte, i int) ([]byte, int) {
	if len(b)-i < 4 {
		return nil, -1
	}
	n := int32(binary.BigEndian.Uint32(b[i:]))
	i += 4
	if n < -1 || int64(n) > int64(len(b)-i) {
		return nil, -1
	}
	if n < 0 {
		return nil, i
	}
	end := i + int(n)
	return b[i:end:end], end
}

func (r *Reader) resetLegacy(b []byte, limit int64) error {
	m, err := decodeMessage(b[OverheadSize:])
	if err != nil {
		return err
	}
	offset := int64(binary.BigEndian.Uint64(b))
	r.header = Header{BaseOffset: offset, Length: int32(len(b) - OverheadSize), Magic: m.magic, Attributes: int16(m.attributes),
		MaxTimestamp: m.timestamp, LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
	codec := r.header.Codec()
	if codec == None {
		r.legacy = legacy{entry: b}
		return nil
	}
	if codec == Zstd {
		return fmt.Errorf("%w: zstd needs magic 2", ErrCodec)
	}
	r.legacy = legacy{wrapped: true}
	if m.magic == 1 {
		last, err := r.lastInside(codec, m.value, limit)
		if err != nil {
			return err
		}
		if offset != 0 && offset < last {
			return fmt.Errorf("%w: compressed set has offset %d, its last message %d", ErrInvalid, offset, last)
		}
		if offset != 0 { // some producers leave it 0
			r.legacy.shift = offset - last
		}
	}
	return r.openWrapper(codec, m.value, limit)
}

func (r *Reader) openWrapper(codec Codec, value []byte, limit int64) error {
	stream, err := r.inflater.open(codec, value, r.header.Magic)
	if err != nil {
		return err
	}
	r.window.reset(stream, limit)
	return nil
}

// lastInside is the offset of the last message in a wrapper of magic 1: the wrapper has its absolute offset, so that what is inside need not
// be rewritten at append, and can only be understood once the last is known (KIP-31).
func (r *Reader) lastInside(codec Codec, value []byte, limit int64) (int64, error) {
	if err := r.openWrapper(codec, value, limit); err != nil {
		return 0, err
	}
	last := int64(0)
	for {
		end, err := r.window.atEnd()
		if end || err != nil {
			return last, err
		}
		offset, size, err := r.inner()
		if err == nil {
			err = r.window.skip(int64(size))
		}
		if err == errEnd {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		last = offset
	}
}

// inner reads the overhead of a message in a wrapper.
func (r *Reader) inner() (offset int64, size int32, err error) {
	b, err := r.window.take(OverheadSize)
	if err != nil {
		return 0, 0, err
	}
	offset = int64(binary.BigEndian.Uint64(b))
	size = int32(binary.BigEndian.Uint32(b[LengthPos:]))
	if size < minMessageV0 {
		return 0, 0, fmt.Errorf("%w: message of %d bytes in a compressed set", ErrInvalid, size)
	}
	return offset, size, nil
}

func (r *Reader) nextLegacy(rec *Record) (bool, error) {
	offset, b := r.header.BaseOffset, r.legacy.entry
	if r.legacy.wrapped {
		var err error
		if offset, b, err = r.unwrap(); b == nil {
			return false, err
		}
	} else {
		if b == nil {
			return false, nil
		}
		b, r.legacy.entry = b[OverheadSize:], nil
	}
	m, err := decodeMessage(b)
	if err != nil {
		return false, err
	}
	if r.legacy.wrapped && (m.attributes&7 != 0 || m.magic != r.header.Magic) {
		return false, fmt.Errorf("%w: message of magic %d and codec %d in a compressed set of magic %d", ErrInvalid, m.magic, m.attributes&7, r.header.Magic)
	}
	r.raw = b
	*rec = Record{Offset: offset, Timestamp: m.timestamp, Key: m.key, Value: m.value}
	if r.header.Magic == 1 && r.header.Attributes&AttrLogAppendTime != 0 {
		rec.Timestamp = r.header.MaxTimestamp
	}
	return true, nil
}

// unwrap reads the next message of a wrapper, without its overhead. b is nil at the end and after an error. A message that is cut off is left
// out: old producers were allowed that.
func (r *Reader) unwrap() (offset int64, b []byte, err error) {
	end, err := r.window.atEnd()
	if !end && err == nil {
		var size int32
		if offset, size, err = r.inner(); err == nil {
			b, err = r.window.take(int(size))
		}
	}
	if end || err == errEnd {
		if r.legacy.some {
			return 0, nil, nil
		}
		return 0, nil, fmt.Errorf("%w: compressed set without messages", ErrInvalid)
	}
	if err != nil {
		return 0, nil, err
	}
	r.legacy.some = true
	if stored := binary.BigEndian.Uint32(b); r.legacy.verify && stored != crc32.ChecksumIEEE(b[4:]) {
		return 0, nil, fmt.Errorf("%w: message in a compressed set has crc %08x, the bytes have %08x", ErrCorrupt, stored, crc32.ChecksumIEEE(b[4:]))
	}
	return offset + r.legacy.shift, b, nil
}
