package admin

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"
)

// runCalls runs a program that prints "call NAME" or "refused NAME" for each call and "done" at the end, and demands so many and these names.
func runCalls(t *testing.T, cmd *exec.Cmd, atLeast int, names ...string) {
	t.Helper()
	var diagnosis strings.Builder
	cmd.Stderr = &diagnosis
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || lines[len(lines)-1] != "done" {
		t.Fatalf("%v\n%s\n%s", err, out, diagnosis.String())
	}
	var called []string
	for _, line := range lines {
		if kind, name, ok := strings.Cut(line, " "); ok && (kind == "call" || kind == "refused") {
			called = append(called, name)
		}
	}
	if len(called) < atLeast {
		t.Errorf("only %d calls, want %d: %v", len(called), atLeast, called)
	}
	for _, name := range names {
		if !slices.Contains(called, name) {
			t.Errorf("%s was not called", name)
		}
	}
}

// TestJava is every method of Apache Kafka's Admin that makes sense on one broker.
func TestJava(t *testing.T) {
	b := harness.Shared(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0"}})
	folder := filepath.Join(harness.CompatDir(t), "java")
	for _, client := range []struct {
		version string
		atLeast int
		names   []string
		sources []string
	}{
		{"2.8.2", 48, []string{"describeReplicaLogDirs", "removeMembersFromConsumerGroup", "describeAcls"}, []string{"AdminCalls.java"}},
		{"4.4.0", 63, []string{"abortTransaction", "fenceProducers", "listConfigResources"}, []string{"AdminCalls.java", "NewAdminCalls.java"}},
	} {
		t.Run(client.version, func(t *testing.T) {
			for i, name := range client.sources {
				client.sources[i] = filepath.Join(folder, name)
			}
			classPath, err := jars.Clients(client.version).Compile(t.Context(), client.sources...)
			if err != nil {
				t.Fatal(err)
			}
			runCalls(t, jars.Java(t.Context(), classPath, "AdminCalls", b.Addr(), harness.Topic("java")), client.atLeast, client.names...)
		})
	}
}

func TestKafkaPython(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	python, err := deps.Python(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(harness.CompatDir(t), "admin", "testdata", "admin.py")
	runCalls(t, exec.CommandContext(t.Context(), python, script, b.Addr(), harness.Topic("python")), 28, "delete_records", "describe_log_dirs", "describe_acls")
}

func TestConfluent(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	program, err := deps.ConfluentGo(t.Context(), filepath.Join(harness.CompatDir(t), "admin", "confluent"))
	if err != nil {
		t.Fatal(err)
	}
	runCalls(t, exec.CommandContext(t.Context(), program, b.Addr(), harness.Topic("confluent")), 24, "ElectLeaders", "DeleteRecords", "ListOffsets")
}
