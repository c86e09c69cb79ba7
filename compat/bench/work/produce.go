package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/bench/raw"
)

const (
	producePartitions = 6
	producePool       = 64 << 20 // bytes of values that may wait in the client
	produceRun        = 128      // records in a row for one partition
)

func produce1k(e *Env) (Values, error)   { return produce(e, "produce-1k", 1024) }
func produce100b(e *Env) (Values, error) { return produce(e, "produce-100b", 100) }

// produce is a real client in its idempotent default with acks=all, as fast as it can.
func produce(e *Env, name string, size int) (Values, error) {
	return e.withTopic(e.topic(), producePartitions, func(*raw.Conn) (Values, error) {
		pool := producePool / (size + 100)
		client, err := kgo.NewClient(
			kgo.SeedBrokers(e.Broker.Addr),
			kgo.DefaultProduceTopic(e.topic()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.RequiredAcks(kgo.AllISRAcks()),
			kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ProducerBatchMaxBytes(1_000_000),
			kgo.ProducerLinger(2*time.Millisecond),
			kgo.MaxBufferedRecords(pool+1), // the free list is the limit
		)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		p := newProducer(client, pool, size)
		u, err := e.steady(&p.acked, p.run)
		if err != nil {
			return nil, err
		}
		bytes := u.Count * int64(size)
		return Values{
			name + "/mb":  perSecond(bytes, u.Wall) / 1e6,
			name + "/cpu": perGB(u.Broker, bytes),
		}, nil
	})
}

// producer sends records from a fixed stock, each again as soon as it is acknowledged.
type producer struct {
	client *kgo.Client
	acked  atomic.Int64
	values [][]byte

	mu    sync.Mutex // guards free and err
	free  []*kgo.Record
	err   error
	ready sync.Cond // free or err has changed
}

func newProducer(client *kgo.Client, pool, size int) *producer {
	const source = 1 << 20
	random := make([]byte, source+size)
	_, _ = rand.Read(random) // never fails
	p := &producer{client: client}
	p.ready.L = &p.mu
	for at := 0; len(p.values) < 4096; at = (at + 257) % source {
		p.values = append(p.values, random[at:at+size:at+size])
	}
	records := make([]kgo.Record, pool)
	for i := range records {
		p.free = append(p.free, &records[i])
	}
	return p
}

// done is called by the client for each record, by one goroutine at a time.
func (p *producer) done(r *kgo.Record, err error) {
	if err == nil {
		p.acked.Add(1)
	}
	p.mu.Lock()
	if err != nil && p.err == nil {
		p.err = err
	}
	p.free = append(p.free, r)
	wake := len(p.free) >= 1024 || err != nil
	p.mu.Unlock()
	if wake {
		p.ready.Signal()
	}
}

// take swaps an empty slice for the records that are free, waiting for a good number of them.
func (p *producer) take(empty []*kgo.Record) ([]*kgo.Record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) < 1024 && p.err == nil {
		p.ready.Wait()
	}
	taken := p.free
	p.free = empty
	return taken, p.err
}

func (p *producer) run(stop *atomic.Bool) error {
	ctx := context.Background()
	var stock []*kgo.Record
	var err error
	for n := 0; !stop.Load(); {
		if stock, err = p.take(stock[:0]); err != nil {
			return err
		}
		for _, r := range stock {
			*r = kgo.Record{Value: p.values[n%len(p.values)], Partition: int32(n / produceRun % producePartitions)}
			p.client.Produce(ctx, r, p.done)
			n++
		}
	}
	flush, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.client.Flush(flush); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.err)
}
