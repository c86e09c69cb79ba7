package producer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// Layout of Kafka's ProducerSnapshot file: version int16, crc uint32 (CRC-32C of everything after it), count int32, then count
// entries of entrySize bytes, big-endian.
const (
	snapshotVersion = 1
	snapshotCRCEnd  = 6
	snapshotHeader  = 10
	entrySize       = 46
)

// Entry is a producer in a snapshot file.
type Entry struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32 // -1: no data batch, or one of the broker itself
	LastOffset       int64 // -1: no data batch
	OffsetDelta      int32 // of the last batch: its first offset is LastOffset-OffsetDelta
	Timestamp        int64 // of the last batch or marker, milliseconds
	CoordinatorEpoch int32 // -1: no marker seen
	TxnFirstOffset   int64 // -1: no open transaction
}

// EncodeSnapshot appends the state as Kafka's ProducerSnapshot file, version 1, to dst, in the order of producer ids. Of each producer
// the last batch is kept, as Kafka does.
func (s *State) EncodeSnapshot(dst []byte) []byte {
	return EncodeEntries(dst, s.Entries())
}

// Entries are the producers as a snapshot has them, in the order of their ids.
func (s *State) Entries() []Entry {
	list := make([]Entry, 0, len(s.producers))
	for id, e := range s.producers {
		out := Entry{ProducerID: id, Epoch: e.epoch, LastSequence: -1, LastOffset: -1, Timestamp: e.timestamp,
			CoordinatorEpoch: e.coord, TxnFirstOffset: e.txnFirst}
		if b, ok := e.last(); ok {
			out.LastSequence, out.LastOffset, out.OffsetDelta = b.lastSeq, b.lastOffset, b.delta
		}
		list = append(list, out)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		if a.ProducerID < b.ProducerID {
			return -1
		}
		return 1
	})
	return list
}

// EncodeEntries appends entries as a snapshot file to dst, in the given order.
func EncodeEntries(dst []byte, entries []Entry) []byte {
	start := len(dst)
	dst = slices.Grow(dst, snapshotHeader+len(entries)*entrySize)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	for i := range entries {
		dst = appendEntry(dst, &entries[i])
	}
	crc := crc32.Checksum(dst[start+snapshotCRCEnd:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(dst[start+2:], crc)
	return dst
}

func appendEntry(dst []byte, e *Entry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(e.Epoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastSequence))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.OffsetDelta))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Timestamp))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.CoordinatorEpoch))
	return binary.BigEndian.AppendUint64(dst, uint64(e.TxnFirstOffset))
}

// DecodeSnapshot reads a whole snapshot file. An error is ErrSnapshot: the file is a hint, the caller rebuilds from the log.
func DecodeSnapshot(b []byte) ([]Entry, error) {
	if len(b) < snapshotHeader {
		return nil, fmt.Errorf("%w: %d bytes, the header has %d", ErrSnapshot, len(b), snapshotHeader)
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, known is %d", ErrSnapshot, v, snapshotVersion)
	}
	crc := crc32.Checksum(b[snapshotCRCEnd:], crc32.MakeTable(crc32.Castagnoli))
	if stored := binary.BigEndian.Uint32(b[2:]); stored != crc {
		return nil, fmt.Errorf("%w: crc is %08x, the bytes have %08x", ErrSnapshot, stored, crc)
	}
	n := binary.BigEndian.Uint32(b[snapshotCRCEnd:])
	rest := b[snapshotHeader:]
	if uint64(n)*entrySize != uint64(len(rest)) {
		return nil, fmt.Errorf("%w: %d entries need %d bytes, there are %d", ErrSnapshot, n, uint64(n)*entrySize, len(rest))
	}
	entries := make([]Entry, n)
	for i := range entries {
		e := rest[i*entrySize:]
		entries[i] = Entry{
			ProducerID:       int64(binary.BigEndian.Uint64(e)),
			Epoch:            int16(binary.BigEndian.Uint16(e[8:])),
			LastSequence:     int32(binary.BigEndian.Uint32(e[10:])),
			LastOffset:       int64(binary.BigEndian.Uint64(e[14:])),
			OffsetDelta:      int32(binary.BigEndian.Uint32(e[22:])),
			Timestamp:        int64(binary.BigEndian.Uint64(e[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
			TxnFirstOffset:   int64(binary.BigEndian.Uint64(e[38:])),
		}
	}
	return entries, nil
}

// Restore replaces the state with the entries of a snapshot taken at offset logEnd. Producers whose batches were all deleted stay known, as in
// Kafka (KIP-360): they go when they expire. The idle time of all begins at nowMillis: the file does not say when the broker last heard of
// them. Entries with impossible values are left out.
func (s *State) Restore(entries []Entry, logEnd, nowMillis int64) {
	s.Reset()
	for i := range entries {
		in := &entries[i]
		if !in.possible() || in.LastOffset >= logEnd || in.TxnFirstOffset >= logEnd || s.producers[in.ProducerID] != nil {
			continue
		}
		e := &entry{seen: nowMillis, timestamp: in.Timestamp, txnFirst: -1, coord: in.CoordinatorEpoch, epoch: in.Epoch}
		if in.LastOffset >= 0 {
			e.add(slot{lastOffset: in.LastOffset, timestamp: in.Timestamp, lastSeq: in.LastSequence, delta: in.OffsetDelta})
		}
		if in.TxnFirstOffset >= 0 {
			e.txnFirst = in.TxnFirstOffset
			s.open = append(s.open, txn{first: e.txnFirst})
		}
		s.producers[in.ProducerID] = e
	}
	slices.SortFunc(s.open, func(a, b txn) int { return int(min(max(a.first-b.first, -1), 1)) })
}

// possible reports if a producer can have such values; a file with a right checksum may still be someone else's.
func (e *Entry) possible() bool {
	if e.ProducerID < 0 || e.LastOffset < -1 || e.TxnFirstOffset < -1 {
		return false
	}
	if e.LastOffset < 0 {
		return true
	}
	return e.LastSequence >= noSequence && e.OffsetDelta >= 0 && int64(e.OffsetDelta) <= e.LastOffset
}
