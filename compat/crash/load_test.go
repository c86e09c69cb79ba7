package crash

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topicCount = 3
	partitions = 4
	producers  = 3
	// pace: every producer sends perTick records each tick, so that acks come all the time and logs stay small.
	tick    = 5 * time.Millisecond
	perTick = 12
)

// place is one partition, id one record: the n-th that a producer sent to that place.
type place struct {
	topic     string
	partition int32
}

type id struct {
	producer int
	n        int
}

// load is producers and a consumer that run while the broker dies and comes back.
type load struct {
	broker *harness.Broker
	topics []string
	acks   atomic.Int64 // acked records so far

	mu     sync.Mutex // guards what follows
	acked  map[place]map[int64]id
	seen   map[place]map[int64]id
	faults []string

	clients  []*kgo.Client
	consumer *kgo.Client
	stop     chan struct{}
	workers  sync.WaitGroup
}

func startLoad(t *testing.T, b *harness.Broker) *load {
	t.Helper()
	l := &load{broker: b, acked: map[place]map[int64]id{}, seen: map[place]map[int64]id{}, stop: make(chan struct{})}
	for range topicCount {
		l.topics = append(l.topics, harness.Topic("crash"))
	}
	segment := "segment.bytes=100000" // so that many a kill meets a roll
	if harness.Foreign(t, "segments below 1 MiB, which Apache Kafka 4 does not make") {
		segment = "segment.bytes=1048576"
	}
	b.Create(t, partitions, []string{segment}, l.topics...)
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i := range producers {
		cl := b.Client(t, kgo.ProducerBatchCompression(codecs[i%len(codecs)]), kgo.MaxBufferedRecords(2000), quickRetry(),
			kgo.RetryTimeout(2*time.Minute), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(50_000)) // a batch must fit into a segment
		l.clients = append(l.clients, cl)
		l.workers.Go(func() { l.produce(cl, i) })
	}
	l.consumer = b.Client(t, kgo.ConsumePartitions(l.fromStart()), quickRetry(), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	l.workers.Go(l.consume)
	return l
}

func quickRetry() kgo.Opt {
	return kgo.RetryBackoffFn(func(int) time.Duration { return 30 * time.Millisecond })
}

func (l *load) fromStart() map[string]map[int32]kgo.Offset {
	from := map[string]map[int32]kgo.Offset{}
	for _, topic := range l.topics {
		from[topic] = map[int32]kgo.Offset{}
		for p := range int32(partitions) {
			from[topic][p] = kgo.NewOffset().AtStart()
		}
	}
	return from
}

func (l *load) produce(cl *kgo.Client, producer int) {
	rng := rand.New(rand.NewPCG(uint64(producer), 1))
	next := map[place]int{}
	pace := time.NewTicker(tick)
	defer pace.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-pace.C:
		}
		for range perTick {
			at := place{l.topics[rng.IntN(topicCount)], int32(rng.IntN(partitions))}
			n := next[at]
			next[at]++
			l.send(cl, at, id{producer, n}, rng.IntN(1500))
		}
	}
}

func (l *load) send(cl *kgo.Client, at place, rec id, padding int) {
	value := append(fmt.Appendf(nil, "%d %d ", rec.producer, rec.n), bytes.Repeat([]byte("x"), padding)...)
	cl.Produce(context.Background(), &kgo.Record{Topic: at.topic, Partition: at.partition, Value: value}, func(r *kgo.Record, err error) {
		if err != nil {
			l.fault("producer %d: record %d of %s-%d failed for good: %v", rec.producer, rec.n, at.topic, at.partition, err)
			return
		}
		l.note(l.acked, "acked", at, r.Offset, rec)
		l.acks.Add(1)
	})
}

// consume reads all along and notes what it saw; after a restart it may not see anything else at the same offset.
func (l *load) consume() {
	for {
		fetches := l.consumer.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachError(func(topic string, p int32, err error) {
			l.fault("consumer of %s-%d: %v", topic, p, err)
		})
		for r := range fetches.RecordsAll() {
			if rec, err := parse(r.Value); err != nil {
				l.fault("consumer: offset %d of %s-%d: %v", r.Offset, r.Topic, r.Partition, err)
			} else {
				l.note(l.seen, "seen", place{r.Topic, r.Partition}, r.Offset, rec)
			}
		}
	}
}

func parse(value []byte) (id, error) {
	var rec id
	if _, err := fmt.Sscanf(string(value[:min(len(value), 24)]), "%d %d ", &rec.producer, &rec.n); err != nil {
		return rec, fmt.Errorf("a value that nobody wrote: %.60q: %w", value, err)
	}
	return rec, nil
}

func (l *load) note(in map[place]map[int64]id, what string, at place, offset int64, rec id) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in[at] == nil {
		in[at] = map[int64]id{}
	}
	if old, ok := in[at][offset]; ok && old != rec {
		l.faults = append(l.faults, fmt.Sprintf("offset %d of %s-%d was %s twice: %v and %v", offset, at.topic, at.partition, what, old, rec))
	}
	in[at][offset] = rec
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// progress waits until n more records are acked: the broker serves again.
func (l *load) progress(t *testing.T, n int64) {
	t.Helper()
	want := l.acks.Load() + n
	for deadline := time.Now().Add(40 * time.Second); l.acks.Load() < want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records acked, no more within 40 s; faults so far: %q", l.acks.Load(), l.faults)
		}
	}
}

// finish stops the producers, waits until all they sent is acked, and stops the consumer once it saw the end.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.stop)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for i, cl := range l.clients {
		if err := cl.Flush(ctx); err != nil {
			t.Errorf("producer %d: %d records neither acked nor failed: %v", i, cl.BufferedProduceRecords(), err)
		}
	}
	for l.behind() && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if l.behind() {
		t.Error("the consumer that ran all along did not see every acked record")
	}
	l.consumer.Close()
	l.workers.Wait()
}

func (l *load) behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, acked := range l.acked {
		if len(l.seen[at]) < len(acked) {
			return true
		}
	}
	return false
}
