package raw

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Gzipped is a batch of AppendBatch with its records compressed. Values that are to be worth it come from Batch.Letters.
func Gzipped(batch []byte) ([]byte, error) {
	out := bytes.NewBuffer(bytes.Clone(batch[:batchOverhead]))
	w := gzip.NewWriter(out)
	if _, err := w.Write(batch[batchOverhead:]); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	b := out.Bytes()
	be := binary.BigEndian
	be.PutUint32(b[8:], uint32(len(b)-12))
	be.PutUint16(b[crcFrom:], 1)
	be.PutUint32(b[crcFrom-4:], crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
	return b, nil
}

// OldReader fetches a partition from beginning to end by Fetch v2, which wants messages of magic 1, again and again, and looks only for the
// offset to go on at.
type OldReader struct {
	Conn      *Conn
	Topic     string
	Partition int32
	End       int64 // log end offset
	MaxBytes  int
	Bytes     *atomic.Int64 // of whole messages
}

// Run fetches until stop is set.
func (r *OldReader) Run(stop *atomic.Bool) error {
	request, err := newOldFetch(r.Topic, r.Partition, r.MaxBytes)
	if err != nil {
		return err
	}
	for offset := int64(0); !stop.Load(); {
		if err := request.Send(r.Conn, offset); err != nil {
			return err
		}
		frame, err := r.Conn.ReadFrame()
		if err != nil {
			return err
		}
		records, err := oldRecords(frame)
		if err != nil {
			return err
		}
		last, size := lastMessage(records)
		if last < offset {
			return fmt.Errorf("%w to Fetch at offset %d: %d bytes without a whole message", ErrFrame, offset, len(records))
		}
		r.Bytes.Add(int64(size))
		if offset = last + 1; offset >= r.End {
			offset = 0
		}
	}
	return nil
}

// newOldFetch is NewFetchRequest for version 2.
func newOldFetch(topic string, partition int32, maxBytes int) (*FetchRequest, error) {
	const marker = 0x1122334455667788
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(2)
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes = -1, 500, 1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, marker, int32(maxBytes)
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	data := Encode(req, 1)
	at := bytes.Index(data, binary.BigEndian.AppendUint64(nil, marker))
	if at < 0 {
		return nil, errors.New("the encoded Fetch request does not hold its offset")
	}
	return &FetchRequest{data, at}, nil
}

// oldRecords takes the record set out of an answer of version 2 for one partition.
func oldRecords(frame []byte) ([]byte, error) {
	s := scanner{b: frame}
	correlation, _ := s.int32(), s.skip(4) // throttle time
	topics := s.int32()
	_ = s.skip(int(s.int16())) // name
	partitions, _ := s.int32(), s.skip(4)
	code, _ := s.int16(), s.skip(8) // high watermark
	size := int(s.int32())
	switch {
	case s.bad || correlation != 1 || topics != 1 || partitions != 1:
		return nil, fmt.Errorf("%w to Fetch v2 of one partition", ErrFrame)
	case code != 0:
		return nil, fmt.Errorf("Fetch v2: error code %d of the partition", code)
	case size != len(frame)-s.at:
		return nil, fmt.Errorf("%w to Fetch v2: %d bytes of records in %d", ErrFrame, size, len(frame)-s.at)
	}
	return frame[s.at:], nil
}

// lastMessage finds the offset of the last whole message of a set, -1 if there is none, and the bytes up to its end.
func lastMessage(set []byte) (offset int64, size int) {
	offset = -1
	for len(set)-size >= 12 {
		n := 12 + int(int32(binary.BigEndian.Uint32(set[size+8:])))
		if n < 12 || n > len(set)-size {
			break
		}
		offset = int64(binary.BigEndian.Uint64(set[size:]))
		size += n
	}
	return offset, size
}
