package txn

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKafkaTransactions: the tool of Kafka 4.4.0 lists and describes transactions, finds one that no coordinator knows of any more, and aborts it.
func TestKafkaTransactions(t *testing.T) {
	lib, err := jars.Tools("4.4.0").Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t, harness.Config{})
	tool := func(args ...string) string {
		t.Helper()
		cmd := jars.Java(t.Context(), lib+"/*", "org.apache.kafka.tools.TransactionsCommand", append([]string{"--bootstrap-server", b.Addr()}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kafka-transactions %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	topic, id := harness.Topic("hanging"), harness.Topic("id")
	b.Create(t, 1, nil, topic)
	producer := b.Client(t, kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic))
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := producer.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if out := tool("list"); !regexp.MustCompile(regexp.QuoteMeta(id) + `\s+0\s+\d+\s+Ongoing`).MatchString(out) {
		t.Errorf("list:\n%s", out)
	}
	if out := tool("describe", "--transactional-id", id); !strings.Contains(out, topic+"-0") || !strings.Contains(out, "Ongoing") {
		t.Errorf("describe:\n%s", out)
	}
	if out := tool("describe-producers", "--topic", topic, "--partition", "0"); !regexp.MustCompile(`\n\d+\s+0\s+-?\d+\s+0\s+\d+\s+0\s*\n`).MatchString(out) {
		t.Errorf("describe-producers:\n%s", out)
	}
	adm := kadm.NewClient(b.Client(t))
	if _, err := adm.DeleteTopics(t.Context(), "__transaction_state"); err != nil {
		t.Fatal(err)
	}
	await(t, func() string { // it must be older than no time at all, in milliseconds
		if out := tool("find-hanging", "--broker-id", "0", "--max-transaction-timeout", "0"); !regexp.MustCompile(regexp.QuoteMeta(topic) + `\s+0\s+\d+\s+0`).MatchString(out) {
			return "find-hanging:\n" + out
		}
		return ""
	})
	tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
	after := b.Client(t, kgo.TransactionalID(id+"-2"), kgo.DefaultProduceTopic(topic))
	if err := after.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := after.ProduceSync(t.Context(), kgo.StringRecord("after")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := after.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader := b.Client(t, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var seen []string
	reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen = append(seen, string(r.Value)) })
	if fmt.Sprint(seen) != "[after]" {
		t.Errorf("a read_committed reader got %v", seen)
	}
}

// await waits until cond says "".
func await(t *testing.T, cond func() string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		said := cond()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(said)
		}
	}
}
