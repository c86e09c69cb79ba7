package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// load is a producer with acks=all and a consumer, which go on through faults.
type load struct {
	t       *testing.T
	topic   string
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	acked    []string
	last     time.Time     // of the last answer
	silence  time.Duration // the longest time without an answer
	consumed int
	pause    time.Duration // the longest time without a record for the consumer
	read     time.Time
}

func startLoad(t *testing.T, addr, topic string, partitions int) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{t: t, topic: topic, stop: stop, last: time.Now(), read: time.Now()}
	client := func(opts ...kgo.Opt) *kgo.Client {
		c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(100*time.Millisecond))...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	producer := client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(200))
	consumer := client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	l.running.Go(func() {
		defer producer.Close()
		for n := 0; ctx.Err() == nil; n++ {
			r := &kgo.Record{Topic: topic, Partition: int32(n % partitions), Value: fmt.Append(nil, n)}
			producer.Produce(context.Background(), r, l.answered)
			time.Sleep(2 * time.Millisecond)
		}
		if err := producer.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.running.Go(func() {
		defer consumer.Close()
		for ctx.Err() == nil {
			l.took(consumer.PollFetches(ctx).NumRecords())
		}
	})
	t.Cleanup(func() { l.stop(); l.running.Wait() })
	return l
}

func (l *load) answered(r *kgo.Record, err error) {
	if err != nil {
		l.t.Errorf("a record is not acknowledged: %v", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, string(r.Value))
	l.silence = max(l.silence, time.Since(l.last))
	l.last = time.Now()
}

func (l *load) took(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consumed += n
	l.pause = max(l.pause, time.Since(l.read))
	l.read = time.Now()
}

// flows says whether records come through: the first needs a producer id, which comes from ZooKeeper.
func (l *load) flows(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.consumed == 0 {
		return errors.New("no record yet")
	}
	return nil
}

// gap returns the longest times without an answer for the producer, and without a record for the consumer, since the last call.
func (l *load) gap() (silence, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	silence, pause = max(l.silence, time.Since(l.last)), max(l.pause, time.Since(l.read))
	l.silence, l.pause = 0, 0
	return silence.Round(time.Millisecond), pause.Round(time.Millisecond)
}

// check ends the load and reads the topic: each acknowledged record must be there once, and no other.
func (l *load) check(addr string) {
	l.t.Helper()
	l.stop()
	l.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(l.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	seen, read := map[string]int{}, 0
	for read < len(l.acked) {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			l.t.Errorf("read %d of %d records: %v", read, len(l.acked), errs)
			break
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; read++ })
	}
	wrong := 0
	for _, value := range l.acked {
		if seen[value] != 1 {
			wrong++
		}
	}
	if wrong > 0 || len(seen) != len(l.acked) {
		l.t.Errorf("%d of %d acknowledged records are not there exactly once; %d values are there", wrong, len(l.acked), len(seen))
	}
	l.t.Logf("%d records acknowledged, each is there once; the consumer beside it got %d", len(l.acked), l.consumed)
}
