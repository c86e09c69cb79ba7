package broker

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metrics"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/commit"
)

// scrape writes the counters that the parts keep anyway in Prometheus' text format, read at that moment: the hot paths know nothing of it.
type scrape struct {
	broker *Broker
	to     io.Writer
}

// writeMetrics writes all metrics of this broker and its process.
func (b *Broker) writeMetrics(to io.Writer) {
	s := scrape{b, to}
	s.network()
	s.disk()
	s.logs()
	s.cleaner()
	s.conversions()
	s.telemetry()
	metrics.WriteProcessMetrics(to)
}

func (s scrape) gauge(name string, v int64) {
	metrics.WriteGaugeFloat64(s.to, "gregor_"+name, float64(v))
}
func (s scrape) counter(name string, v int64) {
	metrics.WriteCounterUint64(s.to, "gregor_"+name, uint64(v))
}

// label is name{key="value"}.
func label(name, key, value string) string { return name + "{" + key + "=" + labelText(value) + "}" }

// labelText is a label's value in quotes, as Prometheus' text format has it. Any other escape than these three would fail the whole scrape.
func labelText(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(v, "\uFFFD")) + `"`
}

// network has the connections, the requests by API, and the bytes that went over sockets.
func (s scrape) network() {
	st := s.broker.server.Stats()
	s.gauge("connections", st.Connections)
	s.counter("connections_accepted_total", st.Accepted)
	for reason, n := range st.Closed {
		s.counter(label("connections_closed_total", "reason", reason), n)
	}
	for key, n := range st.Requests {
		s.counter(label("requests_total", "api", kmsg.NameForKey(key)), n)
	}
	s.counter("received_bytes_total", st.BytesIn)
	s.counter("sent_bytes_total", st.BytesOut)
	s.counter("sendfile_bytes_total", st.SendfileBytes)
	s.gauge("request_buffer_bytes", st.QueuedBytes)
}

// disk has the syncs: of one file, and of the whole file system.
func (s scrape) disk() {
	st := s.broker.dir.CommitStats()
	for name, k := range map[string]commit.Kind{"file": st.File, "filesystem": st.All} {
		s.counter(label("syncs_total", "kind", name), int64(k.Count))
		s.counter(label("sync_errors_total", "kind", name), int64(k.Errors))
		metrics.WriteCounterFloat64(s.to, "gregor_"+label("sync_seconds_total", "kind", name), k.Total.Seconds())
	}
}

// logs has the offsets and sizes of each partition, and how many cannot be used.
func (s scrape) logs() {
	topics := s.broker.topics.all()
	var here, led, offline, leaderless int64
	v := s.broker.view.Load()
	for _, t := range topics {
		for _, p := range *t.partitions.Load() {
			l := p.lead.Load()
			if p.seen(v).leader == noLeader {
				leaderless++
			}
			if !slices.Contains(l.replicas, v.self) {
				continue // another broker's
			}
			here++
			if l.led {
				led++
			}
			if p.log == nil || p.log.Err() != nil {
				offline++
			}
			if p.log != nil {
				s.partition(p)
			}
		}
	}
	s.gauge("topics", int64(len(topics)))
	s.gauge("partitions", here)
	s.gauge("partitions_led", led)
	s.gauge("partitions_offline", offline)
	s.gauge("cluster_partitions_leaderless", leaderless)
	s.gauge("cluster_brokers", int64(len(v.brokers)))
	controller := int64(0)
	if s.broker.control.Seated() {
		controller = 1
	}
	s.gauge("active_controller", controller)
}

// cleaner has what compaction did.
func (s scrape) cleaner() {
	st := s.broker.cleaner.snapshot()
	s.counter("cleaner_rounds_total", st.Rounds)
	s.counter("cleaner_failures_total", st.Failures)
	s.gauge("cleaner_damaged_partitions", st.Damaged)
	metrics.WriteCounterFloat64(s.to, "gregor_cleaner_seconds_total", st.Seconds)
	s.counter("cleaner_read_bytes_total", st.BytesRead)
	s.counter("cleaner_written_bytes_total", st.BytesWritten)
	s.counter("cleaner_records_read_total", st.RecordsRead)
	s.counter("cleaner_records_removed_total", st.RecordsRemoved)
	s.counter("cleaner_segments_removed_total", st.SegmentsGone)
}

func (s scrape) partition(p *partition) {
	labels := fmt.Sprintf("{topic=%q,partition=\"%d\"}", p.topic.name, p.num)
	s.gauge("log_start_offset"+labels, p.log.StartOffset())
	s.gauge("log_high_watermark"+labels, p.log.HighWatermark())
	s.gauge("log_end_offset"+labels, p.log.EndOffset())
	s.gauge("log_bytes"+labels, p.log.Size())
}
