package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Rebuilder makes entries anew with some of their records, for compaction. Records are spliced as they are stored, so that nothing of
// them can change. It reuses its scratch; the zero value is ready. It is for one goroutine at a time.
type Rebuilder struct {
	reader   Reader
	deflater deflater
	body     []byte
}

// Restamp is a delete horizon to set.
type Restamp struct {
	Set     bool
	Horizon int64 // milliseconds
}

// Rebuild appends the whole entry b to dst, with its own magic and codec, without the records i for which keep[i] is false. One
// record at least is kept. Offsets, times and sequences of what is kept do not change, nor does the last offset of a batch of magic 2; a compressed set
// of magic 0 and 1 ends with the last message that is kept. The largest timestamp becomes that of what is left, unless it is the time of the append.
// restamp sets the delete horizon of a batch of magic 2. maxDecompressed is as in Reader.Reset.
func (w *Rebuilder) Rebuild(dst, b []byte, keep []bool, restamp Restamp, maxDecompressed int64) ([]byte, error) {
	if err := w.reader.Reset(b, maxDecompressed); err != nil {
		return dst, err
	}
	defer w.release()
	if w.reader.header.Magic == 2 {
		return w.modern(dst, b, keep, restamp)
	}
	return w.wrapper(dst, b, keep)
}

func (w *Rebuilder) release() {
	w.reader.Release()
	if cap(w.body) > keepScratch {
		w.body = nil
	}
}

func (w *Rebuilder) modern(dst, b []byte, keep []bool, restamp Restamp) ([]byte, error) {
	h := w.reader.header
	if restamp.Set {
		h.BaseTimestamp = restamp.Horizon
		h.Attributes |= AttrDeleteHorizon
	}
	w.body = w.body[:0]
	count, newest := int32(0), int64(-1)
	var rec Record
	for i := 0; w.reader.Next(&rec); i++ {
		if i >= len(keep) || !keep[i] {
			continue
		}
		count++
		newest = max(newest, rec.Timestamp)
		if raw := w.reader.raw; restamp.Set {
			w.restamped(raw, rec.Timestamp-restamp.Horizon)
		} else {
			w.body = append(appendVarint(w.body, int64(len(raw))), raw...)
		}
	}
	if err := w.reader.Err(); err != nil {
		return dst, err
	}
	if count == 0 {
		return dst, fmt.Errorf("%w: none of %d records is to be kept", ErrInvalid, h.Count)
	}
	h.Count = count
	if h.Attributes&AttrLogAppendTime == 0 {
		h.MaxTimestamp = newest
	}
	start := len(dst)
	out := append(dst, b[:HeaderSize]...)
	out, err := w.deflater.append(out, h.Codec(), w.body)
	if err != nil {
		return dst, err
	}
	size := len(out) - start
	if size > maxBatch {
		return dst, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	h.Length = int32(size - OverheadSize)
	encodeHeader(out[start:], &h)
	setCRC(out[start:])
	return out, nil
}

// restamped adds a record with another timestamp delta: what follows the delta is copied.
func (w *Rebuilder) restamped(raw []byte, delta int64) {
	_, rest := varlong(raw, 1) // was decoded before
	var stamp [11]byte
	stamp[0] = raw[0]
	s := appendVarint(stamp[:1], delta)
	w.body = appendVarint(w.body, int64(len(s)+len(raw)-rest))
	w.body = append(w.body, s...)
	w.body = append(w.body, raw[rest:]...)
}

// wrapper makes a compressed set of magic 0 or 1. Offsets inside are absolute for magic 0; for magic 1 they count from the first message
// that is kept.
func (w *Rebuilder) wrapper(dst, b []byte, keep []bool) ([]byte, error) {
	h := w.reader.header
	if h.Codec() == None {
		return append(dst, b...), nil
	}
	w.body = w.body[:0]
	first, last, newest := int64(-1), int64(-1), int64(-1)
	var rec Record
	for i := 0; w.reader.Next(&rec); i++ {
		if i >= len(keep) || !keep[i] {
			continue
		}
		if first < 0 {
			first = rec.Offset
		}
		last, newest = rec.Offset, max(newest, rec.Timestamp)
		inner := rec.Offset
		if h.Magic == 1 {
			inner -= first
		}
		w.body = binary.BigEndian.AppendUint64(w.body, uint64(inner))
		w.body = binary.BigEndian.AppendUint32(w.body, uint32(len(w.reader.raw)))
		w.body = append(w.body, w.reader.raw...)
	}
	if err := w.reader.Err(); err != nil {
		return dst, err
	}
	if first < 0 {
		return dst, fmt.Errorf("%w: none of the messages of a set is to be kept", ErrInvalid)
	}
	if h.Magic == 1 && h.Attributes&AttrLogAppendTime != 0 {
		newest = h.MaxTimestamp
	}
	return w.wrap(dst, &h, last, newest)
}

// wrap appends the message of magic 0 or 1 that holds the compressed body.
func (w *Rebuilder) wrap(dst []byte, h *Header, offset, timestamp int64) ([]byte, error) {
	start := len(dst)
	out := binary.BigEndian.AppendUint64(dst, uint64(offset))
	out = append(out, make([]byte, 8)...) // size and checksum
	out = append(out, byte(h.Magic), byte(h.Attributes))
	if h.Magic == 1 {
		out = binary.BigEndian.AppendUint64(out, uint64(timestamp))
	}
	out = binary.BigEndian.AppendUint32(out, 1<<32-1) // no key
	value := len(out) + 4
	out = append(out, make([]byte, 4)...)
	out, err := w.deflater.append(out, h.Codec(), w.body)
	if err != nil {
		return dst, err
	}
	if len(out)-start > maxBatch {
		return dst, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(out)-start)
	}
	if h.Magic == 0 && h.Codec() == LZ4 {
		breakLZ4(out[value:])
	}
	binary.BigEndian.PutUint32(out[value-4:], uint32(len(out)-value))
	binary.BigEndian.PutUint32(out[start+LengthPos:], uint32(len(out)-start-OverheadSize))
	binary.BigEndian.PutUint32(out[start+legacyCRCPos:], crc32.ChecksumIEEE(out[start+MagicPos:]))
	return out, nil
}

// AppendEmpty appends a batch of magic 2 without records to dst, which stands for the one that has header h: it keeps its offsets, its producer and
// the sequence that comes next.
func AppendEmpty(dst []byte, h *Header) []byte {
	empty := *h
	empty.Length = HeaderSize - OverheadSize
	empty.Attributes &= AttrLogAppendTime | AttrTransactional | AttrControl
	empty.BaseTimestamp, empty.Count = -1, 0
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	encodeHeader(dst[start:], &empty)
	setCRC(dst[start:])
	return dst
}
