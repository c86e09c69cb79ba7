package broker

import (
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"gregor/broker/controller"
	"gregor/broker/telemetry"
)

// telemetry has what clients pushed: gregor_client_producer_record_send_total{client_id="…",…} of Apache Kafka's org.apache.kafka.producer.record.send.total.
func (s scrape) telemetry() {
	st := s.broker.telemetry.Stats()
	s.gauge("telemetry_clients", int64(st.Clients))
	s.gauge("telemetry_values", int64(st.Values))
	s.counter("telemetry_pushes_total", st.Pushes)
	s.counter("telemetry_refused_total", st.Refused)
	s.counter("telemetry_unreadable_total", st.Unreadable)
	s.counter("telemetry_dropped_values_total", st.Dropped)
	var line strings.Builder
	s.broker.telemetry.Each(time.Now(), func(id telemetry.ID, who telemetry.Client, samples []telemetry.Sample) {
		common := "client_id=" + labelText(who.ClientID) + ",client_instance_id=" + labelText(controller.FormatID(id)) +
			",client_software=" + labelText(strings.TrimSpace(who.SoftwareName+" "+who.SoftwareVersion))
		for i := range samples {
			line.Reset()
			line.WriteString("gregor_client_" + samples[i].Name + "{" + common)
			for _, l := range samples[i].Labels {
				if strings.HasPrefix(l.Name, "client_id") || strings.HasPrefix(l.Name, "client_instance") || strings.HasPrefix(l.Name, "client_software") {
					continue // we know better
				}
				line.WriteString("," + l.Name + "=" + labelText(l.Value))
			}
			line.WriteString("}")
			metrics.WriteGaugeFloat64(s.to, line.String(), samples[i].Value)
		}
	})
}
