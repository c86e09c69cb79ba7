package work

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"gregor/compat/bench/raw"
)

const (
	inFlight      = 5 // requests on their way over one connection, as an idempotent client has
	smallConns    = 4 // raw-produce-1x1k
	largeConns    = 2 // raw-produce-8x64k
	largeBatch    = 64 << 10
	largeRecords  = 64 // in a large batch: 1 KiB each
	largePerQuest = 8  // partitions of one large request
)

// rawProduce8x64k: one request is 8 partitions with one batch of 64 KiB each.
func rawProduce8x64k(e *Env) (Values, error) {
	batch, err := raw.AppendBatchOfSize(nil, largeBatch, largeRecords, time.Now().UnixMilli(), 1)
	if err != nil {
		return nil, err
	}
	return e.withTopic(e.topic(), largePerQuest, func(*raw.Conn) (Values, error) {
		cycle := raw.NewCycle(inFlight, raw.ProduceRequest(e.topic(), sequence(largePerQuest), batch))
		u, err := e.flood(slices.Repeat([]*raw.Cycle{cycle}, largeConns), largePerQuest)
		bytes := u.Count * largePerQuest * largeBatch
		return Values{
			"raw-produce-8x64k/mb":  perSecond(bytes, u.Wall) / 1e6,
			"raw-produce-8x64k/cpu": perGB(u.Broker, bytes),
		}, err
	})
}

// rawProduce1x1k: one request is one record of 1 KiB; each connection has a partition of its own.
func rawProduce1x1k(e *Env) (Values, error) {
	batch := raw.AppendBatch(nil, raw.Batch{Records: 1, ValueSize: 1024, Timestamp: time.Now().UnixMilli(), Seed: 1})
	return e.withTopic(e.topic(), smallConns, func(*raw.Conn) (Values, error) {
		cycles := make([]*raw.Cycle, smallConns)
		for i := range cycles {
			cycles[i] = raw.NewCycle(inFlight, raw.ProduceRequest(e.topic(), []int32{int32(i)}, batch))
		}
		u, err := e.flood(cycles, 1)
		bytes := u.Count * 1024
		return Values{
			"raw-produce-1x1k/mb":  perSecond(bytes, u.Wall) / 1e6,
			"raw-produce-1x1k/cpu": perGB(u.Broker, bytes),
		}, err
	})
}

// flood sends the requests of cycle i over and over on connection i and counts answers.
func (e *Env) flood(cycles []*raw.Cycle, partitions int) (Usage, error) {
	var answers atomic.Int64
	var loads []func(*atomic.Bool) error
	for _, cycle := range cycles {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return Usage{}, err
		}
		defer c.Close()
		p := raw.Pipeline{
			Conn: c, Cycle: cycle, InFlight: inFlight, Answers: &answers,
			Check: func(frame []byte) error { return raw.CheckProduce(frame, partitions) },
		}
		loads = append(loads, p.Run)
	}
	return e.steady(&answers, loads...)
}

// fill writes the given number of equal requests.
func fill(addr string, request []byte, partitions, times int) error {
	c, err := raw.Dial(addr)
	if err != nil {
		return err
	}
	var answers atomic.Int64
	p := raw.Pipeline{
		Conn: c, Cycle: raw.NewCycle(inFlight, request), InFlight: inFlight, Answers: &answers, Limit: int64(times),
		Check: func(frame []byte) error { return raw.CheckProduce(frame, partitions) },
	}
	var stop atomic.Bool
	return errors.Join(p.Run(&stop), c.Close())
}
