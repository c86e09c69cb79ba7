package tools

import (
	"strings"
	"testing"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// TestTransactionVersions: Java's transactional producers of 4.4 work at both levels of transaction.version, those of 3.9 as ever.
func TestTransactionVersions(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	b.Create(t, 3, nil, "levels")
	now, old := jars.NewShell(t, "4.4.0"), jars.NewShell(t, "3.9.1")
	for _, level := range []string{"2", "1", "2"} {
		command := "upgrade"
		if level == "1" {
			command = "downgrade"
		}
		said := now.Run("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", b.Addr(), command, "--feature", "transaction.version="+level)
		if want := "transaction.version was " + command + "d to " + level + "."; !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%s to %s: %q", command, level, said)
		}
		for name, shell := range map[string]*jars.Shell{"4.4.0": now, "3.9.1": old} {
			said := shell.Run("org.apache.kafka.tools.ProducerPerformance", "--topic", "levels", "--num-records", "2000", "--record-size", "100", "--throughput", "10000",
				"--transactional-id", "level-"+name, "--transaction-duration-ms", "30", "--producer-props", "bootstrap.servers="+b.Addr())
			if !strings.Contains(strings.Join(said, "\n"), "2000 records sent") {
				t.Errorf("%s at level %s: %q", name, level, said)
			}
		}
	}
}
