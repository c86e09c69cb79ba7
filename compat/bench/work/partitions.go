package work

import (
	"slices"
	"time"

	"gregor/compat/bench/raw"
)

const (
	manyTopic     = "bench-many"
	many          = 1000
	manyRecord    = 1024
	manyRate      = 5000                 // records a second
	manyTick      = 5 * time.Millisecond // linger of the common clients: one request each tick
	manyPerTick   = manyRate / int(time.Second/manyTick)
	floodPerQuest = 250 // partitions of one request of the flood
	floodConns    = 2
)

// manyRequests are requests that together hold one record for each of the 1,000 partitions.
func manyRequests(perRequest int) [][]byte {
	batch := raw.AppendBatch(nil, raw.Batch{Records: 1, ValueSize: manyRecord, Timestamp: time.Now().UnixMilli(), Seed: 1})
	var requests [][]byte
	all := sequence(many)
	for i := 0; i < many; i += perRequest {
		requests = append(requests, raw.ProduceRequest(manyTopic, all[i:i+perRequest], batch))
	}
	return requests
}

// createMany makes the topic unless it is there.
func (e *Env) createMany() error {
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.CreateTopic(manyTopic, many, nil)
}

// partitionsRate sends 5,000 records a second in turn to 1,000 partitions: every 5 ms a request of 25 partitions.
func partitionsRate(e *Env) (Values, error) {
	if err := e.createMany(); err != nil {
		return nil, err
	}
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	loop := &raw.OpenLoop{
		Conn: c, Cycle: raw.NewCycle(1, manyRequests(manyPerTick)...), Interval: manyTick,
		Warm: int(e.Warm / manyTick), Count: int(e.Window / manyTick),
		Check: func(frame []byte) error { return raw.CheckProduce(frame, manyPerTick) },
	}
	res, err := e.openLoop(loop, nil)
	if err != nil {
		return nil, err
	}
	v := quantiles("partitions-1000", res.Latency)
	delete(v, "partitions-1000/p999")
	return v, nil
}

// partitionsFlood sends one record to each of 1,000 partitions over and over as fast as answers come.
func partitionsFlood(e *Env) (Values, error) {
	if err := e.createMany(); err != nil {
		return nil, err
	}
	cycle := raw.NewCycle(inFlight, manyRequests(floodPerQuest)...)
	u, err := e.flood(slices.Repeat([]*raw.Cycle{cycle}, floodConns), floodPerQuest)
	if err != nil {
		return nil, err
	}
	return Values{"partitions-1000-flood/rate": perSecond(u.Count*floodPerQuest, u.Wall)}, nil
}
