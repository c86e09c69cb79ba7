package clients

import (
	"context"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
)

// TestZstdForOldConsumers: a consumer that knows no zstd is told so, in its own words, and gets no bytes that it would
// take for something else.
func TestZstdForOldConsumers(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	all := everyone(t)
	newest := all.producers[0]
	tp := &topic{name: harness.Topic("zstd"), codec: "zstd", producer: newest, set: newest.set(recordSet())}
	b.Create(t, partitions, nil, tp.name)
	produceAll(t, b.Addr(), newest, []*topic{tp})
	for _, c := range all.consumers {
		want := zstdWords(c.name())
		if want == "" {
			continue // it reads zstd
		}
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			v, err := c.consume(ctx, b.Addr(), []*topic{tp})
			said := v.failures[tp.name]
			if err != nil {
				said = err.Error()
			}
			t.Logf("%s says: %.300s", c.name(), said)
			// Some producers leave a batch as it is when zstd would not make it smaller; what is in this one they compress.
			if n := len(v.lines[tp.name][small]); n > 0 {
				t.Errorf("%d records of a codec that %s cannot read", n, c.name())
			}
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q", c.name(), want)
			}
		})
	}
}

// zstdWords is what a client says that knows no zstd, "" for all others. Those before message format 2 are answered
// UNSUPPORTED_COMPRESSION_TYPE (76), which the Java consumers of 0.9 and 0.10 only log; the later ones get the batch and
// see its codec.
func zstdWords(client string) string {
	return map[string]string{
		"kcat 0.8.2": "Unsupported compression type", "kcat 0.9.0": "Unsupported compression type",
		"sarama 0.8.2": "does not support the compression type", "sarama 0.9": "does not support the compression type", "sarama 0.10": "does not support the compression type",
		"kafka-python 0.8.2": "UnsupportedCompressionType", "kafka-python 0.9": "UnsupportedCompressionType", "kafka-python 0.10": "UnsupportedCompressionType",
		"java 0.8.2.2": "fetch answered error 76", "java 0.9.0.1": "no record for", "java 0.10.2.2": "no record for",
		"java 0.11.0.3": "Unknown compression type id: 4", "java 1.1.1": "Unknown compression type id: 4", "java 2.0.1": "Unknown compression type id: 4",
	}[client]
}
