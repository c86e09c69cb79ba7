package broker

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// formatTopic makes a topic with keys and values in turn.
func (c *client) formatTopic(name string, keys ...string) {
	c.t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, 1, 1
	for i := 0; i < len(keys); i += 2 {
		k := kmsg.NewCreateTopicsRequestTopicConfig()
		k.Name, k.Value = keys[i], &keys[i+1]
		rt.Configs = append(rt.Configs, k)
	}
	r.Topics = append(r.Topics, rt)
	if resp := ask[*kmsg.CreateTopicsResponse](c, 4, r); resp.Topics[0].ErrorCode != 0 {
		c.t.Fatalf("creating %s: error %d", name, resp.Topics[0].ErrorCode)
	}
}

// stored lists magic and codec of the entries of a partition.
func (c *client) stored(topic string) (list []batch.Entry) {
	c.t.Helper()
	set := c.fetch(topic, 0, 0, 0).RecordBatches
	for len(set) > 0 {
		if err := batch.Verify(set); err != nil {
			c.t.Fatal(err)
		}
		e, err := batch.ReadEntry(set)
		if err != nil {
			c.t.Fatal(err)
		}
		list = append(list, e)
		set = set[e.Size:]
	}
	return list
}

// wrapped is a compressed set as an old client sends it.
func wrapped(t *testing.T, magic byte, codec batch.Codec, records ...record) []byte {
	t.Helper()
	var d batch.Downgrader
	out, err := d.Set(nil, batchOf(t, batch.None, records...), batch.SetOptions{Magic: int8(magic), Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOldFormats: a topic of each format takes from every producer and gives to every consumer; what it stores has its format and, unless
// compression.type says otherwise, the codec of the producer.
func TestOldFormats(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	for format, version := range []string{"0.9.0", "0.10.2", "3.0"} {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4} {
			topic := fmt.Sprintf("format%d-%d", format, codec)
			c.formatTopic(topic, "message.format.version", version)
			var want []oldRecord
			for produce := int16(0); produce <= 12; produce++ {
				ts := nowMillis() + int64(produce)
				records := []record{{"a", strings.Repeat("one", 50), ts + 5}, {"b", fmt.Sprint("two of ", produce), ts}, {"c", "three", ts + 1}}
				magic := byte(min(2, max(produce, 1)-1))
				set := batchOf(t, codec, records...)
				if magic < 2 {
					set = wrapped(t, magic, codec, records...)
				}
				resp := ask[*kmsg.ProduceResponse](c, produce, produceRequest(topic, 0, -1, set))
				if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != int64(len(want)) {
					t.Fatalf("%s, produce v%d: error %d at %d, want offset %d", topic, produce, p.ErrorCode, p.BaseOffset, len(want))
				}
				for _, r := range records {
					if magic == 0 || format == 0 {
						r.ts = -1
					}
					want = append(want, oldRecord{int64(len(want)), r.ts, r.key, r.value})
				}
			}
			next := int64(0)
			for _, e := range c.stored(topic) {
				if e.Magic != int8(format) || e.Codec != codec || e.LastOffset < next {
					t.Fatalf("%s: stored entry %+v after %d", topic, e, next)
				}
				next = e.LastOffset + 1
			}
			for version := int16(0); version < 4; version++ {
				for _, from := range []int{0, 1, len(want) - 2} {
					sameOldRecords(t, fmt.Sprint(topic, " fetch v", version), c.consumeOld(version, topic, int64(from), 1<<20), want[from:], version < 2)
				}
			}
			sameOldRecords(t, topic, oldRecords(t, c.fetch(topic, 0, 0, 0).RecordBatches, 2, 0), want, false)
		}
	}
}

func sameOldRecords(t *testing.T, what string, got, want []oldRecord, noTime bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if noTime {
			w.ts = -1
		}
		if got[i] != w {
			t.Fatalf("%s: record %+v, want %+v", what, got[i], w)
		}
	}
}

// TestOldFormatRefuses what these formats have no place for.
func TestOldFormatRefuses(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.formatTopic("old", "message.format.version", "0.10.0", "max.message.bytes", "1000")
	var w batch.Builder
	w.Reset(batch.Options{LeaderEpoch: -1})
	w.Append(nowMillis(), nil, []byte("v"), batch.RecordHeader{Key: "h"})
	headers, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := record{"k", "v", nowMillis()}
	crc := batchOf(t, batch.None, r)
	crc[len(crc)-1] ^= 1
	for name, tc := range map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		"headers":    {headers, kerr.UnsupportedForMessageFormat},
		"idempotent": {producerBatch(t, batch.None, 1, 0, 0, r), kerr.UnsupportedForMessageFormat},
		"zstd":       {batchOf(t, batch.Zstd, r), kerr.UnsupportedCompressionType},
		"too large":  {batchOf(t, batch.None, record{"k", strings.Repeat("v", 940), nowMillis()}, r), kerr.MessageTooLarge},
		"crc":        {crc, kerr.CorruptMessage},
	} {
		if got := c.produce("old", 0, tc.records); got.ErrorCode != tc.want.Code {
			t.Errorf("%s: error %d, want %v", name, got.ErrorCode, tc.want)
		}
	}
	if end := b.topics.name("old").partition(0).log.EndOffset(); end != 0 {
		t.Errorf("log end offset is %d", end)
	}
}

