package raw

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

const (
	batchOverhead = 61 // bytes before the first record of a magic 2 batch
	crcFrom       = 21 // the CRC covers everything from the attributes on
)

// Batch describes one record batch of magic 2 without compression, keys, headers or producer id.
type Batch struct {
	Records   int
	ValueSize int
	Timestamp int64 // CreateTime of all records, milliseconds since 1970
	Seed      uint64
	Letters   bool // values are of 16 letters instead of random bytes: half of them can be compressed away
}

// AppendBatch appends the batch; its values are random bytes, so that no layer can compress them. The same Seed gives
// the same bytes.
func AppendBatch(dst []byte, b Batch) []byte {
	sizes := make([]int, b.Records)
	for i := range sizes {
		sizes[i] = b.ValueSize
	}
	start := len(dst)
	dst = appendBatch(dst, sizes, b.Timestamp, b.Seed)
	if b.Letters {
		letters(dst[start:], sizes)
	}
	return dst
}

// letters makes text of the values of a batch.
func letters(batch []byte, sizes []int) {
	at := batchOverhead
	for i, size := range sizes {
		body := recordBody(i, size)
		at += varintLen(int64(body)) + body
		value := batch[at-1-size : at-1]
		for k := range value {
			value[k] = 'a' + value[k]&15
		}
	}
	crc := crc32.Checksum(batch[crcFrom:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(batch[crcFrom-4:], crc)
}

// AppendBatchOfSize appends a batch of exactly size bytes in all, with the given number of records of nearly equal
// size. It fails when no such batch exists.
func AppendBatchOfSize(dst []byte, size, records int, timestamp int64, seed uint64) ([]byte, error) {
	share := (size - batchOverhead) / max(records, 1)
	if records < 1 || share < 16 {
		return nil, fmt.Errorf("no batch of %d bytes has %d records: each needs 16 bytes and the batch %d", size, records, batchOverhead)
	}
	sizes := make([]int, records)
	for i := range sizes {
		sizes[i] = share - 8
	}
	for tries := range 64 { // a varint that grows or shrinks may call for another step
		missing := size - batchSize(sizes)
		if missing == 0 {
			return appendBatch(dst, sizes, timestamp, seed), nil
		}
		each := missing / records
		for i := range sizes {
			sizes[i] += each
		}
		sizes[tries%records] += missing % records
	}
	return nil, fmt.Errorf("no batch of exactly %d bytes with %d records", size, records)
}

func batchSize(sizes []int) int {
	n := batchOverhead
	for i, size := range sizes {
		body := recordBody(i, size)
		n += varintLen(int64(body)) + body
	}
	return n
}

// recordBody is the length of a record after its own length field: attributes, timestamp delta 0, offset delta, null
// key, value, no headers.
func recordBody(offsetDelta, valueSize int) int {
	return 1 + 1 + varintLen(int64(offsetDelta)) + 1 + varintLen(int64(valueSize)) + valueSize + 1
}

func varintLen(v int64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutVarint(b[:], v) // Go's signed varint is zigzag, as Kafka's
}

func appendBatch(dst []byte, sizes []int, timestamp int64, seed uint64) []byte {
	start := len(dst)
	be := binary.BigEndian
	dst = be.AppendUint64(dst, 0)                           // base offset
	dst = be.AppendUint32(dst, uint32(batchSize(sizes)-12)) // length after this field
	dst = be.AppendUint32(dst, 0xffffffff)                  // partition leader epoch, unknown
	dst = append(dst, 2)                                    // magic
	dst = be.AppendUint32(dst, 0)                           // CRC, below
	dst = be.AppendUint16(dst, 0)                           // attributes: no codec, CreateTime
	dst = be.AppendUint32(dst, uint32(len(sizes)-1))        // last offset delta
	dst = be.AppendUint64(dst, uint64(timestamp))           // base timestamp
	dst = be.AppendUint64(dst, uint64(timestamp))           // max timestamp
	dst = be.AppendUint64(dst, 1<<64-1)                     // producer id -1
	dst = be.AppendUint16(dst, 1<<16-1)                     // producer epoch -1
	dst = be.AppendUint32(dst, 1<<32-1)                     // base sequence -1
	dst = be.AppendUint32(dst, uint32(len(sizes)))
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	for i, size := range sizes {
		dst = binary.AppendVarint(dst, int64(recordBody(i, size)))
		dst = append(dst, 0, 0) // attributes, timestamp delta
		dst = binary.AppendVarint(dst, int64(i))
		dst = binary.AppendVarint(dst, -1) // null key
		dst = binary.AppendVarint(dst, int64(size))
		at := len(dst)
		dst = append(dst, make([]byte, size)...)
		_, _ = random.Read(dst[at:]) // ChaCha8.Read never fails
		dst = binary.AppendVarint(dst, 0)
	}
	crc := crc32.Checksum(dst[start+crcFrom:], crc32.MakeTable(crc32.Castagnoli))
	be.PutUint32(dst[start+crcFrom-4:], crc)
	return dst
}
