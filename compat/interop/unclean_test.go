package interop

import (
	"path/filepath"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// TestKilledKafkaWithTwoDirectories: Kafka 4.4.0 with two log directories is killed. What it had acknowledged is there in gregor, which may be killed as well, and
// again in Kafka.
func TestKilledKafkaWithTwoDirectories(t *testing.T) {
	if harness.Foreign(t, "that the directories of a killed Apache Kafka open in gregor") {
		return
	}
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	both := one + "," + two
	settings := append([]string{"log.dirs=" + both}, quick...)
	theirs := peer.Start(t, "4.4.0", one, settings...)
	plain(t, theirs.Broker)
	transactions(t, theirs.Broker)
	want := capture(t, theirs.Broker)
	theirs.Kill(t)
	ours := harness.Start(t, harness.Config{Dir: both})
	want.equal(t, capture(t, ours), "in gregor")
	more(t, ours, "written by gregor")
	want = capture(t, ours)
	ours.Kill(t)
	if code, out := harness.RunArgs(t, harness.Binary(t), []string{"export-kraft", "--data-dir", both}, time.Minute); code == 0 {
		t.Errorf("the export of what was not stopped cleanly succeeds:\n%s", out)
	}
	ours.Up(t)
	want.equal(t, capture(t, ours), "in gregor after a kill")
	ours.Stop(t)
	gregor(t, "export-kraft", "--data-dir", both)
	backInKafka(t, peer.Start(t, "4.4.0", one, settings...), want)
}
