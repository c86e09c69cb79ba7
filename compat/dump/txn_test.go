package dump

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestDumpTransactions: transactions over several segments, committed, aborted and left open. The tools print every aborted one from the transaction
// indexes, every producer from the snapshots, and the coordinator's own log.
func TestDumpTransactions(t *testing.T) {
	b := harness.Start(t, harness.Config{Set: []string{"transaction.state.log.num.partitions=1"}})
	topic := harness.Topic("dump-txn")
	b.Create(t, 1, []string{"segment.bytes=200000"}, topic)
	var aborted []int64 // first offsets
	for i := range 40 {
		if first, ok := transact(t, b, topic, i); !ok {
			aborted = append(aborted, first)
		}
	}
	open := b.Client(t, kgo.TransactionalID("open"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := open.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.Dir(), topic+"-0")
	// The kill leaves what was written: nothing of a transaction index waits for a clean stop.
	b.Kill(t)
	t.Run("after SIGKILL", func(t *testing.T) { checkTransactions(t, dir, aborted) })
	b.Up(t)
	if first, ok := transact(t, b, topic, 40); !ok {
		aborted = append(aborted, first)
	}
	b.Stop(t)
	t.Run("after recovery and a stop", func(t *testing.T) {
		checkTransactions(t, dir, aborted)
		checkCoordinator(t, filepath.Join(b.Dir(), "__transaction_state-0"))
	})
}

// transact writes one transaction of a producer of its own into partition 0, aborted two times of three, and returns its first offset.
func transact(t *testing.T, b *harness.Broker, topic string, i int) (first int64, committed bool) {
	t.Helper()
	cl := b.Client(t, kgo.TransactionalID(fmt.Sprintf("dump-%d", i%7)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	first = -1
	for k := range 3 {
		r, err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: text(9000, i*10+k)}).First()
		if err != nil {
			t.Fatal(err)
		}
		if first < 0 {
			first = r.Offset
		}
	}
	end := kgo.TransactionEndTry(i%3 == 0)
	if err := cl.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	return first, bool(end)
}

var (
	abortedLine = regexp.MustCompile(`(?m)^version: 0 producerId: \d+ firstOffset: (\d+) lastOffset: \d+ lastStableOffset: \d+$`)
	markerLine  = regexp.MustCompile(`endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: \d+`)
	openLine    = regexp.MustCompile(`producerId: \d+ producerEpoch: \d+ coordinatorEpoch: -?\d+ currentTxnFirstOffset: Some\(\d+\)|producerId: \d+ producerEpoch: \d+ coordinatorEpoch: -?\d+ currentTxnFirstOffset: OptionalLong\[\d+\]`)
)

// checkTransactions compares what the tools print of a partition with the transactions that were aborted.
func checkTransactions(t *testing.T, dir string, aborted []int64) {
	t.Helper()
	var want []string
	for _, first := range aborted {
		want = append(want, fmt.Sprint(first))
	}
	files, indexes := filesOf(t, dir), globbed(t, dir, "*.txnindex")
	if len(indexes) < 3 {
		t.Fatalf("%d transaction indexes, the test wants several", len(indexes))
	}
	for _, tool := range tools {
		var got []string
		for _, m := range abortedLine.FindAllStringSubmatch(runTool(t, tool, indexes), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("DumpLogSegments %s prints transactions aborted from %v, want %v", tool.version, got, want)
		}
		all := runTool(t, tool, files, "--deep-iteration")
		if markers := len(markerLine.FindAllString(all, -1)); markers < len(aborted) {
			t.Errorf("DumpLogSegments %s prints %d markers, %d transactions were aborted", tool.version, markers, len(aborted))
		}
		if !openLine.MatchString(all) {
			t.Errorf("DumpLogSegments %s prints no open transaction of any snapshot:\n%.1500s", tool.version, all[strings.Index(all, ".snapshot"):])
		}
	}
}

func globbed(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// checkCoordinator lets the tools decode the coordinator's log.
func checkCoordinator(t *testing.T, dir string) {
	t.Helper()
	logs := globbed(t, dir, "*.log")
	for _, tool := range tools {
		text := runTool(t, tool, logs, "--transaction-log-decoder")
		for _, want := range []string{"dump-0", "dump-3", "Ongoing", "CompleteAbort", "CompleteCommit"} {
			if !strings.Contains(text, want) {
				t.Errorf("DumpLogSegments %s --transaction-log-decoder does not print %q:\n%.1500s", tool.version, want, text)
			}
		}
	}
}
