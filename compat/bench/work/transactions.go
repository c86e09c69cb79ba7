package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/bench/raw"
)

const (
	txnPartitions = 3
	txnRecords    = 10 // of each transaction
	txnSize       = 1024
)

// transactions is how many small transactions a second producers can commit, alone, 10 and 100 of them: 10 records of 1 KiB over 3 partitions, the
// next when the commit was answered.
func transactions(e *Env) (Values, error) {
	out := Values{}
	for _, n := range []int{1, 10, 100} {
		u, err := e.commitTransactions(n)
		if err != nil {
			return nil, fmt.Errorf("%d producers: %w", n, err)
		}
		out[fmt.Sprintf("transactions/%d", n)] = perSecond(u.Count, u.Wall)
		out[fmt.Sprintf("transactions/%d/cpu", n)] = float64(u.Broker.Microseconds()) / float64(max(u.Count, 1))
	}
	return out, nil
}

// commitTransactions measures a number of producers.
func (e *Env) commitTransactions(producers int) (u Usage, err error) {
	topic := fmt.Sprintf("%s-%d", e.topic(), producers)
	_, err = e.withTopic(topic, txnPartitions, func(*raw.Conn) (Values, error) {
		var count atomic.Int64
		loads := make([]func(*atomic.Bool) error, producers)
		for i := range loads {
			client, err := kgo.NewClient(
				kgo.SeedBrokers(e.Broker.Addr),
				kgo.DefaultProduceTopic(topic),
				kgo.TransactionalID(fmt.Sprintf("%s-%d", topic, i)),
				kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.ProducerBatchCompression(kgo.NoCompression()),
				kgo.ProducerLinger(0),
			)
			if err != nil {
				return nil, err
			}
			defer client.Close()
			loads[i] = func(stop *atomic.Bool) error { return commitUntil(client, stop, &count) }
		}
		u, err = e.steady(&count, loads...)
		return Values{}, err
	})
	return u, err
}

// commitUntil commits one transaction after another.
func commitUntil(client *kgo.Client, stop *atomic.Bool, count *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	value := make([]byte, txnSize)
	_, _ = rand.Read(value) // never fails
	for !stop.Load() {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		records := make([]*kgo.Record, txnRecords)
		for i := range records {
			records[i] = &kgo.Record{Value: value, Partition: int32(i % txnPartitions)}
		}
		err := client.ProduceSync(ctx, records...).FirstErr()
		err = errors.Join(err, client.EndTransaction(ctx, kgo.TransactionEndTry(err == nil)))
		if err != nil {
			return err
		}
		count.Add(1)
	}
	return nil
}
