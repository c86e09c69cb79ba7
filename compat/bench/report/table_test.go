package report

import (
	"math"
	"strings"
	"testing"
)

func results() Results {
	r := Results{}
	for i, v := range []float64{700, 900, 800} {
		r.Add("produce-1k/mb", Gregor, v)
		r.Add("produce-1k/mb", KafkaDefault, 400)
		r.Add("produce-1k/mb", KafkaSynced, float64(100+i))
	}
	r.Add("produce-1k/cpu", Gregor, 0.9)
	r.Add("produce-1k/cpu", KafkaDefault, 1.5)
	r.Add("partitions-1000/p99", Gregor, 10.5)
	r.Add("idle/rss", Gregor, 12)
	r.Add("ack/p50", Gregor, 0.3)
	return r
}

func TestTable(t *testing.T) {
	rows := Table(results(), []string{Gregor, KafkaSynced, KafkaDefault})
	want := [][]string{
		{"", "unit", "gregor", "kafka-sync", "kafka", "÷ kafka-sync", "÷ kafka", "goal", ""},
		{"produce 1 KiB, franz-go, 6 partitions", "MB/s", "800", "101", "400", "7.92", "2", "≥ 1×", "met"},
		{"… broker CPU", "s/GB", "0.900", "-", "1.50", "-", "0.600", "≤ 0.500×", "missed"},
		{"ack at 2,000 records/s, p50", "ms", "0.300", "-", "-", "-", "-", "≤ 1×", "?"},
		{"… p99", "ms", "10.5", "-", "-", "-", "-", "≤ 10", "missed"},
		{"idle memory (RSS)", "MB", "12", "-", "-", "-", "-", "≤ 15", "met"},
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d: %q", len(rows), len(want), rows)
	}
	for i := range want {
		if got, want := strings.Join(rows[i], "|"), strings.Join(want[i], "|"); got != want {
			t.Errorf("row %d:\n got %s\nwant %s", i, got, want)
		}
	}
}

// TestTableAgainst: figures about old clients are compared with the Kafka that serves them.
func TestTableAgainst(t *testing.T) {
	r := Results{}
	r.Add("fetch-v2-none-1/mb", Gregor, 500)
	r.Add("fetch-v2-none-1/mb", KafkaOld, 250)
	rows := Table(r, []string{Gregor, KafkaDefault, KafkaOld})
	want := "Fetch v2, converted, none, 1 connection(s)|MB/s|500|-|250|-|2|≥ 1×|met"
	if got := strings.Join(rows[1], "|"); len(rows) != 2 || got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTableWithoutGregor(t *testing.T) {
	rows := Table(results(), []string{KafkaDefault})
	if got, want := strings.Join(rows[0], "|"), "|unit|kafka|goal|"; got != want {
		t.Errorf("header %s, want %s", got, want)
	}
}

func TestLayout(t *testing.T) {
	rows := [][]string{{"", "unit", "x", "goal", ""}, {"a … b", "ms", "12.5", "", ""}}
	wantText := "       unit     x  goal\na … b  ms    12.5\n"
	if got := Text(rows); got != wantText {
		t.Errorf("Text:\n%q, want\n%q", got, wantText)
	}
	wantMarkdown := "|  | unit | x | goal |  |\n|---|---|--:|---|---|\n| a … b | ms | 12.5 |  |  |\n"
	if got := Markdown(rows); got != wantMarkdown {
		t.Errorf("Markdown:\n%q, want\n%q", got, wantMarkdown)
	}
}

func TestFormat(t *testing.T) {
	tests := map[float64]string{0: "0", 0.1234: "0.123", 1.236: "1.24", 12.34: "12.3", 123.4: "123", 123456: "123456", 2: "2", math.NaN(): "-", math.Inf(1): "-"}
	for v, want := range tests {
		if got := format(v); got != want {
			t.Errorf("format(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestMetricsHaveDistinctKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics() {
		if seen[m.Key] || m.Label == "" || !strings.Contains(m.Key, "/") {
			t.Errorf("metric %+v", m)
		}
		seen[m.Key] = true
	}
}
