package report

import "fmt"

// Names of the brokers that the table compares.
const (
	Gregor       = "gregor"
	KafkaDefault = "kafka"
	KafkaSynced  = "kafka-sync"
	KafkaOld     = "kafka-3.9" // the last that serves old clients
)

// Goal is a bound for gregor's figure.
type Goal struct {
	Limit    float64
	Least    bool   // at least Limit; else at most
	Absolute bool   // of the figure itself; else of its ratio to another broker's
	Against  string // that broker; empty: Kafka with its default
}

// Metric is one row of the table.
type Metric struct {
	Key   string // workload/figure
	Label string
	Unit  string
	Goal  *Goal // nil: none
}

func least(ratio float64) *Goal     { return &Goal{Limit: ratio, Least: true} }
func most(ratio float64) *Goal      { return &Goal{Limit: ratio} }
func leastOf39(ratio float64) *Goal { return &Goal{Limit: ratio, Least: true, Against: KafkaOld} }
func mostOf39(ratio float64) *Goal  { return &Goal{Limit: ratio, Against: KafkaOld} }
func atLeast(value float64) *Goal   { return &Goal{Limit: value, Least: true, Absolute: true} }
func lessThan(value float64) *Goal  { return &Goal{Limit: value, Absolute: true} }
func (g *Goal) met(v float64) bool  { return g.Least && v >= g.Limit || !g.Least && v <= g.Limit }
func (g *Goal) String() string {
	sign, unit := "≤", "×"
	if g.Least {
		sign = "≥"
	}
	if g.Absolute {
		unit = ""
	}
	return sign + " " + format(g.Limit) + unit
}

