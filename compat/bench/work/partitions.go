package work

import (
	"fmt"
	"slices"
	"time"

	"gregor/compat/bench/raw"
)

const (
	many          = 1000
	manyRecord    = 1024
	manyRate      = 5000                 // records a second
	manyTick      = 5 * time.Millisecond // linger of the common clients: one request each tick
	manyPerTick   = manyRate / int(time.Second/manyTick)
	manyAtOnce    = 50  // partitions of one request of a fill
	floodPerQuest = 250 // partitions of one request of the flood
	floodConns    = 2
)

// partitions1000 makes a topic of 1,000 partitions, times the first records of each, and goes on with a fixed rate and a
// flood. The first records are more than an index interval (4 KiB), since Kafka pays for the first entry of each index,
// a page of a sparse mapped file, and without them would stall for many seconds later, in the fixed rate.
func partitions1000(e *Env) (Values, error) {
	return e.withTopic(e.topic(), many, func(*raw.Conn) (Values, error) {
		start := time.Now()
		for _, records := range []int{1, 8, 8} {
			if err := e.fillMany(records); err != nil {
				return nil, err
			}
		}
		v := Values{"partitions-1000/first": milliseconds(time.Since(start))}
		if err := e.manyFixed(v); err != nil {
			return nil, fmt.Errorf("fixed rate: %w", err)
		}
		cycle := raw.NewCycle(inFlight, e.manyRequests(floodPerQuest, 1)...)
		u, err := e.flood(slices.Repeat([]*raw.Cycle{cycle}, floodConns), floodPerQuest)
		v["partitions-1000/flood"] = perSecond(u.Count*floodPerQuest, u.Wall)
		return v, err
	})
}

// manyFixed sends 5,000 records a second in turn to 1,000 partitions: every 5 ms a request of 25 partitions.
func (e *Env) manyFixed(v Values) error {
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	loop := &raw.OpenLoop{
		Conn: c, Cycle: raw.NewCycle(1, e.manyRequests(manyPerTick, 1)...), Interval: manyTick,
		Warm: int(e.Warm / manyTick), Count: int(e.Window / manyTick),
		Check: func(frame []byte) error { return raw.CheckProduce(frame, manyPerTick) }, Patience: patience,
	}
	res, err := e.openLoop(loop, nil)
	v["partitions-1000/p50"] = milliseconds(res.Latency.Quantile(0.5))
	v["partitions-1000/p99"] = milliseconds(res.Latency.Quantile(0.99))
	return err
}

// manyRequests are requests that together hold one batch for each of the 1,000 partitions.
func (e *Env) manyRequests(perRequest, records int) [][]byte {
	batch := raw.AppendBatch(nil, raw.Batch{Records: records, ValueSize: manyRecord, Timestamp: time.Now().UnixMilli(), Seed: 1})
	var requests [][]byte
	all := sequence(many)
	for i := 0; i < many; i += perRequest {
		requests = append(requests, raw.ProduceRequest(e.topic(), all[i:i+perRequest], batch))
	}
	return requests
}

// fillMany puts one batch with the given number of records of 1 KiB into each of the 1,000 partitions.
func (e *Env) fillMany(records int) error {
	for _, request := range e.manyRequests(manyAtOnce, records) {
		if err := fill(e.Broker.Addr, request, manyAtOnce, 1); err != nil {
			return fmt.Errorf("fill %s: %w", e.topic(), err)
		}
	}
	return nil
}
