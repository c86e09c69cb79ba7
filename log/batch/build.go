package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxBatch is what fits the length field.
const maxBatch = math.MaxInt32

// Producer is the idempotent producer that a batch is from.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record; -1 for a control batch
}

// Options are the header of a batch to build. The zero value is an uncompressed batch at offset 0 without producer.
type Options struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Producer      *Producer // nil is none
	Transactional bool
	Control       bool
	LogAppendTime bool // every record reads as having the largest timestamp
}

// Builder makes magic 2 batches; the same input gives the same bytes. The zero value is ready. It is for one goroutine at a time.
type Builder struct {
	options      Options
	body         []byte // not compressed, unless packer is there
	packer       io.WriteCloser
	packed       stream // what packer wrote
	size         int    // of all records before compression
	scratch      []byte
	count        int
	delta        int32 // of the last record
	base         int64
	maxTimestamp int64
	err          error
	deflater     deflater
}

// Reset starts a new batch.
func (w *Builder) Reset(o Options) {
	w.options, w.body, w.count, w.delta, w.maxTimestamp, w.base, w.err = o, w.body[:0], 0, -1, -1, 0, nil
	w.packer, w.packed.out, w.size = nil, w.packed.out[:0], 0
}

// pack makes the builder compress records as they are added, so that it holds no more than their compressed form. Finish may then be called
// once.
func (w *Builder) pack() {
	if w.options.Codec != None {
		w.packer, w.err = w.deflater.open(w.options.Codec, &w.packed)
	}
}

// held is how many bytes of records are in memory.
func (w *Builder) held() int { return len(w.body) + len(w.packed.out) }

// Append adds a record at the next offset. Nothing of it is kept.
func (w *Builder) Append(timestamp int64, key, value []byte, headers ...RecordHeader) {
	w.add(int64(w.delta)+1, timestamp, key, value, func(b []byte) []byte { return appendHeaders(b, headers) })
}

// AppendRecord adds a record at its own offset, which must be above that of the one before (compaction leaves gaps).
func (w *Builder) AppendRecord(r *Record) {
	w.add(r.Offset-w.options.BaseOffset, r.Timestamp, r.Key, r.Value, func(b []byte) []byte {
		return append(appendVarint(b, int64(r.Headers.n)), r.Headers.raw...)
	})
}

func appendHeaders(b []byte, headers []RecordHeader) []byte {
	b = appendVarint(b, int64(len(headers)))
	for _, h := range headers {
		b = appendVarint(b, int64(len(h.Key)))
		b = append(b, h.Key...)
		b = appendBlob(b, h.Value)
	}
	return b
}

// appendBlob appends a nullable byte string.
func appendBlob(b, v []byte) []byte {
	if v == nil {
		return appendVarint(b, -1)
	}
	return append(appendVarint(b, int64(len(v))), v...)
}

func (w *Builder) add(delta, timestamp int64, key, value []byte, headers func([]byte) []byte) {
	if delta <= int64(w.delta) || delta > math.MaxInt32 {
		w.err = fmt.Errorf("%w: offset delta %d after %d", ErrInvalid, delta, w.delta)
		return
	}
	if w.count == 0 {
		w.base = timestamp
	}
	before := len(w.body)
	b := append(w.scratch[:0], 0)
	b = appendVarint(b, timestamp-w.base)
	b = appendVarint(b, delta)
	b = appendBlob(b, key)
	b = appendBlob(b, value)
	b = headers(b)
	w.scratch = b
	w.body = append(appendVarint(w.body, int64(len(b))), b...)
	w.size += len(w.body) - before
	if w.packer != nil {
		if _, err := w.packer.Write(w.body); err != nil {
			w.err = err
		}
		w.body = w.body[:0]
	}
	w.count++
	w.delta = int32(delta)
	w.maxTimestamp = max(w.maxTimestamp, timestamp)
}

// Len is the number of records so far.
func (w *Builder) Len() int { return w.count }

// Size is the size of the records so far, before compression, in bytes.
func (w *Builder) Size() int { return w.size }

// Finish appends the batch to dst and leaves the builder as it is. An error is a codec that does not exist, records out of order, or none
// at all.
func (w *Builder) Finish(dst []byte) ([]byte, error) {
	if w.err != nil {
		return dst, w.err
	}
	if w.count == 0 {
		return dst, errors.New("batch to build has no records")
	}
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	dst, err := w.records(dst)
	if err != nil {
		return dst[:start], err
	}
	if len(dst)-start > maxBatch {
		return dst[:start], fmt.Errorf("%w: %d bytes", ErrTooLarge, len(dst)-start)
	}
	w.header(dst[start:])
	return dst, nil
}

// records appends all records, compressed.
func (w *Builder) records(dst []byte) ([]byte, error) {
	if w.packer == nil {
		return w.deflater.append(dst, w.options.Codec, w.body)
	}
	if err := w.packer.Close(); err != nil {
		return dst, err
	}
	return append(dst, w.packed.out...), nil
}

// header fills in the header of the batch b, whose records are there.
func (w *Builder) header(b []byte) {
	o := &w.options
	attributes := int16(o.Codec)
	for _, bit := range []struct {
		on bool
		v  int16
	}{{o.LogAppendTime, AttrLogAppendTime}, {o.Transactional, AttrTransactional}, {o.Control, AttrControl}} {
		if bit.on {
			attributes |= bit.v
		}
	}
	p := Producer{ID: -1, Epoch: -1, Sequence: -1}
	if o.Producer != nil {
		p = *o.Producer
	}
	encodeHeader(b, &Header{
		BaseOffset: o.BaseOffset, Length: int32(len(b) - OverheadSize), LeaderEpoch: o.LeaderEpoch, Magic: 2, Attributes: attributes,
		LastDelta: w.delta, BaseTimestamp: w.base, MaxTimestamp: w.maxTimestamp,
		ProducerID: p.ID, ProducerEpoch: p.Epoch, BaseSequence: p.Sequence, Count: int32(w.count),
	})
	setCRC(b)
}

// encodeHeader writes all of h but the CRC.
func encodeHeader(b []byte, h *Header) {
	binary.BigEndian.PutUint64(b[OffsetPos:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[LengthPos:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[LeaderEpochPos:], uint32(h.LeaderEpoch))
	b[MagicPos] = byte(h.Magic)
	binary.BigEndian.PutUint16(b[AttributesPos:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[LastDeltaPos:], uint32(h.LastDelta))
	binary.BigEndian.PutUint64(b[BaseTimePos:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[MaxTimePos:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[ProducerIDPos:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[EpochPos:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[BaseSeqPos:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[CountPos:], uint32(h.Count))
}

// AppendMarker appends a transaction marker (control batch of one record, KIP-98) to dst: COMMIT or ABORT of producer p, whose
// sequence is not used. The base offset is 0 and the leader epoch -1, to be stamped.
func AppendMarker(dst []byte, p Producer, timestamp int64, coordinatorEpoch int32, commit bool) []byte {
	p.Sequence = -1
	key := []byte{0, 0, 0, 0} // version 0, type ABORT
	if commit {
		key[3] = 1
	}
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch))
	var w Builder
	w.Reset(Options{LeaderEpoch: -1, Producer: &p, Transactional: true, Control: true})
	w.Append(timestamp, key, value)
	dst, _ = w.Finish(dst) // one uncompressed record always fits
	return dst
}
