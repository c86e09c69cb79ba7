package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestKgoTransactions runs franz-go's read, process, write loop: every input is in the output once, whatever was aborted. With the versions of
// Kafka 3.8 it speaks transaction version 0, with the newest 2, and 1 when transaction.version is set to that.
func TestKgoTransactions(t *testing.T) {
	for name, as := range map[string]struct {
		versions *kversion.Versions
		level    int16
	}{"3.8": {kversion.V3_8_0(), 2}, "newest": {nil, 2}, "newest at level 1": {nil, 1}} {
		t.Run(name, func(t *testing.T) { runEtl(t, as.versions, as.level) })
	}
}

func runEtl(t *testing.T, versions *kversion.Versions, level int16) {
	const inputs, perTxn = 300, 10
	b, c := txnBroker(t, t.TempDir(), "num.partitions", "3")
	features := kmsg.NewPtrUpdateFeaturesRequest()
	features.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{toLevel(level, true, featureSafeDowngrade)}
	if resp := ask[*kmsg.UpdateFeaturesResponse](c, 2, features); resp.ErrorCode != 0 {
		t.Fatalf("level %d: %+v", level, resp)
	}
	c.createTopic("in")
	c.createTopic("out")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts := []kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50 * time.Millisecond)}
	if versions != nil {
		opts = append(opts, kgo.MaxVersions(versions))
	}
	fill, err := kgo.NewClient(append(opts, kgo.DefaultProduceTopic("in"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	var records []*kgo.Record
	for i := range inputs {
		records = append(records, kgo.StringRecord(fmt.Sprint(i)))
	}
	if err := fill.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	etl(ctx, t, opts, inputs, perTxn)
	seen := readCommitted(ctx, t, opts, inputs)
	for i := range inputs {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("input %d is in the output %d times", i, seen[fmt.Sprint(i)])
		}
	}
	if adds := b.server.Stats().Requests[24]; (adds > 0) != (versions != nil || level < 2) {
		t.Errorf("AddPartitionsToTxn came %d times", adds)
	}
}

// etl copies in to out, in transactions of which every third is aborted.
func etl(ctx context.Context, t *testing.T, opts []kgo.Opt, inputs, perTxn int) {
	t.Helper()
	s, err := kgo.NewGroupTransactSession(append(opts, kgo.TransactionalID("etl"), kgo.ConsumerGroup("etl"), kgo.ConsumeTopics("in"),
		kgo.DefaultProduceTopic("out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for done, n := 0, 0; done < inputs; n++ {
		fetches := s.PollRecords(ctx, perTxn)
		if ctx.Err() != nil {
			t.Fatalf("only %d records were copied in time", done)
		}
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { s.Produce(ctx, kgo.StringRecord(string(r.Value)), nil) })
		committed, err := s.End(ctx, kgo.TransactionEndTry(n%3 != 1))
		if err != nil {
			t.Fatal(err)
		}
		if committed {
			done += fetches.NumRecords()
		}
	}
}

// readCommitted counts the values of the topic out that a read_committed consumer sees, until there are n.
func readCommitted(ctx context.Context, t *testing.T, opts []kgo.Opt, n int) map[string]int {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.ConsumeTopics("out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	seen := map[string]int{}
	for got := 0; got < n && ctx.Err() == nil; {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			seen[string(r.Value)]++
			got++
		})
	}
	return seen
}
