package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/telemetry"
	"gregor/log/batch"
	"gregor/wire"
)

// GetTelemetrySubscriptions (key 71) and PushTelemetry (key 72), version 0 (KIP-714): clients send metrics of theirs when a subscription, which is a resource of type
// CLIENT_METRICS, matches them. The last values of each client are shown with the broker's own metrics (gregor.metrics.listener), as gregor_client_…
//
//   - Clients are asked for totals since their start, not for what came since the last push (Kafka's way): Prometheus wants counters.
//   - What may be compressed how is Kafka's: zstd, lz4, gzip, snappy or nothing. Pushes are decompressed one at a time, up to telemetryMostBytes.
//   - A push before its time is THROTTLING_QUOTA_EXCEEDED, one by another subscription than the client's UNKNOWN_SUBSCRIPTION_ID; then it asks again.

// telemetryMostBytes is how large a push may be when it is decompressed.
const telemetryMostBytes = 16 << 20

// clientTelemetry is what the clients sent.
type clientTelemetry struct {
	*telemetry.Clients
	inflating sync.Mutex // so that only one push is held decompressed; nothing is taken under it but Clients' lock
}

func (b *Broker) handleGetTelemetry(_ context.Context, req *wire.Request, r *kmsg.GetTelemetrySubscriptionsRequest) kmsg.Response {
	resp := kmsg.NewPtrGetTelemetrySubscriptionsResponse()
	id := telemetry.ID(r.ClientInstanceID)
	if id == (telemetry.ID{}) {
		rand.Read(id[:]) //nolint:errcheck // it never fails
	}
	s, err := b.telemetry.Subscribe(id, telemetryClient(req), b.telemetryTerms(req), time.Now())
	if err != nil {
		resp.ErrorCode = telemetryCode(err)
		return resp
	}
	resp.ClientInstanceID, resp.SubscriptionID = id, s.ID
	resp.AcceptedCompressionTypes = []int8{int8(batch.Zstd), int8(batch.LZ4), int8(batch.Gzip), int8(batch.Snappy)}
	resp.PushIntervalMillis, resp.TelemetryMaxBytes = int32(s.Interval.Milliseconds()), b.conf.TelemetryMaxBytes
	resp.RequestedMetrics = s.Metrics
	return resp
}

func (b *Broker) handlePushTelemetry(_ context.Context, req *wire.Request, r *kmsg.PushTelemetryRequest) kmsg.Response {
	resp := kmsg.NewPtrPushTelemetryResponse()
	id := telemetry.ID(r.ClientInstanceID)
	err := b.telemetry.Check(id, telemetryClient(req), r.SubscriptionID, r.Terminating, b.telemetryTerms(req), time.Now())
	if err == nil {
		err = b.takeTelemetry(id, r)
	}
	resp.ErrorCode = telemetryCode(err)
	return resp
}

// takeTelemetry reads what a client pushed and keeps it.
func (b *Broker) takeTelemetry(id telemetry.ID, r *kmsg.PushTelemetryRequest) error {
	codec := batch.Codec(r.CompressionType)
	if r.CompressionType < int8(batch.None) || codec > batch.Zstd {
		b.telemetry.AskAgain(id)
		return kerr.UnsupportedCompressionType
	}
	if len(r.Metrics) > int(b.conf.TelemetryMaxBytes) {
		return kerr.TelemetryTooLarge
	}
	if len(r.Metrics) == 0 {
		return nil
	}
	samples, dropped, err := b.readTelemetry(codec, r.Metrics)
	if err != nil {
		b.telemetry.Unreadable()
		b.logger.Debug("client sent metrics that cannot be read", "client_instance", controller.FormatID(id), "error", err)
		return err
	}
	b.telemetry.Keep(id, samples, dropped)
	return nil
}

func (b *Broker) readTelemetry(codec batch.Codec, pushed []byte) ([]telemetry.Sample, int, error) {
	b.telemetry.inflating.Lock()
	defer b.telemetry.inflating.Unlock()
	data, err := batch.Inflate(codec, pushed, telemetryMostBytes)
	if err != nil {
		return nil, 0, err
	}
	return telemetry.Read(data)
}

// telemetryCode is Kafka's code of what a client did wrong.
func telemetryCode(err error) int16 {
	switch {
	case errors.Is(err, telemetry.ErrTooEarly):
		return kerr.ThrottlingQuotaExceeded.Code
	case errors.Is(err, telemetry.ErrSubscription):
		return kerr.UnknownSubscriptionID.Code
	case errors.Is(err, telemetry.ErrTerminated), errors.Is(err, telemetry.ErrID):
		return kerr.InvalidRequest.Code
	case errors.Is(err, batch.ErrTooLarge):
		return kerr.TelemetryTooLarge.Code
	case errors.Is(err, telemetry.ErrDamaged), errors.Is(err, batch.ErrInvalid):
		return kerr.InvalidRecord.Code
	}
	return code(err)
}

func telemetryClient(req *wire.Request) telemetry.Client {
	return telemetry.Client{ClientID: req.ClientID, SoftwareName: req.Conn.SoftwareName, SoftwareVersion: req.Conn.SoftwareVersion}
}

// telemetryTerms are what the subscriptions ask of the client of a request.
func (b *Broker) telemetryTerms(req *wire.Request) telemetry.Terms {
	all, generation := b.clientMetrics.subscriptions()
	return telemetry.Terms{Generation: generation, Wanted: func(id telemetry.ID) telemetry.Wanted {
		host, port, _ := net.SplitHostPort(req.Conn.Remote.String())
		attributes := map[string]string{
			config.MatchInstanceID: controller.FormatID(id), config.MatchClientID: req.ClientID,
			config.MatchSoftwareName: req.Conn.SoftwareName, config.MatchSoftwareVersion: req.Conn.SoftwareVersion,
			config.MatchSourceAddress: host, config.MatchSourcePort: port,
		}
		return wantedOf(all, func(name string) string { return attributes[name] })
	}}
}

// wantedOf puts together what all subscriptions that match ask for: all metrics of any, as often as the most eager wants.
func wantedOf(all []clientSubscription, attribute func(string) string) telemetry.Wanted {
	w := telemetry.Wanted{Interval: telemetry.DefaultInterval}
	for i := range all {
		if s := &all[i]; s.Matches(attribute) {
			w.Metrics = append(w.Metrics, s.Metrics...)
			w.Interval = min(w.Interval, s.Interval)
		}
	}
	slices.Sort(w.Metrics)
	w.Metrics = slices.Compact(w.Metrics)
	if slices.Contains(w.Metrics, "*") {
		w.Metrics = []string{""} // Kafka sends "*"; the empty prefix is what the message's definition has, and franz-go knows that only
	}
	return w
}
