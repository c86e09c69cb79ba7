package work

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"gregor/compat/bench/raw"
)

const (
	fetchBytes  = 1 << 30 // in all partitions together
	fetchAtOnce = 1 << 20 // max.partition.fetch.bytes of the common clients
	fetchSlices = 2       // broker and bare loop take turns in a run, since their ratio is looked at
	fetchAhead  = 2       // requests on their way, so that the broker always has the next one
)

// rawFetch fills 8 partitions and reads them from the page cache over 1 and over 8 connections, and beside that sends
// the same segment files by a bare sendfile loop to the same client.
func rawFetch(e *Env) (Values, error) {
	// Every goroutine here lives in blocking system calls; with one processor for each, none waits for another's. The
	// bare loop, whose server is in this process, needs it most, and it has to be the most that this machine can do.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(24))
	batch, err := raw.AppendBatchOfSize(nil, largeBatch, largeRecords, time.Now().UnixMilli(), 1)
	if err != nil {
		return nil, err
	}
	return e.withTopic(e.topic(), largePerQuest, func(control *raw.Conn) (Values, error) {
		const times = fetchBytes / largeBatch / largePerQuest
		request := raw.ProduceRequest(e.topic(), sequence(largePerQuest), batch)
		if err := fill(e.Broker.Addr, request, largePerQuest, times); err != nil {
			return nil, fmt.Errorf("fill: %w", err)
		}
		ends, err := control.EndOffsets(e.topic(), largePerQuest)
		if err != nil {
			return nil, err
		}
		for i, end := range ends {
			if end != times*largeRecords {
				return nil, fmt.Errorf("partition %d ends at %d after %d records", i, end, times*largeRecords)
			}
		}
		v := Values{}
		for _, conns := range []int{1, 8} {
			if err := e.fetchWith(conns, ends[0], v); err != nil {
				return nil, err
			}
		}
		return v, nil
	})
}

func (e *Env) fetchWith(conns int, end int64, v Values) error {
	var u, bare Usage
	window := e.Window
	defer func() { e.Window, e.used = window, u }() // and not what the bare loop used
	e.Window = window / fetchSlices
	for range fetchSlices {
		slice, err := e.fetchFrom(conns, end)
		if err != nil {
			return err
		}
		u.add(slice)
		if slice, err = e.bare(conns); err != nil {
			return fmt.Errorf("bare sendfile: %w", err)
		}
		bare.add(slice)
	}
	name := fmt.Sprintf("raw-fetch-%d", conns)
	v[name+"/gb"] = perSecond(u.Count, u.Wall) / 1e9
	v[name+"/cpu"] = perGB(u.Broker, u.Count)
	v[name+"/bare"] = perSecond(bare.Count, bare.Wall) / 1e9
	v[name+"/ratio"] = v[name+"/gb"] / v[name+"/bare"]
	return nil
}

func (e *Env) fetchFrom(conns int, end int64) (Usage, error) {
	var bytes atomic.Int64
	var loads []func(*atomic.Bool) error
	for i := range conns {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return Usage{}, err
		}
		defer c.Close()
		r := raw.Reader{
			Conn: c, Topic: e.topic(), Partitions: sequence(largePerQuest), End: end,
			BatchSize: largeBatch, BatchCount: largeRecords, MaxBytes: fetchAtOnce, Ahead: fetchAhead, Bytes: &bytes,
		}
		if conns > 1 {
			r.Partitions = []int32{int32(i % largePerQuest)}
		}
		loads = append(loads, r.Run)
	}
	return e.steady(&bytes, loads...)
}

// bare sends each connection one partition's segment file from this process.
func (e *Env) bare(conns int) (Usage, error) {
	var files []string
	for i := range largePerQuest {
		files = append(files, e.Broker.Segment(e.topic(), i))
	}
	s, err := raw.NewBareServer(files, fetchAtOnce)
	if err != nil {
		return Usage{}, err
	}
	defer s.Close() // after the connections, whose closing ends the server's loops
	var bytes atomic.Int64
	var loads []func(*atomic.Bool) error
	for range conns {
		c, err := raw.Dial(s.Addr())
		if err != nil {
			return Usage{}, err
		}
		defer c.Close()
		loads = append(loads, func(stop *atomic.Bool) error { return raw.Drain(c, fetchAtOnce, stop, &bytes) })
	}
	return e.steady(&bytes, loads...)
}
