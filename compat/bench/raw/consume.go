package raw

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"gregor/compat/bench/stats"
)

// Tail reads the end of one partition by long polls and takes the latency of each record against the time at which it
// should have been sent. Record First+i belongs to request i of the OpenLoop.
type Tail struct {
	Conn  *Conn
	Topic string
	First int64 // offset of the first record that will be sent
	Loop  *OpenLoop
}

// Run reads until the last record of the loop has come or the loop gives up; records that have not come by then count
// with the time waited.
func (t *Tail) Run(start time.Time) (*stats.Samples, error) {
	latency := stats.NewSamples(t.Loop.Count)
	end := time.AfterFunc(t.Loop.givesUp()-time.Since(start), t.Conn.Abort)
	defer end.Stop()
	n, err := t.read(start, latency)
	if time.Since(start) < t.Loop.givesUp() {
		return latency, err
	}
	t.Loop.missing(n, start, latency)
	return latency, nil
}

// read returns how many records came.
func (t *Tail) read(start time.Time, latency *stats.Samples) (int, error) {
	req, err := NewFetchRequest(t.Topic, 0, 1<<20, 1, 500)
	if err != nil {
		return 0, err
	}
	i, all := 0, t.Loop.Warm+t.Loop.Count
	for i < all {
		if err := req.Send(t.Conn, t.First+int64(i)); err != nil {
			return i, err
		}
		frame, err := t.Conn.ReadFrame()
		if err != nil {
			return i, err
		}
		now := time.Since(start)
		head, err := ParseFetchHead(frame)
		if err != nil {
			return i, err
		}
		if head.Size+head.Records > len(frame) {
			return i, fmt.Errorf("%w to Fetch: %d bytes of records in %d", ErrFrame, head.Records, len(frame)-head.Size)
		}
		err = EachBatch(frame[head.Size:head.Size+head.Records], func(base int64, count int) {
			for ; i < int(base-t.First)+count && i < all; i++ {
				if i >= t.Loop.Warm {
					latency.Add(now - t.Loop.Due(i))
				}
			}
		})
		if err != nil {
			return i, err
		}
	}
	return i, nil
}

// Reader fetches partitions from beginning to end over one connection, again and again, and drops the records in the
// kernel. All batches of a partition have the same size and number of records, so that offsets are known beforehand
// and Ahead requests can be on their way.
type Reader struct {
	Conn       *Conn
	Topic      string
	Partitions []int32
	End        int64 // log end offset of each partition
	BatchSize  int
	BatchCount int // records in a batch
	MaxBytes   int // asked for at once: a multiple of BatchSize
	Ahead      int // requests on their way
	Bytes      *atomic.Int64
}

// position is one request: which partition, from where, how many bytes must come.
type position struct {
	partition int
	offset    int64
}

func (r *Reader) step() int64 { return int64(r.MaxBytes / r.BatchSize * r.BatchCount) }

func (r *Reader) after(p position) position {
	if p.offset += r.step(); p.offset >= r.End {
		return position{(p.partition + 1) % len(r.Partitions), 0}
	}
	return p
}

func (r *Reader) expect(p position) int {
	return int(min(r.step(), r.End-p.offset)) / r.BatchCount * r.BatchSize
}

// Run fetches until stop is set.
func (r *Reader) Run(stop *atomic.Bool) error {
	requests := make([]*FetchRequest, len(r.Partitions))
	for i, p := range r.Partitions {
		var err error
		if requests[i], err = NewFetchRequest(r.Topic, p, r.MaxBytes, 1, 500); err != nil {
			return err
		}
	}
	scratch := make([]byte, r.MaxBytes+1024)
	var send, want position
	for range r.Ahead {
		if err := requests[send.partition].Send(r.Conn, send.offset); err != nil {
			return err
		}
		send = r.after(send)
	}
	for !stop.Load() {
		if err := r.receive(r.expect(want), scratch); err != nil {
			return err
		}
		want = r.after(want)
		if err := requests[send.partition].Send(r.Conn, send.offset); err != nil {
			return err
		}
		send = r.after(send)
	}
	return nil
}

// receive reads one answer that must carry exactly the given number of bytes of records.
func (r *Reader) receive(records int, scratch []byte) error {
	const peek = 4 + 128 // size and head; every answer with records is longer
	p, err := r.Conn.Peek(peek)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(p))
	head, err := ParseFetchHead(p[4:])
	if err != nil {
		return err
	}
	if head.Records != records {
		return fmt.Errorf("%w to Fetch: %d bytes of records for %d", ErrFrame, head.Records, records)
	}
	if err := r.Conn.Discard(4+size-peek, scratch); err != nil {
		return err
	}
	r.Bytes.Add(int64(records))
	return nil
}
