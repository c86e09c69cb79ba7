package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
	"gregor/compat/peer"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// quick are settings that make Kafka compact soon and keep its internal topics small.
var quick = []string{"log.cleaner.backoff.ms=100", "offsets.topic.num.partitions=7", "transaction.state.log.num.partitions=3", "log.index.size.max.bytes=65536"}

// TestRoundTripKRaft: Kafka 4.4.0 writes, gregor takes the directory over, Kafka 4.4.0 takes it back.
func TestRoundTripKRaft(t *testing.T) {
	if harness.Foreign(t, "that a data directory goes from Apache Kafka to gregor and back") {
		return
	}
	dir := filepath.Join(t.TempDir(), "kafka")
	theirs := peer.Start(t, "4.4.0", dir, quick...)
	populate(t, theirs.Broker)
	limit(t, theirs.Broker)
	want := capture(t, theirs.Broker)
	if len(want.Quotas) != 2 {
		t.Fatalf("quotas %q", want.Quotas)
	}
	theirs.Stop(t)
	if *keep != "" {
		pack(t, dir, want, filepath.Join(*keep, "..", "kafka-4.4.0", "kraft.zip"))
	}
	gregor(t, "import", "--from", dir)
	want = inOurs(t, dir, want)
	gregor(t, "export-kraft", "--data-dir", dir)
	theirs = peer.Start(t, "4.4.0", dir, quick...)
	backInKafka(t, theirs, want)
}

// TestRoundTripZooKeeper is the same with Kafka 3.9.1 and its ZooKeeper, which goes on meanwhile.
func TestRoundTripZooKeeper(t *testing.T) {
	if harness.Foreign(t, "that a data directory goes from Apache Kafka to gregor and back") {
		return
	}
	dir, zk := filepath.Join(t.TempDir(), "kafka"), peer.ZooKeeper(t)
	theirs := peer.StartOn(t, "3.9.1", zk, dir, quick...)
	populate(t, theirs.Broker)
	want := capture(t, theirs.Broker)
	configs := describe(t, "3.9.1", "kafka.admin.ConfigCommand", theirs.Broker, "--entity-type", "topics")
	theirs.Stop(t)
	gregor(t, "import", "--from", dir, "--configs", configs)
	want = inOurs(t, dir, want)
	theirs = peer.StartOn(t, "3.9.1", withNodes(t, zk, dir), dir, quick...)
	backInKafka(t, theirs, want)
}

// TestToZooKeeper: what gregor wrote from the beginning opens in Kafka 3.9.1 and 2.8.2, each with a ZooKeeper that knows nothing.
func TestToZooKeeper(t *testing.T) {
	if harness.Foreign(t, "that gregor's data directory opens in Apache Kafka") {
		return
	}
	dir := filepath.Join(t.TempDir(), "ours")
	ours := harness.Start(t, harness.Config{Dir: dir, Set: []string{"broker.id=1", "offsets.topic.num.partitions=7"}})
	plain(t, ours)
	want := capture(t, ours)
	ours.Stop(t)
	zk := peer.ZooKeeper(t)
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			root := zk + "/of-" + version
			peer.ZooKeeperShell(t, zk, "create /of-"+version+" ''\n")
			backInKafka(t, peer.StartOn(t, version, withNodes(t, root, copied), copied, quick...), want)
		})
	}
}

// withNodes exports a stopped gregor's directory and puts the nodes into ZooKeeper, whose address it returns.
func withNodes(t *testing.T, zk, dir string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "nodes")
	gregor(t, "export-zookeeper", "--data-dir", dir, "--to", script)
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	if out := peer.ZooKeeperShell(t, zk, string(text)); strings.Contains(out, "Node does not exist") || strings.Contains(out, "is not valid") {
		t.Fatalf("zookeeper-shell:\n%s", out)
	}
	return zk
}

