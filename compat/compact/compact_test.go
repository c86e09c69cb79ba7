package compact

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// TestLogCompactionTester runs the tool of Kafka 4.4.0 on topics of small segments, so that several rounds of compaction run while it
// writes.
func TestLogCompactionTester(t *testing.T) {
	sort, err := exec.LookPath("sort")
	if err != nil {
		t.Fatalf("LogCompactionTester sorts with it: %v", err)
	}
	t.Log("sorting with", sort)
	lib, err := jars.Tools("4.4.0").Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t, harness.Config{Set: []string{"log.segment.bytes=65536", "log.cleaner.backoff.ms=100", "log.cleaner.min.cleanable.ratio=0.1",
		"log.cleaner.dedupe.buffer.size=1500000", "log.segment.delete.delay.ms=1000"}})
	for _, codec := range []string{"none", "snappy", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			args := []string{"--bootstrap-server", b.Addr(), "--messages", "60000", "--duplicates", "20", "--topics", "2", "--percent-deletes", "20",
				"--sleep", "3", "--compression-type", codec}
			cmd := jars.Java(t.Context(), lib+"/*", "org.apache.kafka.tools.LogCompactionTester", args...)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err != nil || !strings.Contains(text, "Data verification is completed") {
				t.Fatalf("%v\n%.6000s", err, text)
			}
			t.Log(lastLines(text, 6))
		})
	}
	var removed int64
	for deadline := time.Now().Add(2 * time.Minute); removed < 60_000 && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		removed = removedRecords(b.Log())
	}
	if removed < 60_000 {
		t.Errorf("only %d records were compacted away: the tool has proved little", removed)
	}
	b.Stop(t)
	dump(t, b.Dir())
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// removedRecords adds up what the broker's log says.
func removedRecords(text string) (n int64) {
	for _, m := range regexp.MustCompile(`log is compacted.* records=(\d+) kept=(\d+)`).FindAllStringSubmatch(text, -1) {
		read, _ := strconv.ParseInt(m[1], 10, 64)
		kept, _ := strconv.ParseInt(m[2], 10, 64)
		n += read - kept
	}
	return n
}

// dump gives all segments to DumpLogSegments. Offsets that are missing between records, which compaction leaves, are no complaint.
func dump(t *testing.T, dir string) {
	t.Helper()
	complaints := regexp.MustCompile(`(?m)^.*(Mismatches in|mismatch in|out of order timestamp|not found in|invalid bytes|isvalid: false|Error at|Exception|found log offset|Index timestamp).*$`)
	logs, err := filepath.Glob(filepath.Join(dir, "*-*", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no segments", err)
	}
	var files []string
	for _, log := range logs {
		if info, err := os.Stat(log); err != nil || info.Size() == 0 || strings.Contains(log, "__") {
			continue
		}
		files = append(files, log, strings.TrimSuffix(log, ".log")+".index", strings.TrimSuffix(log, ".log")+".timeindex")
	}
	for _, tool := range [][2]string{{"3.9.1", "kafka.tools.DumpLogSegments"}, {"4.4.0", "org.apache.kafka.tools.DumpLogSegments"}} {
		lib, err := jars.Tools(tool[0]).Ensure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out, err := jars.Java(t.Context(), lib+"/*", tool[1], "--deep-iteration", "--files", strings.Join(files, ",")).CombinedOutput()
		text := string(out)
		if err != nil {
			t.Fatalf("DumpLogSegments %s: %v\n%.3000s", tool[0], err, text)
		}
		for _, line := range complaints.FindAllString(text, 5) {
			t.Errorf("DumpLogSegments %s: %.600s", tool[0], line)
		}
		valid, horizons := strings.Count(text, "isvalid: true"), len(regexp.MustCompile(`deleteHorizonMs: OptionalLong\[\d+\]`).FindAllString(text, -1))
		if valid < 100 || horizons == 0 {
			t.Errorf("DumpLogSegments %s: %d valid batches, %d with a delete horizon\n%.1500s", tool[0], valid, horizons, text)
		}
		t.Log(fmt.Sprintf("DumpLogSegments %s: %d files, %d valid batches, %d with a delete horizon", tool[0], len(files), valid, horizons))
	}
}
