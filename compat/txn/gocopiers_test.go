package txn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What all copiers have in common.
const (
	session    = 2 * time.Second
	heartbeat  = 300 * time.Millisecond
	fetchWait  = 100 * time.Millisecond
	txnTimeout = 20 * time.Second
	perTxn     = 20 // records at most
)

func untilStopped(stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop
		cancel()
	}()
	return ctx, cancel
}

// abortNow says of every fifth transaction that it is to be aborted.
func abortNow() bool { return rand.IntN(5) == 0 }

// newSession is franz-go's read, process, write.
func newSession(j job) (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(kgo.SeedBrokers(j.broker), kgo.TransactionalID(j.id), kgo.TransactionTimeout(txnTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumerGroup(j.group), kgo.ConsumeTopics(j.input),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat), kgo.FetchMaxWait(fetchWait), kgo.RequireStableFetchOffsets())
}

func franzCopier(j job, stop <-chan struct{}) error {
	ctx, cancel := untilStopped(stop)
	defer cancel()
	s, err := newSession(j)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready")
	for ctx.Err() == nil {
		records := s.PollRecords(ctx, perTxn).Records()
		if len(records) == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			return err
		}
		promise := kgo.AbortingFirstErrPromise(s.Client())
		for _, r := range records {
			s.Produce(ctx, &kgo.Record{Topic: j.output, Partition: r.Partition, Key: r.Key, Value: r.Value}, promise.Promise())
		}
		failed := promise.Err()
		committed, err := s.End(ctx, kgo.TransactionEndTry(failed == nil && !abortNow()))
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case committed:
			fmt.Println("committed", len(records))
		default: // the session goes back to the last committed offsets by itself
			fmt.Println("aborted", len(records), failed)
		}
	}
	return nil
}

func saramaConfig(j job) *sarama.Config {
	conf := sarama.NewConfig()
	conf.Version = sarama.V3_9_0_0
	conf.Producer.Idempotent = true
	conf.Producer.RequiredAcks = sarama.WaitForAll
	conf.Producer.Return.Successes = true
	conf.Producer.Partitioner = sarama.NewManualPartitioner
	conf.Producer.Transaction.ID = j.id
	conf.Producer.Transaction.Timeout = txnTimeout
	conf.Producer.Transaction.Retry.Max = 200
	conf.Producer.Retry.Max = 100
	conf.Net.MaxOpenRequests = 1
	conf.Metadata.Retry.Max = 50
	conf.Consumer.IsolationLevel = sarama.ReadCommitted
	conf.Consumer.Offsets.Initial = sarama.OffsetOldest
	conf.Consumer.Offsets.AutoCommit.Enable = false
	conf.Consumer.Group.Session.Timeout = session
	conf.Consumer.Group.Heartbeat.Interval = heartbeat
	conf.Consumer.MaxWaitTime = fetchWait
	return conf
}

func saramaCopier(j job, stop <-chan struct{}) error {
	ctx, cancel := untilStopped(stop)
	defer cancel()
	conf := saramaConfig(j)
	producer, err := sarama.NewSyncProducer([]string{j.broker}, conf)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	g, err := sarama.NewConsumerGroup([]string{j.broker}, j.group, conf)
	if err != nil {
		return err
	}
	h := &saramaHandler{job: j, producer: producer, failed: make(chan error, 1)}
	go func() {
		for ctx.Err() == nil {
			if err := g.Consume(ctx, []string{j.input}, h); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.failed:
		return err
	}
}

// saramaHandler copies the records of claims, one transaction at a time.
type saramaHandler struct {
	job
	mu       sync.Mutex
	producer sarama.SyncProducer
	failed   chan error
}

func (*saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			records := []*sarama.ConsumerMessage{m}
			for len(records) < perTxn && len(claim.Messages()) > 0 {
				records = append(records, <-claim.Messages())
			}
			if err := h.copy(s, records); err != nil {
				select {
				case h.failed <- err:
				default:
				}
				return err
			}
		}
	}
}

func (h *saramaHandler) copy(s sarama.ConsumerGroupSession, records []*sarama.ConsumerMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := records[len(records)-1]
	for {
		if s.Context().Err() != nil {
			return nil // the claim is another member's now
		}
		if err := h.producer.BeginTxn(); err != nil {
			return err
		}
		var out []*sarama.ProducerMessage
		for _, r := range records {
			out = append(out, &sarama.ProducerMessage{Topic: h.output, Partition: r.Partition, Key: sarama.ByteEncoder(r.Key), Value: sarama.ByteEncoder(r.Value)})
		}
		if err := h.producer.SendMessages(out); err != nil {
			return err
		}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{h.input: {{Partition: last.Partition, Offset: last.Offset + 1}}}
		if err := h.producer.AddOffsetsToTxn(offsets, h.group); err != nil {
			return err
		}
		if abortNow() {
			if err := h.producer.AbortTxn(); err != nil {
				return err
			}
			fmt.Println("aborted", len(records))
			continue
		}
		if err := h.producer.CommitTxn(); err != nil {
			return err
		}
		fmt.Println("committed", len(records))
		return nil
	}
}
