package broker

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gregor/log/batch"
)

// scrapeOf reads the metrics of a broker that serves them.
func scrapeOf(t *testing.T, b *Broker) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + b.MetricsAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", resp.StatusCode, err, text)
	}
	return string(text)
}

func TestMetrics(t *testing.T) {
	b := startBroker(t, t.TempDir(), "gregor.metrics.listener", "127.0.0.1:0")
	c := b.dial()
	c.createTopic("measured")
	c.produce("measured", 0, batchOf(t, batch.None, record{value: "one"}, record{value: "two"}))
	text := scrapeOf(t, b.Broker)
	for _, want := range []string{
		`gregor_log_end_offset{topic="measured",partition="0"} 2`,
		`gregor_log_high_watermark{topic="measured",partition="0"} 2`,
		`gregor_requests_total{api="Produce"} 1`,
		`gregor_topics 1`, `gregor_partitions 1`, `gregor_partitions_offline 0`,
		`gregor_syncs_total{kind="file"} `, `gregor_connections `, `go_goroutines `, `process_resident_memory_bytes `,
	} {
		if !strings.Contains("\n"+text, "\n"+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestMetricsAddressInUse(t *testing.T) {
	b := startBroker(t, t.TempDir(), "gregor.metrics.listener", "127.0.0.1:0")
	second := newBroker(t, Config{}, t.TempDir(), "gregor.metrics.listener", b.MetricsAddr())
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), b.MetricsAddr()) {
		t.Errorf("error is %v, want one that names %s", err, b.MetricsAddr())
	}
}
