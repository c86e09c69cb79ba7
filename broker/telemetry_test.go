package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/telemetry"
	"gregor/log/batch"
)

// gaugeData is one gauge as a client sends it, MetricsData of OpenTelemetry.
func gaugeData(name string, v float64) []byte {
	nested := func(n byte, body []byte) []byte {
		return append(binary.AppendUvarint([]byte{n<<3 | 2}, uint64(len(body))), body...)
	}
	point := binary.LittleEndian.AppendUint64([]byte{4<<3 | 1}, math.Float64bits(v))
	return nested(1, nested(2, nested(2, append(nested(1, []byte(name)), nested(5, nested(1, point))...))))
}

// packed compresses as Kafka's clients do.
func packed(t *testing.T, codec batch.Codec, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case batch.None:
		return data
	case batch.Snappy:
		return s2.EncodeSnappy(nil, data)
	case batch.Gzip:
		w = gzip.NewWriter(&out)
	case batch.LZ4:
		w = lz4.NewWriter(&out)
	case batch.Zstd:
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// subscription asks what to send; the id is zero the first time.
func (c *client) subscription(id [16]byte) *kmsg.GetTelemetrySubscriptionsResponse {
	c.t.Helper()
	r := kmsg.NewPtrGetTelemetrySubscriptionsRequest()
	r.ClientInstanceID = id
	return ask[*kmsg.GetTelemetrySubscriptionsResponse](c, 0, r)
}

func (c *client) push(s *kmsg.GetTelemetrySubscriptionsResponse, codec int8, data []byte, terminating bool) int16 {
	c.t.Helper()
	r := kmsg.NewPtrPushTelemetryRequest()
	r.ClientInstanceID, r.SubscriptionID, r.CompressionType, r.Metrics, r.Terminating = s.ClientInstanceID, s.SubscriptionID, codec, data, terminating
	return ask[*kmsg.PushTelemetryResponse](c, 0, r).ErrorCode
}

// TestTelemetrySubscriptions: what a client is told follows the subscriptions that match it.
func TestTelemetrySubscriptions(t *testing.T) {
	b := startBroker(t, t.TempDir(), "telemetry.max.bytes", "5000")
	c := b.dial()
	s := c.subscription([16]byte{})
	if s.ErrorCode != 0 || s.ClientInstanceID == [16]byte{} || s.PushIntervalMillis != 300_000 || len(s.RequestedMetrics) != 0 || s.TelemetryMaxBytes != 5000 || s.DeltaTemporality ||
		!slices.Equal(s.AcceptedCompressionTypes, []int8{4, 3, 1, 2}) {
		t.Errorf("without subscriptions: %+v", s)
	}
	if again := c.subscription(s.ClientInstanceID); again.ErrorCode != kerr.ThrottlingQuotaExceeded.Code {
		t.Errorf("asked again at once: %+v", again)
	}
	for name, keys := range map[string][3]string{"one": {"b.,a.", "60000", "client_id=te.t"}, "two": {"a.", "1000", "client_source_address=127.0.0.1"}, "other": {"*", "100", "client_id=tes"}} {
		if got := c.increment(resourceClientMetrics, name, false, set("metrics", keys[0]), set("interval.ms", keys[1]), set("match", keys[2])); got != altered {
			t.Fatal(got)
		}
	}
	next := c.subscription(s.ClientInstanceID) // not too early: there are other terms
	if next.ErrorCode != 0 || next.ClientInstanceID != s.ClientInstanceID || next.SubscriptionID == s.SubscriptionID || next.PushIntervalMillis != 1000 ||
		!slices.Equal(next.RequestedMetrics, []string{"a.", "b."}) {
		t.Errorf("of two that match: %+v", next)
	}
	if got := c.push(s, 0, gaugeData("a.x", 1), false); got != kerr.UnknownSubscriptionID.Code {
		t.Errorf("by the old terms: error %d", got)
	}
	c.increment(resourceClientMetrics, "one", false, set("metrics", "*"))
	if all := c.subscription(s.ClientInstanceID); !slices.Equal(all.RequestedMetrics, []string{""}) {
		t.Errorf("of all: %+v", all)
	}
}

// TestPushTelemetry: what is taken with each codec is shown with the broker's metrics, what is wrong has its error.
func TestPushTelemetry(t *testing.T) {
	b := startBroker(t, t.TempDir(), "gregor.metrics.listener", "127.0.0.1:0", "telemetry.max.bytes", "50000")
	c := b.dial()
	c.id = "a \"quoted\\\n client"
	for codec := batch.None; codec <= batch.Zstd; codec++ {
		if got := c.push(c.subscription([16]byte{}), int8(codec), packed(t, codec, gaugeData("org.apache.kafka.x", float64(codec))), false); got != 0 {
			t.Errorf("codec %d: error %d", codec, got)
		}
	}
	text := scrapeOf(t, b.Broker)
	for _, v := range []string{"0", "1", "2", "3", "4"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, `gregor_client_x{client_id="a \"quoted\\\n client",client_instance_id="`) && strings.HasSuffix(line, "\"} "+v+"\n")
		}
		if !found {
			t.Errorf("value %s is not shown in\n%s", v, text)
		}
	}
	bomb := packed(t, batch.Gzip, make([]byte, telemetryMostBytes+1))
	for name, p := range map[string]struct {
		codec int8
		data  []byte
		want  *kerr.Error
	}{
		"codec 5":     {5, gaugeData("x", 1), kerr.UnsupportedCompressionType},
		"codec -1":    {-1, gaugeData("x", 1), kerr.UnsupportedCompressionType},
		"too large":   {0, make([]byte, 50_001), kerr.TelemetryTooLarge},
		"no gzip":     {1, gaugeData("x", 1), kerr.InvalidRecord},
		"no metrics":  {0, []byte{0xff}, kerr.InvalidRecord},
		"cut gzip":    {1, packed(t, batch.Gzip, gaugeData("x", 1))[:20], kerr.InvalidRecord},
		"zstd header": {4, []byte{0x28, 0xb5, 0x2f, 0xfd}, kerr.InvalidRecord},
	} {
		if got := c.push(c.subscription([16]byte{}), p.codec, p.data, false); got != p.want.Code {
			t.Errorf("%s: error %d, want %v", name, got, p.want)
		}
	}
	if got := c.push(c.subscription([16]byte{}), 1, bomb, false); got != kerr.TelemetryTooLarge.Code {
		t.Errorf("a bomb of %d bytes: error %d", len(bomb), got)
	}
	s := c.subscription([16]byte{})
	for i, want := range []int16{0, kerr.ThrottlingQuotaExceeded.Code} {
		if got := c.push(s, 0, gaugeData("x", 1), false); got != want {
			t.Errorf("push %d: error %d, want %d", i, got, want)
		}
	}
	if got := c.push(s, 0, nil, true); got != 0 {
		t.Errorf("the last: error %d", got)
	}
	if got := c.push(s, 0, nil, false); got != kerr.InvalidRequest.Code {
		t.Errorf("after the last: error %d", got)
	}
	if got := c.push(&kmsg.GetTelemetrySubscriptionsResponse{}, 0, nil, false); got != kerr.InvalidRequest.Code {
		t.Errorf("without an id: error %d", got)
	}
}

// TestKgoTelemetry: franz-go sends its metrics when it is asked to, and its last when it closes.
func TestKgoTelemetry(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("told")
	if got := c.increment(resourceClientMetrics, "all", false, set("metrics", "*"), set("interval.ms", "100"), set("match", "client_id=teller")); got != altered {
		t.Fatal(got)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ClientID("teller"), kgo.DefaultProduceTopic("told"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	waitFor(t, func() bool {
		if err := cl.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		found := false
		b.telemetry.Each(time.Now(), func(_ telemetry.ID, who telemetry.Client, samples []telemetry.Sample) {
			found = found || who.ClientID == "teller" && slices.ContainsFunc(samples, func(s telemetry.Sample) bool { return strings.HasPrefix(s.Name, "producer_") })
		})
		return found
	})
}
