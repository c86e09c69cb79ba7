package batch

// Layout of a record batch of magic 2 (KIP-98, message RecordBatch), big-endian. Frozen: this is on disk and on the wire.
const (
	OffsetPos      = 0  // base offset int64
	LengthPos      = 8  // batch length int32: the bytes after this field
	LeaderEpochPos = 12 // partition leader epoch int32, outside the CRC
	MagicPos       = 16 // magic int8, at this position in every format
	CRCPos         = 17 // CRC-32C of everything from AttributesPos
	AttributesPos  = 21
	LastDeltaPos   = 23
	BaseTimePos    = 27
	MaxTimePos     = 35
	ProducerIDPos  = 43
	EpochPos       = 51
	BaseSeqPos     = 53
	CountPos       = 57
	HeaderSize     = 61 // first record

	// OverheadSize is the LogOverhead that starts an entry of every magic: offset int64, size int32.
	OverheadSize = 12
	// MinEntrySize is the smallest whole entry of any magic: overhead and a magic 0 message with null key and value.
	MinEntrySize = OverheadSize + 14
)

// Codec is the compression of a batch, the low three bits of its attributes.
type Codec int8

// Codecs as they are numbered on disk and on the wire.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Bits of the attributes above the codec.
const (
	AttrLogAppendTime = 1 << 3
	AttrTransactional = 1 << 4
	AttrControl       = 1 << 5
	AttrDeleteHorizon = 1 << 6

	attrKnown = 1<<7 - 1
)

// Header is the decoded fixed part of a magic 2 batch.
type Header struct {
	BaseOffset    int64
	Length        int32 // after the length field; the whole batch is OverheadSize+Length bytes
	LeaderEpoch   int32
	Magic         int8
	CRC           uint32
	Attributes    int16
	LastDelta     int32 // last offset is BaseOffset+LastDelta
	BaseTimestamp int64 // milliseconds since 1970
	MaxTimestamp  int64
	ProducerID    int64 // -1 none
	ProducerEpoch int16
	BaseSequence  int32 // -1 none
	Count         int32
}

// Size is the size of the whole batch in bytes.
func (h *Header) Size() int { return OverheadSize + int(h.Length) }

// LastOffset is the offset of the last record that the batch was written with.
func (h *Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastDelta) }

// Codec is the compression of the records.
func (h *Header) Codec() Codec { return Codec(h.Attributes & 7) }

// Transactional reports if the batch belongs to a transaction.
func (h *Header) Transactional() bool { return h.Attributes&AttrTransactional != 0 }

// Control reports if the batch holds a transaction marker or another control record.
func (h *Header) Control() bool { return h.Attributes&AttrControl != 0 }

// DeleteHorizon is the time in milliseconds from which the tombstones, or the marker, of the batch may be removed; ok is false while
// compaction has not set it. It takes the place of the base timestamp.
func (h *Header) DeleteHorizon() (ms int64, ok bool) {
	return h.BaseTimestamp, h.Attributes&AttrDeleteHorizon != 0
}

// LastSequence is the sequence number of the last record; sequences wrap from 2147483647 to 0.
func (h *Header) LastSequence() int32 { return AddSequence(h.BaseSequence, h.LastDelta) }

// AddSequence adds n to a producer sequence number, wrapping from 2147483647 to 0.
func AddSequence(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & 0x7fffffff) }