// TestOldFormatTimes: LogAppendTime and compression.type on topics of old formats.
func TestOldFormatTimes(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	for format, version := range []string{"0.8.2", "0.10.0", "0.11.0"} {
		topic := fmt.Sprint("stamped", format)
		c.formatTopic(topic, "message.format.version", version, "message.timestamp.type", "LogAppendTime", "compression.type", "gzip")
		begin := nowMillis()
		for produce := int16(0); produce < 5; produce++ {
			set := batchOf(t, batch.None, record{"k", "v", 5}, record{"k", "w", 7})
			if produce < 3 {
				set = wrapped(t, byte(max(produce, 1)-1), batch.Snappy, record{"k", "v", 5}, record{"k", "w", 7})
			}
			resp := ask[*kmsg.ProduceResponse](c, produce, produceRequest(topic, 0, -1, set))
			p := resp.Topics[0].Partitions[0]
			if p.ErrorCode != 0 || produce >= 2 && (p.LogAppendTime < begin || p.LogAppendTime > nowMillis()) {
				t.Fatalf("%s v%d: %+v", topic, produce, p)
			}
		}
		for _, e := range c.stored(topic) {
			if e.Codec != batch.Gzip || int(e.Magic) != format || format > 0 && (e.MaxTimestamp < begin || e.MaxTimestamp > nowMillis()) {
				t.Errorf("%s: %+v", topic, e)
			}
		}
		for version := int16(0); version < 4; version++ {
			for _, r := range c.consumeOld(version, topic, 0, 1<<20) {
				if want := format > 0 && version > 1; want != (r.ts >= begin) || !want && r.ts != -1 {
					t.Errorf("%s fetch v%d: %+v", topic, version, r)
				}
			}
		}
	}
}

// TestOldFormatChanges: a topic whose format is changed holds them all; each consumer gets what it reads, before and after a crash.
func TestOldFormatChanges(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.formatTopic("mixed")
	part := b.topics.name("mixed").partition(0)
	var want []oldRecord
	for i := range 30 {
		conf := *part.topic.config.Load()
		conf.Magic = []int8{2, 0, 1, 0, 2}[i%5]
		part.topic.config.Store(&conf)
		r := record{"k", fmt.Sprint("value ", i), nowMillis()}
		if got := c.produce("mixed", 0, batchOf(t, batch.Codec(i%4), r, r)); got.ErrorCode != 0 {
			t.Fatal(got.ErrorCode)
		}
		if conf.Magic == 0 {
			r.ts = -1
		}
		want = append(want, oldRecord{int64(2 * i), r.ts, r.key, r.value}, oldRecord{int64(2*i + 1), r.ts, r.key, r.value})
	}
	check := func(c *client) {
		t.Helper()
		for version := int16(0); version < 4; version++ {
			for _, maxBytes := range []int32{300, 1 << 20} {
				sameOldRecords(t, fmt.Sprint("fetch v", version), c.consumeOld(version, "mixed", 0, maxBytes), want, version < 2)
			}
		}
		sameOldRecords(t, "fetch v12", oldRecords(t, c.fetch("mixed", 0, 0, 0).RecordBatches, 2, 0), want, false)
	}
	check(c)
	b.abandon()
	check(startBroker(t, dir).dial())
}

// TestDownConversionDisabled: message.downconversion.enable=false gives an error to those who need it.
func TestDownConversionDisabled(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	for version, want := range map[string]int16{"0.8.2": 0, "3.0": kerr.UnsupportedVersion.Code} {
		c.formatTopic(version, "message.downconversion.enable", "false", "message.format.version", version)
		c.produce(version, 0, batchOf(t, batch.None, record{"k", "v", nowMillis()}))
		for v := int16(0); v < 4; v++ {
			if p := c.oldFetch(v, version, 0, 1<<20); p.ErrorCode != want || want != 0 && (p.RecordBatches == nil || len(p.RecordBatches) > 0) {
				t.Errorf("format %s, fetch v%d: error %d, %d bytes", version, v, p.ErrorCode, len(p.RecordBatches))
			}
		}
	}
}

func gzipped(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// TestOldFormatListOffsets: messages of magic 0 have no timestamps to look for.
func TestOldFormatListOffsets(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	now := nowMillis()
	for version, want := range map[string]string{"0.9.0": "43 -1 -1 -1", "0.10.0": fmt.Sprintf("0 %d 1 0", now+1)} {
		c.formatTopic(version, "message.format.version", version)
		c.produce(version, 0, batchOf(t, batch.Gzip, record{"k", "v", now}, record{"k", "w", now + 1}))
		for timestamp, want := range map[int64]string{now + 1: want, timeMax: want, timeLatest: "0 -1 2 0", timeEarliest: "0 -1 0 0"} {
			// The epoch of entries without one is not known.
			got := c.listOffset(7, listRequest(version, timestamp, 0))
			if got != want && strings.TrimSuffix(got, "-1")+"0" != want {
				t.Errorf("format %s, timestamp %d: %s, want %s", version, timestamp, got, want)
			}
		}
	}
}

// TestProduceDecompressedLimit: max.decompressed.message.bytes bounds what a batch or a set may inflate to.
func TestProduceDecompressedLimit(t *testing.T) {
	c := startBroker(t, t.TempDir(), "max.decompressed.message.bytes", "10000").dial()
	c.createTopic("t")
	for n, want := range map[int]int16{5000: 0, 20_000: kerr.MessageTooLarge.Code} {
		r := record{"k", strings.Repeat("v", n), nowMillis()}
		for version, set := range map[int16][]byte{2: wrapped(t, 1, batch.Gzip, r), 9: batchOf(t, batch.Gzip, r)} {
			resp := ask[*kmsg.ProduceResponse](c, version, produceRequest("t", 0, -1, set))
			if got := resp.Topics[0].Partitions[0].ErrorCode; got != want {
				t.Errorf("v%d with %d bytes: error %d, want %d", version, n, got, want)
			}
		}
	}
}
