package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Layout of a message of magic 0 and 1 after the overhead (KIP-31, KIP-32): crc uint32, magic int8, attributes int8,
// magic 1 only: timestamp int64, then key and value with int32 lengths.
const (
	legacyCRCPos  = 12
	legacyAttrPos = 17
	legacyTimePos = 18
	minMessageV0  = 14 // size field of a message without key and value
	minMessageV1  = 22
)

// EntryHeaderSize is how many bytes ReadEntry may need; a whole entry that is shorter is enough too.
const EntryHeaderSize = HeaderSize

// Entry is what the log needs to know of an entry of any magic.
type Entry struct {
	Size         int // whole entry in bytes
	Magic        int8
	Codec        Codec
	BaseOffset   int64 // magic 0 and 1: the entry's offset, which for a compressed one is that of the last message inside
	LastOffset   int64
	MaxTimestamp int64 // -1: none; magic 0 has none
	LeaderEpoch  int32 // -1 for magic 0 and 1
}

// EntrySize reads the size of the whole entry of any magic from its first 17 bytes, checking that the size field can be that of such an
// entry (else ErrCorrupt) and the magic (else ErrMagic). It does not limit the size from above.
func EntrySize(b []byte) (int, error) {
	_, size, magic, err := ReadOverhead(b)
	if err != nil {
		return 0, err
	}
	smallest := int32(0)
	switch magic {
	case 0:
		smallest = minMessageV0
	case 1:
		smallest = minMessageV1
	case 2:
		smallest = HeaderSize - OverheadSize
	default:
		return 0, fmt.Errorf("%w: %d", ErrMagic, magic)
	}
	if size < smallest {
		return 0, fmt.Errorf("%w: size %d is below the smallest of magic %d, %d", ErrCorrupt, size, magic, smallest)
	}
	return OverheadSize + int(size), nil
}

// ReadEntry decodes the fixed part of an entry of any magic. b starts at the entry and holds at least EntryHeaderSize bytes or the whole
// entry. The CRC is not checked.
func ReadEntry(b []byte) (Entry, error) {
	size, err := EntrySize(b)
	if err != nil {
		return Entry{}, err
	}
	if len(b) < min(size, EntryHeaderSize) {
		return Entry{}, fmt.Errorf("%w: %d bytes, need %d", ErrShort, len(b), min(size, EntryHeaderSize))
	}
	if b[MagicPos] == 2 {
		h, err := ReadHeader(b)
		if err != nil {
			return Entry{}, err
		}
		if h.LastDelta < 0 || h.BaseOffset < 0 || h.BaseOffset > math.MaxInt64-int64(h.LastDelta) {
			return Entry{}, fmt.Errorf("%w: base offset %d and last offset delta %d", ErrCorrupt, h.BaseOffset, h.LastDelta)
		}
		return Entry{Size: size, Magic: 2, Codec: h.Codec(), BaseOffset: h.BaseOffset, LastOffset: h.LastOffset(),
			MaxTimestamp: h.MaxTimestamp, LeaderEpoch: h.LeaderEpoch}, nil
	}
	offset := int64(binary.BigEndian.Uint64(b))
	if offset < 0 {
		return Entry{}, fmt.Errorf("%w: offset %d", ErrCorrupt, offset)
	}
	e := Entry{Size: size, Magic: int8(b[MagicPos]), Codec: Codec(b[legacyAttrPos] & 7), BaseOffset: offset, LastOffset: offset,
		MaxTimestamp: -1, LeaderEpoch: -1}
	if e.Magic == 1 {
		e.MaxTimestamp = int64(binary.BigEndian.Uint64(b[legacyTimePos:]))
	}
	return e, nil
}

// Verify checks that b starts with one whole entry of any magic whose checksum is right. It does not look into the records.
func Verify(b []byte) error {
	size, err := EntrySize(b)
	if err != nil {
		return err
	}
	if size > len(b) {
		return fmt.Errorf("%w: %d bytes of %d", ErrShort, len(b), size)
	}
	stored, computed := binary.BigEndian.Uint32(b[legacyCRCPos:]), uint32(0)
	if b[MagicPos] == 2 {
		stored, computed = binary.BigEndian.Uint32(b[CRCPos:]), castagnoli(b[AttributesPos:size])
	} else {
		computed = crc32.ChecksumIEEE(b[MagicPos:size])
	}
	if stored != computed {
		return fmt.Errorf("%w: crc is %08x, the bytes have %08x", ErrCorrupt, stored, computed)
	}
	return nil
}
