package old

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
)

// readers are one version for each version of Fetch that messages of magic 0 and 1 go by, and the newest.
var readers = [...]string{"0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "4.4.0"}

// TestOffsetInsideSet: a consumer that asks for an offset inside a compressed set gets from there on exactly what follows,
// whatever format the topic stores.
func TestOffsetInsideSet(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	var topics, list []string
	for _, format := range []string{"0.9.0", "0.10.0", "0.11.0"} {
		for name, codec := range map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression()} {
			topic := harness.Topic(format + name)
			b.Create(t, 1, []string{"message.format.version=" + format}, topic)
			fill(t, b, topic, codec, 100, 80)
			topics = append(topics, topic)
			list = append(list, fmt.Sprintf("%s\t0\t57\t100\t100000", topic))
		}
	}
	for _, version := range readers {
		t.Run(version, func(t *testing.T) {
			got := matrix(t, version, "slices", b.Addr(), list)
			for _, topic := range topics {
				if want := upTo(57, 100); !slices.Equal(got.offsets[topic], want) {
					t.Errorf("%s from 57: offsets %v, want %v; the client says %q", topic, got.offsets[topic], want, got.failures[topic])
				}
			}
		})
	}
}

// TestFetchSmallerThanMessage: until Fetch v2 a fetch never brings more than asked for, so that a message that is larger
// comes cut and the client says so; from v3 on the first one comes whole.
func TestFetchSmallerThanMessage(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	topic, stored0 := harness.Topic("big"), harness.Topic("big0")
	b.Create(t, 1, nil, topic)
	b.Create(t, 1, []string{"message.format.version=0.9.0"}, stored0)
	said := map[string]string{"0.8.2.2": "brought no message, the last one 1000 bytes", "0.9.0.1": "RecordTooLargeException"}
	for _, name := range []string{topic, stored0} {
		fill(t, b, name, kgo.NoCompression(), 2, 50_000)
	}
	for _, version := range readers {
		t.Run(version, func(t *testing.T) {
			for _, name := range []string{topic, stored0} {
				got := matrix(t, version, "slices", b.Addr(), []string{name + "\t0\t0\t2\t1000"})
				want := upTo(0, 2)
				if said[version] != "" {
					want = nil
				}
				if !slices.Equal(got.offsets[name], want) || !strings.Contains(got.failures[name], said[version]) {
					t.Errorf("%s: offsets %v, the client says %q; want %v and %q", name, got.offsets[name], got.failures[name], want, said[version])
				}
			}
		})
	}
}

// TestLogBeginsLate: after DeleteRecords into the middle of a batch, old consumers are told the new beginning, read from
// there, and hear that what was before is out of range.
func TestLogBeginsLate(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	topic := harness.Topic("late")
	b.Create(t, 1, nil, topic)
	fill(t, b, topic, kgo.GzipCompression(), 100, 80)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var cut kadm.Offsets
	cut.Add(kadm.Offset{Topic: topic, At: 40})
	if resps, err := kadm.NewClient(b.Client(t)).DeleteRecords(ctx, cut); err != nil || resps.Error() != nil {
		t.Fatalf("delete records: %v %v", err, resps.Error())
	}
	for _, version := range readers {
		t.Run(version, func(t *testing.T) {
			got := matrix(t, version, "consume", b.Addr(), []string{topic}, "0")
			if want := upTo(40, 100); !slices.Equal(got.offsets[topic], want) || got.spans[topic] != "40 100" {
				t.Errorf("offsets %v of %q, want %v of 40 100; the client says %q", got.offsets[topic], got.spans[topic], want, got.failures[topic])
			}
			early := matrix(t, version, "slices", b.Addr(), []string{topic + "\t0\t7\t100\t100000"})
			if said := early.failures[topic]; len(early.offsets[topic]) > 0 || !strings.Contains(said, "OffsetOutOfRange") {
				t.Errorf("from 7: offsets %v, the client says %q, want OffsetOutOfRange", early.offsets[topic], said)
			}
		})
	}
}

// TestEmptyAndUnknown: an empty topic ends at 0, an unknown one is named as such, and both at once.
func TestEmptyAndUnknown(t *testing.T) {
	b := harness.Start(t, harness.Config{Set: []string{"auto.create.topics.enable=false"}})
	empty := harness.Topic("empty")
	b.Create(t, 1, nil, empty)
	unknown := harness.Topic("unknown")
	for _, version := range readers {
		t.Run(version, func(t *testing.T) {
			start := time.Now()
			got := matrix(t, version, "consume", b.Addr(), []string{empty, unknown, empty}, "0")
			if got.spans[empty] != "0 0" || got.failures[empty] != "" || len(got.offsets[empty]) > 0 {
				t.Errorf("%s: %q, offsets %v, the client says %q", empty, got.spans[empty], got.offsets[empty], got.failures[empty])
			}
			want := "no partitions known"
			if version == "0.8.2.2" {
				want = "UnknownTopicOrPartitionException"
			}
			if said := got.failures[unknown]; !strings.Contains(said, want) || got.spans[unknown] != "" {
				t.Errorf("%s: %q, the client says %q, want %q", unknown, got.spans[unknown], said, want)
			}
			t.Logf("both after %v", time.Since(start).Round(time.Millisecond))
		})
	}
}
