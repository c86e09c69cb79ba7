package tools

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"
)

// librdkafka is a producer that writes for some seconds.
const librdkafka = `
import sys, time
from confluent_kafka import Producer
p = Producer({"bootstrap.servers": sys.argv[1], "client.id": "rdkafka", "enable.metrics.push": True})
end = time.time() + 3
while time.time() < end:
    p.produce("told", b"x")
    p.poll(0.02)
p.flush(10)
p.close() if hasattr(p, "close") else None
`

// TestClientMetrics: what the Java client and librdkafka measure is shown with the broker's metrics when a subscription asks for it.
func TestClientMetrics(t *testing.T) {
	metrics := harness.FreeAddr(t)
	b := harness.Start(t, harness.Config{Set: []string{"gregor.metrics.listener=" + metrics}})
	b.Create(t, 1, nil, "told")
	shell := jars.NewShell(t, "4.4.0")
	shell.Run("org.apache.kafka.tools.ClientMetricsCommand", "--bootstrap-server", b.Addr(), "--alter", "--name", "all", "--metrics", "*", "--interval", "200")
	shell.Run("org.apache.kafka.tools.ProducerPerformance", "--topic", "told", "--num-records", "3000", "--record-size", "100", "--throughput", "1500",
		"--producer-props", "bootstrap.servers="+b.Addr(), "client.id=java")
	python, err := deps.Confluent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, python, "-c", librdkafka, b.Addr()).CombinedOutput(); err != nil {
		t.Fatalf("librdkafka: %v\n%s", err, out)
	}
	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngregor_telemetry_unreadable_total 0\n") {
		t.Errorf("something could not be read:\n%s", grep(string(text), "gregor_telemetry"))
	}
	for _, want := range []struct{ name, client, software string }{
		{"producer_record_send_total", "java", "apache-kafka-java 4.4.0"},
		{"producer_connection_creation_total", "java", "apache-kafka-java 4.4.0"},
		{"producer_connection_creation_total", "rdkafka", "confluent-kafka-python"},
	} {
		if !shown(string(text), want.name, want.client, want.software) {
			t.Errorf("%s of %s %s is not in\n%s", want.name, want.client, want.software, grep(string(text), "gregor_client_", "gregor_telemetry"))
		}
	}
}

// shown says whether a client's metric above 0 is there.
func shown(text, name, client, software string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, fmt.Sprintf("gregor_client_%s{client_id=%q,", name, client)) && strings.Contains(line, `,client_software="`+software) {
			return !strings.HasSuffix(line, " 0\n")
		}
	}
	return false
}

func grep(text string, prefixes ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}