// Metrics are all rows in the order of the table.
func Metrics() []Metric {
	m := []Metric{
		{"produce-1k/mb", "produce 1 KiB, franz-go, 6 partitions", "MB/s", least(1)},
		{"produce-1k/cpu", "… broker CPU", "s/GB", most(0.5)},
		{"produce-100b/mb", "produce 100 B, franz-go, 6 partitions", "MB/s", nil},
		{"produce-100b/cpu", "… broker CPU", "s/GB", nil},
		{"raw-produce-8x64k/mb", "prebuilt requests of 8 × 64 KiB", "MB/s", least(1.5)},
		{"raw-produce-8x64k/cpu", "… broker CPU", "s/GB", nil},
		{"raw-produce-1x1k/mb", "prebuilt requests of 1 × 1 KiB", "MB/s", least(1.5)},
		{"raw-produce-1x1k/cpu", "… broker CPU", "s/GB", nil},
		{"ack/p50", "ack at 2,000 records/s, p50", "ms", most(1)},
		{"ack/p99", "… p99", "ms", most(0.5)},
		{"ack/p999", "… p99.9", "ms", nil},
		{"end-to-end/p50", "end to end at 2,000 records/s, p50", "ms", nil},
		{"end-to-end/p99", "… p99", "ms", most(1.0 / 3)},
		{"end-to-end/p999", "… p99.9", "ms", nil},
	}
	for _, conns := range []int{1, 8} {
		name := fmt.Sprintf("raw-fetch-%d", conns)
		m = append(m,
			Metric{name + "/gb", fmt.Sprintf("fetch from page cache, %d connection(s)", conns), "GB/s", least(1)},
			Metric{name + "/cpu", "… broker CPU", "s/GB", most(1)},
			Metric{name + "/bare", "… bare sendfile loop of the same files", "GB/s", nil},
			Metric{name + "/ratio", "… share of the bare loop", "", atLeast(0.9)},
		)
	}
	for _, codec := range []string{"none", "gzip"} {
		for _, conns := range []int{1, 8} {
			name := fmt.Sprintf("fetch-v2-%s-%d", codec, conns)
			m = append(m,
				Metric{name + "/mb", fmt.Sprintf("Fetch v2, converted, %s, %d connection(s)", codec, conns), "MB/s", leastOf39(1)},
				Metric{name + "/cpu", "… broker CPU", "s/GB", mostOf39(1)},
				Metric{name + "/rss", "… broker memory above before, per connection", "MB", nil},
			)
		}
	}
	m = append(m,
		Metric{"groups-1000/heartbeats", "1,000 groups of 3 members, heartbeats", "1/s", nil},
		Metric{"groups-1000/heartbeat-cpu", "… broker CPU of a heartbeat", "µs", nil},
		Metric{"groups-1000/commits", "… commits", "1/s", nil},
		Metric{"groups-1000/commit-cpu", "… broker CPU of a commit", "µs", nil},
		Metric{"groups-1000/commit/p50", "… a commit at 2,000 commits/s, p50", "ms", nil},
		Metric{"groups-1000/commit/p99", "… p99", "ms", nil},
		Metric{"groups-1000/commit/p999", "… p99.9", "ms", nil},
		Metric{"transactions/1", "transactions of 10 records of 1 KiB over 3 partitions, 1 producer", "1/s", least(1)},
		Metric{"transactions/1/cpu", "… broker CPU of one", "µs", nil},
		Metric{"transactions/10", "… 10 producers", "1/s", least(1)},
		Metric{"transactions/10/cpu", "… broker CPU of one", "µs", nil},
		Metric{"transactions/100", "… 100 producers", "1/s", least(1)},
		Metric{"transactions/100/cpu", "… broker CPU of one", "µs", nil},
	)
	return append(m,
		Metric{"partitions-1000/first", "1,000 new partitions, first 3 batches to each", "ms", nil},
		Metric{"partitions-1000/p50", "1,000 partitions at 5,000 records/s, p50", "ms", nil},
		Metric{"partitions-1000/p99", "… p99", "ms", lessThan(10)},
		Metric{"partitions-1000/flood", "1,000 partitions, flood", "records/s", atLeast(100_000)},
		Metric{"compact-10m/mb", "compaction of 10 million keys, 3 records each", "MB/s", leastOf39(1)},
		Metric{"compact-10m/cpu", "… broker CPU", "s/GB", mostOf39(1)},
		Metric{"compact-10m/rss", "… broker memory above before", "MB", nil},
		Metric{"compact-10m/left", "… bytes that are left", "of 1", nil},
		Metric{"retention-1000/alone/p99", "ack at 2,000 records/s beside 1,000 idle partitions, p99", "ms", nil},
		Metric{"retention-1000/p99", "… while retention empties them, p99", "ms", most(1)},
		Metric{"retention-1000/p999", "… p99.9", "ms", nil},
		Metric{"retention-1000/took", "… until they are empty", "ms", nil},
		Metric{"start-empty/ms", "start on an empty directory", "ms", lessThan(20)},
		Metric{"start-1000/clean", "start on 1,000 partitions, clean", "ms", nil},
		Metric{"start-1000/killed", "… after kill -9, all of them ready", "ms", lessThan(150)},
		Metric{"zookeeper-start-2000/ms", "start on ZooKeeper with 2,000 topics, until clients see all led", "ms", mostOf39(1)},
		Metric{"zookeeper-start-2000/rss", "… memory (RSS) then", "MB", nil},
		Metric{"zookeeper-create-1000/batch", "1,000 topics on ZooKeeper, one request, until all are led", "ms", mostOf39(1)},
		Metric{"zookeeper-create-1000/single", "… one by one", "ms", mostOf39(1)},
		Metric{"zookeeper-create-1000/p99", "… p99 of one", "ms", nil},
		Metric{"idle/rss", "idle memory (RSS)", "MB", lessThan(15)},
		Metric{"idle/cpu", "idle CPU", "% of a core", lessThan(0.1)},
		Metric{"idle/connection", "memory of an idle connection, of 2,000", "kB", lessThan(20)},
	)
}
