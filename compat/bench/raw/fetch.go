package raw

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FetchRequest is one encoded Fetch v12 request for one partition without a session, whose offset can be changed in place.
type FetchRequest struct {
	bytes []byte
	at    int // where the offset is
}

// NewFetchRequest asks for at most maxBytes of the partition and waits up to waitMilli for minBytes.
func NewFetchRequest(topic string, partition int32, maxBytes, minBytes, waitMilli int) (*FetchRequest, error) {
	const marker = 0x1122334455667788
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, int32(waitMilli), int32(minBytes), int32(maxBytes)
	req.SessionID, req.SessionEpoch = 0, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, marker, int32(maxBytes)
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = -1, -1, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	data := Encode(req, 1)
	at := bytes.Index(data, binary.BigEndian.AppendUint64(nil, marker))
	if at < 0 {
		return nil, errors.New("the encoded Fetch request does not hold its offset")
	}
	return &FetchRequest{data, at}, nil
}

// Send asks for records from offset on.
func (r *FetchRequest) Send(c *Conn, offset int64) error {
	binary.BigEndian.PutUint64(r.bytes[r.at:], uint64(offset))
	return c.Write(r.bytes)
}

// FetchHead is what precedes the records in the answer to a FetchRequest.
type FetchHead struct {
	HighWatermark int64
	Records       int // length of the records in bytes
	Size          int // length of the head: where in the frame the records begin
}

// ParseFetchHead reads the head from the beginning of a frame; the records need not be there. It allocates nothing when
// the answer is without error.
func ParseFetchHead(frame []byte) (FetchHead, error) {
	s := scanner{b: frame}
	var h FetchHead
	correlation, _ := s.int32(), s.skip(1+4) // tagged fields, throttle time
	code, _ := s.int16(), s.skip(4)          // session id
	if code != 0 {
		return h, fmt.Errorf("Fetch: error code %d", code)
	}
	topics := s.uvarint() - 1
	_ = s.skip(s.uvarint() - 1) // name
	partitions, _ := s.uvarint()-1, s.skip(4)
	code = s.int16()
	h.HighWatermark = s.int64()
	_ = s.skip(8 + 8) // last stable offset, log start offset
	if s.bad || correlation != 1 || topics != 1 || partitions != 1 {
		return h, fmt.Errorf("%w to Fetch of one partition", ErrFrame)
	}
	if code != 0 {
		return h, fmt.Errorf("Fetch: error code %d of the partition", code)
	}
	if aborted := s.uvarint(); aborted > 1 {
		return h, fmt.Errorf("%w to Fetch: aborted transactions in a topic without any", ErrFrame)
	}
	_ = s.skip(4) // preferred read replica
	h.Records = max(s.uvarint()-1, 0)
	h.Size = s.at
	if s.bad {
		return h, fmt.Errorf("%w to Fetch: cut short", ErrFrame)
	}
	return h, nil
}

// EachBatch calls f with base offset and record count of each whole magic 2 batch in records.
func EachBatch(records []byte, f func(base int64, count int)) error {
	be := binary.BigEndian
	for len(records) >= batchOverhead {
		size := 12 + int(int32(be.Uint32(records[8:])))
		if size < batchOverhead || records[16] != 2 {
			return fmt.Errorf("%w: a batch of %d bytes, magic %d", ErrFrame, size, records[16])
		}
		if size > len(records) {
			return nil // the broker may cut the last one
		}
		f(int64(be.Uint64(records)), int(be.Uint32(records[57:])))
		records = records[size:]
	}
	return nil
}

// scanner reads big-endian fields; reading beyond the end sets bad and yields zeros.
type scanner struct {
	b   []byte
	at  int
	bad bool
}

func (s *scanner) skip(n int) bool {
	if n < 0 || n > len(s.b)-s.at {
		s.bad, s.at = true, len(s.b)
		return false
	}
	s.at += n
	return true
}

func (s *scanner) int16() int16 {
	if !s.skip(2) {
		return 0
	}
	return int16(binary.BigEndian.Uint16(s.b[s.at-2:]))
}

func (s *scanner) int32() int32 {
	if !s.skip(4) {
		return 0
	}
	return int32(binary.BigEndian.Uint32(s.b[s.at-4:]))
}

func (s *scanner) int64() int64 {
	if !s.skip(8) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(s.b[s.at-8:]))
}

func (s *scanner) uvarint() int {
	v, n := binary.Uvarint(s.b[s.at:])
	if n <= 0 || v > 1<<31 {
		s.bad = true
		return 0
	}
	s.at += n
	return int(v)
}
