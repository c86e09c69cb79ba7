package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// ReadOverhead reads what entries of every magic have in common. b starts at the entry; 17 bytes are enough. Size is the size field: the
// whole entry is OverheadSize+size bytes. Nothing is checked but that the bytes are there.
func ReadOverhead(b []byte) (offset int64, size int32, magic int8, err error) {
	if len(b) <= MagicPos {
		return 0, 0, 0, fmt.Errorf("%w: %d bytes, need %d", ErrShort, len(b), MagicPos+1)
	}
	offset = int64(binary.BigEndian.Uint64(b[OffsetPos:]))
	size = int32(binary.BigEndian.Uint32(b[LengthPos:]))
	return offset, size, int8(b[MagicPos]), nil
}

// ReadHeader decodes the first HeaderSize bytes of a magic 2 batch; the records need not be there. It checks the magic and that the
// length and the counts can be those of a batch, not the CRC.
func ReadHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: %d bytes, need %d", ErrShort, len(b), HeaderSize)
	}
	h := Header{
		BaseOffset:    int64(binary.BigEndian.Uint64(b[OffsetPos:])),
		Length:        int32(binary.BigEndian.Uint32(b[LengthPos:])),
		LeaderEpoch:   int32(binary.BigEndian.Uint32(b[LeaderEpochPos:])),
		Magic:         int8(b[MagicPos]),
		CRC:           binary.BigEndian.Uint32(b[CRCPos:]),
		Attributes:    int16(binary.BigEndian.Uint16(b[AttributesPos:])),
		LastDelta:     int32(binary.BigEndian.Uint32(b[LastDeltaPos:])),
		BaseTimestamp: int64(binary.BigEndian.Uint64(b[BaseTimePos:])),
		MaxTimestamp:  int64(binary.BigEndian.Uint64(b[MaxTimePos:])),
		ProducerID:    int64(binary.BigEndian.Uint64(b[ProducerIDPos:])),
		ProducerEpoch: int16(binary.BigEndian.Uint16(b[EpochPos:])),
		BaseSequence:  int32(binary.BigEndian.Uint32(b[BaseSeqPos:])),
		Count:         int32(binary.BigEndian.Uint32(b[CountPos:])),
	}
	if h.Magic != 2 {
		return h, fmt.Errorf("%w: %d", ErrMagic, h.Magic)
	}
	if h.Length < HeaderSize-OverheadSize {
		return h, fmt.Errorf("%w: length %d is below the header's %d", ErrCorrupt, h.Length, HeaderSize-OverheadSize)
	}
	return h, nil
}

// Stamp writes what the broker decides into a magic 2 batch: both fields lie outside the CRC. b holds at least the header.
func Stamp(b []byte, baseOffset int64, leaderEpoch int32) {
	binary.BigEndian.PutUint64(b[OffsetPos:], uint64(baseOffset))
	binary.BigEndian.PutUint32(b[LeaderEpochPos:], uint32(leaderEpoch))
}

// setCRC recomputes the checksum of the whole magic 2 batch b.
func setCRC(b []byte) uint32 {
	crc := castagnoli(b[AttributesPos:])
	binary.BigEndian.PutUint32(b[CRCPos:], crc)
	return crc
}
