package record

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

var recording = flag.Bool("recording", false, "start Apache Kafka of each version and write its answers down")

// settings are those that the recorded brokers had; the tests that compare give gregor the same.
func settings() []string {
	return []string{"group.initial.rebalance.delay.ms=0"}
}

// TestRecord runs the broker's TestRecord… tests against Apache Kafka of each version. Each of them writes the file testdata/…/kafka-VERSION.txt.
func TestRecord(t *testing.T) {
	if !*recording {
		t.Skip("writes into the tree: run by `make record`")
	}
	for _, version := range []string{"2.8.2", "3.9.1", "4.4.0"} {
		t.Run(version, func(t *testing.T) {
			start := peer.StartOnZooKeeper
			if version >= "4" {
				start = peer.Start
			}
			kafka := start(t, version, filepath.Join(t.TempDir(), "kafka"), settings()...)
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run=^TestRecord", "-v", "./broker", "-record="+kafka.Addr(), "-record-to=kafka-"+version+".txt")
			cmd.Dir = filepath.Dir(harness.CompatDir(t))
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%v; Kafka said:\n%s", err, kafka.Output())
			}
		})
	}
}