// gregor runs one command to its end.
func gregor(t *testing.T, args ...string) {
	t.Helper()
	code, out := harness.RunArgs(t, harness.Binary(t), args, time.Minute)
	if code != 0 {
		t.Fatalf("gregor %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	t.Logf("gregor %s:\n%s", strings.Join(args, " "), out)
}

// describe is a file with what one of Kafka's tools prints of all topics.
func describe(t *testing.T, version, class string, b *harness.Broker, args ...string) string {
	t.Helper()
	lib, err := jars.Tools(version).Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := jars.Java(t.Context(), lib+"/*", class, append([]string{"--bootstrap-server", b.Addr(), "--describe"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "configs.txt")
	if err := os.WriteFile(name, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// inOurs starts gregor on the directory, compares, writes and commits more, and returns what is there then.
func inOurs(t *testing.T, dir string, want *state) *state {
	t.Helper()
	ours := harness.Start(t, harness.Config{Dir: dir})
	want.equal(t, capture(t, ours), "in gregor")
	if want.Stable["txn-0"] >= want.Ends["txn-0"] {
		t.Errorf("no transaction is open: the last stable offset is %d, the end %d", want.Stable["txn-0"], want.Ends["txn-0"])
	}
	records, offsets := want.total()
	t.Logf("%d records and %d committed offsets in %d partitions", records, offsets, len(want.Ends))
	reads(t, ours, "g1", "t0", map[int32]int64{0: 5, 1: 6})
	more(t, ours, "written by gregor")
	commit(t, ours, "g1", "t0", map[int32]int64{0: want.Ends["t0-0"]})
	endOpen(t, ours, "gregor")
	after := capture(t, ours)
	ours.Stop(t)
	return after
}

// backInKafka compares, and goes on.
func backInKafka(t *testing.T, theirs *peer.Kafka, want *state) {
	t.Helper()
	settleGroups(t, theirs.Broker, len(want.Offsets))
	want.equal(t, capture(t, theirs.Broker), "back in Kafka")
	reads(t, theirs.Broker, "g2", "t1", map[int32]int64{0: want.Offsets["g2"]["t1-0"]})
	more(t, theirs.Broker, "written by Kafka again")
	if _, ok := want.Ends["txn-0"]; ok {
		endOpen(t, theirs.Broker, "Kafka again")
	}
	if out := theirs.Output(); strings.Contains(out, "CorruptRecord") || strings.Contains(out, "corrupted index") {
		t.Errorf("Kafka complains:\n%s", out)
	}
}

// settleGroups waits until Kafka has loaded its groups.
func settleGroups(t *testing.T, b *harness.Broker, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	adm := kadm.NewClient(b.Client(t))
	for {
		groups, err := adm.ListGroups(ctx)
		if err == nil && len(groups) >= n {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d groups, want %d: %v", len(groups), n, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// topics are ten: t0 to t6 plain with every codec, one compacted, one transactional, one empty.
func plain(t *testing.T, b *harness.Broker) {
	t.Helper()
	for i := range 7 {
		b.Create(t, 2-i%2, []string{"segment.bytes=1048576", fmt.Sprintf("max.message.bytes=%d", 1_000_000+i)}, fmt.Sprint("t", i))
	}
	b.Create(t, 3, nil, "empty")
	more(t, b, "first")
	for g := range 5 {
		commit(t, b, fmt.Sprint("g", g), "t0", map[int32]int64{0: int64(4 + g), 1: int64(5 + g)})
		commit(t, b, fmt.Sprint("g", g), "t1", map[int32]int64{0: int64(10 + g)})
	}
}

// more writes to t0 to t6, with keys, headers and null values.
func more(t *testing.T, b *harness.Broker, label string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd", "none", "lz4"} {
		cl := b.Client(t, kgo.ProducerBatchCompression(codecs[codec]))
		for n := range 300 {
			r := &kgo.Record{Topic: fmt.Sprint("t", i), Partition: int32(n % (2 - i%2)), Key: fmt.Appendf(nil, "key %d", n),
				Value: []byte(label + strings.Repeat(fmt.Sprint(" ", n), 60)), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(n)),
				Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, n)}}}
			if n%50 == 0 {
				r.Value, r.Headers = nil, nil
			}
			cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("%s: %v", label, err)
				}
			})
		}
		if err := cl.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		cl.Close()
	}
}

// populate is plain and a compacted topic, which Kafka compacts, and transactions.
func populate(t *testing.T, b *harness.Broker) {
	t.Helper()
	plain(t, b)
	transactions(t, b)
	compacted(t, b)
}

// transactions commits some and aborts some, and leaves one open.
func transactions(t *testing.T, b *harness.Broker) {
	t.Helper()
	b.Create(t, 1, nil, "txn")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := b.Client(t, kgo.TransactionalID("writer"))
	for i := range 6 {
		transaction(ctx, t, cl, fmt.Sprint("txn ", i), i%3 != 2)
	}
	begin(ctx, t, b.Client(t, kgo.TransactionalID("open"), kgo.TransactionTimeout(10*time.Minute)), "never ended")
}

func begin(ctx context.Context, t *testing.T, cl *kgo.Client, label string) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "txn", Partition: 0, Value: fmt.Appendf(nil, "%s, record %d", label, n)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func transaction(ctx context.Context, t *testing.T, cl *kgo.Client, label string, commit bool) {
	t.Helper()
	begin(ctx, t, cl, label)
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
}

// endOpen has the producer of the open transaction come back: that aborts it. Then both producers go on.
func endOpen(t *testing.T, b *harness.Broker, where string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, id := range []string{"open", "writer"} {
		transaction(ctx, t, b.Client(t, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute)), id+" in "+where, true)
	}
	adm := kadm.NewClient(b.Client(t))
	for {
		stable, err := adm.ListCommittedOffsets(ctx, "txn")
		if err != nil {
			t.Fatal(err)
		}
		end, err := adm.ListEndOffsets(ctx, "txn")
		if err != nil {
			t.Fatal(err)
		}
		if stable["txn"][0].Offset == end["txn"][0].Offset {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// limit sets quotas that nobody meets.
func limit(t *testing.T, b *harness.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := "some client"
	res, err := kadm.NewClient(b.Client(t)).AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{
		{Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e9}}},
		{Entity: kadm.ClientQuotaEntity{{Type: "client-id"}}, Ops: []kadm.AlterClientQuotaOp{{Key: "request_percentage", Value: 9999.5}}},
	})
	if err != nil || len(res) != 2 || res[0].Err != nil || res[1].Err != nil {
		t.Fatal(err, res)
	}
}

// compacted writes the same keys over several segments until Kafka has compacted them, and has it leave them as they are then.
func compacted(t *testing.T, b *harness.Broker) {
	t.Helper()
	b.Create(t, 1, []string{"cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.01"}, "compacted")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := b.Client(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	const written = 500
	for n := range written {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "compacted", Partition: 0, Key: fmt.Appendf(nil, "k%d", n%20), Value: []byte(strings.Repeat(fmt.Sprint(n, " "), 2000))}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for records := written; records > written*2/3; time.Sleep(200 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("Kafka does not compact: %d records of %d", records, written)
		}
		records = countFrom(ctx, t, b, "compacted", written)
	}
	hold := kadm.AlterConfig{Name: "min.compaction.lag.ms", Value: kadm.StringPtr("600000000")}
	if res, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{hold}, "compacted"); err != nil || res[0].Err != nil {
		t.Fatal(err, res)
	}
}

// countFrom counts the records of partition 0 up to the offset before end.
func countFrom(ctx context.Context, t *testing.T, b *harness.Broker, topic string, end int64) (n int) {
	t.Helper()
	cl := b.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			if n++; r.Offset == end-1 {
				return n
			}
		}
	}
}
