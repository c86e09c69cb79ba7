package old

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
)

// TestOldFormatRefuses: what a topic of an old message.format.version cannot store is refused, not dropped, and what can
// be stored goes on. Apache Kafka 2.8.2 answers headers and zstd UNKNOWN_SERVER_ERROR.
func TestOldFormatRefuses(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	plain := []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1), kgo.RecordRetries(0)}
	text := []byte(strings.Repeat("text ", 100))
	for _, format := range []string{"0.9.0", "0.10.0"} {
		topic := harness.Topic("refuses")
		b.Create(t, 1, []string{"message.format.version=" + format}, topic)
		for name, c := range map[string]struct {
			record *kgo.Record
			opts   []kgo.Opt
			want   error
		}{
			"headers": {
				&kgo.Record{Topic: topic, Value: text, Headers: []kgo.RecordHeader{{Key: "k", Value: []byte("v")}}}, plain,
				kerr.UnsupportedForMessageFormat,
			},
			"zstd":       {&kgo.Record{Topic: topic, Value: text}, append(plain, kgo.ProducerBatchCompression(kgo.ZstdCompression())), kerr.UnsupportedCompressionType},
			"idempotent": {&kgo.Record{Topic: topic, Value: text}, nil, kerr.UnsupportedForMessageFormat},
			"plain":      {&kgo.Record{Topic: topic, Value: text}, plain, nil},
		} {
			t.Run(format+"/"+name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := b.Client(t, c.opts...).ProduceSync(ctx, c.record).FirstErr()
				if errors.Is(err, kerr.UnknownServerError) && harness.Foreign(t, "the code of a refusal") {
					return
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		}
	}
}

// TestOffsetsBefore: version 0 of ListOffsets gives the beginnings of segments, newest first, and the end of the log.
func TestOffsetsBefore(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	topic := harness.Topic("segments")
	b.Create(t, 1, []string{"segment.bytes=2048"}, topic)
	for range 4 { // each batch of 10 records fills more than half a segment
		fill(t, b, topic, kgo.NoCompression(), 10, 120)
	}
	for _, version := range []string{"0.8.2.2", "1.1.1"} {
		for args, want := range map[string]string{
			"--time -1 --offsets 10": ":0:40,30,20,10,0", "--time -1 --offsets 2": ":0:40,30", "--time -2 --offsets 10": ":0:0",
			"--time 1 --offsets 10": ":0:\n", // before all segments
		} {
			command{version: version, class: "kafka.tools.GetOffsetShell", want: topic + want,
				args: fmt.Sprintf("--broker-list %s --topic %s %s", b.Addr(), topic, args)}.run(t)
		}
	}
}
