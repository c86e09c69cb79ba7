package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// RSS is the broker's resident memory in bytes, from /proc/PID/status.
func (b *Broker) RSS(tb testing.TB) int64 {
	tb.Helper()
	path := fmt.Sprintf("/proc/%d/status", b.PID())
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			tb.Fatalf("%s: %q: %v", path, line, err)
		}
		return kb << 10
	}
	tb.Fatalf("%s has no VmRSS line", path)
	return 0
}

// OpenFiles counts the broker's open file descriptors.
func (b *Broker) OpenFiles(tb testing.TB) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	return len(entries)
}
