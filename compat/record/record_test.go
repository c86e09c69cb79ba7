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

var recordNow = flag.Bool("recording", false, "start Apache Kafka of each version and write its answers down")

// recordings are the tests that write answers down, each with the versions that it asks and the settings that they need.
func recordings() []recording {
	all, quick := []string{"2.8.2", "3.9.1", "4.4.0"}, []string{"group.initial.rebalance.delay.ms=0"}
	return []recording{
		{"TestRecordGroups", all, quick},
		{"TestRecordTransactions", all, quick},
		{"TestRecordCluster", all, nil},
		{"TestRecordAdmin", all, nil},
		{"TestRecordOld", []string{"3.9.1"}, []string{"inter.broker.protocol.version=2.8"}}, // so that there is message.format.version
	}
}

// recording is one test of package broker.
type recording struct {
	test     string
	versions []string
	settings []string
}

// TestRecord runs the broker's TestRecord… tests, each against an Apache Kafka of its own of each version.
func TestRecord(t *testing.T) {
	if !*recordNow {
		t.Skip("writes into the tree: run by `make record`")
	}
	for _, r := range recordings() {
		for _, version := range r.versions {
			t.Run(r.test+" "+version, func(t *testing.T) { r.run(t, version) })
		}
	}
}

func (r *recording) run(t *testing.T, version string) {
	start := peer.StartOnZooKeeper
	if version >= "4" {
		start = peer.Start
	}
	kafka := start(t, version, filepath.Join(t.TempDir(), "kafka"), r.settings...)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run=^"+r.test+"$", "-v", "./broker", "-record="+kafka.Addr(), "-record-to=kafka-"+version+".txt")
	cmd.Dir = filepath.Dir(harness.CompatDir(t))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%v; Kafka said:\n%s", err, kafka.Output())
	}
}
