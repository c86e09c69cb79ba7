package broker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// TestConversions: what each client id causes is counted and, once, logged; clients that cause none are not there.
func TestConversions(t *testing.T) {
	var lines syncBuffer
	b := newBroker(t, Config{Logger: slog.New(slog.NewTextHandler(&lines, nil))}, t.TempDir(), "gregor.metrics.listener", "127.0.0.1:0")
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	current, producer, consumer := b.dial(), b.dial(), b.dial()
	current.id, producer.id, consumer.id = "current", "agent-0.8", "etl-0.10"
	current.createTopic("t")
	current.formatTopic("old", "message.format.version", "0.10.0")
	now := nowMillis()
	set := wrapped(t, 1, batch.None, record{"k", "v", now}, record{"k", "w", now})
	newer := batchOf(t, batch.None, record{"k", "v", now})
	for range 3 {
		current.produce("t", 0, bytes.Clone(newer))
		ask[*kmsg.ProduceResponse](producer, 2, produceRequest("t", 0, -1, bytes.Clone(set)))
		ask[*kmsg.ProduceResponse](producer, 2, produceRequest("old", 0, -1, bytes.Clone(set))) // nothing to convert
	}
	if got := consumer.consumeOld(2, "t", 0, 1<<20); len(got) != 9 {
		t.Fatalf("%d records", len(got))
	}
	consumer.consumeOld(2, "old", 0, 1<<20)
	current.fetch("t", 0, 0, 0)
	current.fetch("old", 0, 0, 0)
	var out strings.Builder
	for _, c := range b.Conversions() {
		fmt.Fprintf(&out, "%q v%d: %d produced in %d bytes, %d fetched in %v\n", c.ClientID, c.Version, c.Produced, c.ProducedBytes, c.Fetched, c.FetchedBytes > 9*30)
	}
	want := fmt.Sprintf("\"agent-0.8\" v2: 6 produced in %d bytes, 0 fetched in false\n\"etl-0.10\" v2: 0 produced in 0 bytes, 9 fetched in true\n", 3*len(set))
	if out.String() != want {
		t.Errorf("got\n%s want\n%s", out.String(), want)
	}
	current.produce("old", 0, newer)
	if got := b.Conversions(); len(got) != 3 || got[1].ClientID != "current" || got[1].Produced != 1 {
		t.Errorf("a new producer on a topic of an old format: %+v", got)
	}
	for _, want := range []string{`{client_id="agent-0.8",api="Produce"} 6`, `{client_id="etl-0.10",api="Fetch"} 9`, `{client_id="current",api="Produce"} 1`} {
		if text := scrapeOf(t, b.Broker); !strings.Contains(text, "\ngregor_converted_records_total"+want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for id, version := range map[string]string{"agent-0.8": "api=Produce version=2", "etl-0.10": "api=Fetch version=2", "current": "api=Produce version=9"} {
		if n := strings.Count(lines.String(), "client_id="+id+" peer=127.0.0.1:"); n != 1 || !strings.Contains(lines.String(), version) {
			t.Errorf("%d lines about %s in\n%s", n, id, lines.String())
		}
	}
}

// TestConversionsBound: ids come from outside; only so many are told apart.
func TestConversionsBound(t *testing.T) {
	var lines syncBuffer
	c := newConversions(slog.New(slog.NewTextHandler(&lines, nil)))
	for i := range maxConversionClients + 50 {
		c.fetched(converting{api: "Fetch", clientID: fmt.Sprint("client", i), peer: testAddr{}}, 2, 100)
	}
	got := c.snapshot()
	if last := got[len(got)-1]; len(got) != maxConversionClients+1 || !last.Others || last.Fetched != 100 || last.FetchedBytes != 5000 {
		t.Errorf("%d entries, the last is %+v", len(got), last)
	}
	if n := strings.Count(lines.String(), "\n"); n != maxConversionClients {
		t.Errorf("%d lines", n)
	}
}

type testAddr struct{}

func (testAddr) Network() string { return "tcp" }
func (testAddr) String() string  { return "127.0.0.1:1" }

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestConversionMemory: an answer of tens of MB is converted while it goes out, in a few MB, whatever it inflates to.
func TestConversionMemory(t *testing.T) {
	const limit = 5 << 20
	b := startBroker(t, t.TempDir(), "flush.messages", "1000000")
	c := b.dial()
	for _, tc := range []struct {
		topic   string
		codec   batch.Codec
		records int
		batches int
	}{
		{"plain", batch.None, 1000, 24},
		{"packed", batch.Gzip, 8000, 6}, // 8 MB each
		{"wide", batch.Snappy, 4000, 20},
	} {
		c.createTopic(tc.topic)
		var w batch.Builder
		w.Reset(batch.Options{Codec: tc.codec, LeaderEpoch: -1})
		value := []byte(strings.Repeat("0123456789", 100))
		for i := range tc.records {
			w.Append(nowMillis(), nil, value[i%300:])
		}
		set, err := w.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range tc.batches {
			if got := c.produce(tc.topic, 0, bytes.Clone(set)); got.ErrorCode != 0 {
				t.Fatalf("%s: error %d for a batch of %d bytes", tc.topic, got.ErrorCode, len(set))
			}
		}
		before := live()
		r := fetchRequest(tc.topic, 0, 0, 0)
		r.Topics[0].Partitions[0].PartitionMaxBytes = 50 << 20
		r.SetVersion(1)
		c.send(r)
		var size [4]byte
		if _, err := io.ReadFull(c.conn, size[:]); err != nil {
			t.Fatal(err)
		}
		left, most, buf := int64(binary.BigEndian.Uint32(size[:])), int64(0), make([]byte, 256<<10)
		t.Logf("%s: answer of %d bytes", tc.topic, left)
		for step := 0; left > 0; step++ {
			n, err := c.conn.Read(buf[:min(left, int64(len(buf)))])
			if err != nil {
				t.Fatal(err)
			}
			left -= int64(n)
			if step%50 == 0 {
				most = max(most, live()-before)
			}
		}
		t.Logf("%s: at most %d bytes live", tc.topic, most)
		if most > limit {
			t.Errorf("%s: %d bytes are live during the answer, want at most %d", tc.topic, most, limit)
		}
	}
}

// live is the heap that is in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
