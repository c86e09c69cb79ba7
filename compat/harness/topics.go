package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Client returns a franz-go client that closes with the test. It retries for at most a minute.
func (b *Broker) Client(tb testing.TB, opts ...kgo.Opt) *kgo.Client {
	tb.Helper()
	base := []kgo.Opt{
		kgo.SeedBrokers(b.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.RetryTimeout(time.Minute),
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cl.Close)
	return cl
}

// Topic returns a topic name that no other test or run uses, so that one long-lived broker serves many runs.
func Topic(prefix string) string { return fmt.Sprintf("%s-%08x", prefix, rand.Uint32()) }

// Create makes topics with that many partitions and those key=value configs. Time retention is off unless config says
// otherwise, since tests write records with old timestamps.
func (b *Broker) Create(tb testing.TB, partitions int, config []string, topics ...string) {
	tb.Helper()
	off := "-1"
	configs := map[string]*string{"retention.ms": &off}
	for _, kv := range config {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			tb.Fatalf("topic config %q is not key=value", kv)
		}
		configs[key] = &value
	}
	adm := kadm.NewClient(b.Client(tb))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resps, err := adm.CreateTopics(ctx, int32(partitions), 1, configs, topics...)
	if err != nil {
		tb.Fatalf("create topics: %v", err)
	}
	for _, topic := range topics {
		if r, err := resps.On(topic, nil); err != nil || r.Err != nil {
			tb.Fatalf("create topic %s with %d partitions and %v: %v %v %s", topic, partitions, config, err, r.Err, r.ErrMessage)
		}
	}
	settle(ctx, tb, adm, partitions, topics)
	if b.External() && !b.scratch {
		tb.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := kadm.NewClient(b.Client(tb)).DeleteTopics(ctx, topics...); err != nil {
				tb.Logf("delete topics: %v", err)
			}
		})
	}
}

// settle waits until every partition has a leader that answers: Apache Kafka answers CreateTopics before that.
func settle(ctx context.Context, tb testing.TB, adm *kadm.Client, partitions int, topics []string) {
	tb.Helper()
	for {
		ends, err := adm.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		ready := 0
		ends.Each(func(kadm.ListedOffset) { ready++ })
		if err == nil && ready == partitions*len(topics) {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("the new topics %v have %d of %d partitions ready: %v", topics, ready, partitions*len(topics), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
