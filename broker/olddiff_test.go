package broker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

const oldAnswers = "testdata/old/kafka-3.9.1.txt"

// TestOldAsKafka plays requests of old versions and compares the answers with those that Apache Kafka 3.9.1 gave to the same ones, record sets
// that are not compressed byte for byte (testdata/old, written by TestRecordOld).
func TestOldAsKafka(t *testing.T) {
	text, err := os.ReadFile(oldAnswers)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 400 {
		t.Fatalf("only %d lines", len(lines))
	}
	got := map[string]string{}
	for _, s := range playOld(t, startBroker(t, t.TempDir()).Addr()) {
		got[s.name] = s.answer
	}
	for i := 0; i+1 < len(lines); i += 2 {
		if want, is := strings.TrimSpace(lines[i+1]), got[lines[i]]; is != want && !oldDeviates(lines[i], want, is) {
			t.Errorf("%s\n got   %s\n Kafka %s", lines[i], is, want)
		}
	}
}

// oldDeviates reports if an answer differs on purpose.
func oldDeviates(step, kafka, is string) bool {
	switch {
	case kafka == "error -1": // what is wrong with a set is UNKNOWN_SERVER_ERROR there, which tells nobody anything
		return is != kafka
	case strings.HasSuffix(kafka, "null"): // clients of 0.8 cannot read a record set of size -1
		return strings.Replace(kafka, "null", "0 bytes e3b0c44298fc offsets []", 1) == is
	case strings.Contains(step, " none at ") && strings.HasPrefix(kafka, "error 0 hw 30 0 bytes"):
		// A batch larger than the limit of version 0 to 2 gives nothing there, and the client waits for ever. TestFetchOldLimits.
		return !strings.Contains(step, "fetch v3")
	case strings.HasPrefix(step, "fetch v") && strings.Contains(step, "format-0.11.0-producer"):
		// A batch of zstd takes what is converted together with it along there.
		return strings.HasPrefix(is, "error 0") && strings.HasSuffix(kafka, "offsets [1 2]") && strings.Contains(is, "offsets [1 2 5")
	case strings.HasPrefix(step, "fetch v") && strings.Contains(step, "format-0.11.0-gzip"):
		// The promised size is that of the stored bytes: with another compressor the last wrapper may not fit, and comes with the next fetch.
		_, was, _ := strings.Cut(kafka, "offsets ")
		_, now, _ := strings.Cut(is, "offsets ")
		return strings.HasPrefix(is, "error 0 hw 32 compressed") && len(now) > 20 && strings.HasPrefix(was, strings.TrimSuffix(now, "]"))
	case strings.Contains(step, "marked at "):
		// Batches come twice there when those before them were left out, and a client cannot step over the last marker. TestFetchOldMarkers.
		return strings.Contains(kafka, "[4 5 6 4 5 6 ") || strings.Contains(kafka, "[8 9 10 8") || strings.Contains(kafka, " 12 bytes")
	}
	return false
}

// TestRecordOld writes the answers of an Apache Kafka down: one with inter.broker.protocol.version=2.8, which has message.format.version.
func TestRecordOld(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("needs -record ADDRESS of an Apache Kafka 3.9.1")
	}
	var out strings.Builder
	for _, s := range playOld(t, *recordFrom) {
		fmt.Fprintf(&out, "%s\n  %s\n", s.name, s.answer)
	}
	if err := os.WriteFile(oldAnswers, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// oldPlay is one run of all requests against one broker.
type oldPlay struct {
	t    *testing.T
	addr string
	c    *client
	out  []played
}

func (p *oldPlay) dial() *client {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &client{t: p.t, conn: conn, id: "old"}
}

func (p *oldPlay) say(answer, name string, args ...any) {
	p.out = append(p.out, played{fmt.Sprintf(name, args...), answer})
}

func playOld(t *testing.T, addr string) []played {
	p := &oldPlay{t: t, addr: addr}
	p.c = p.dial()
	p.fetches()
	p.formats()
	p.markers()
	p.sets()
	p.starts()
	return p.out
}

const oldTime = 1_700_000_000_000

// oldBatch is a batch with n records of about size bytes that do not compress well.
func oldBatch(t *testing.T, codec batch.Codec, n, size int, headers ...batch.RecordHeader) []byte {
	var w batch.Builder
	w.Reset(batch.Options{Codec: codec, LeaderEpoch: -1})
	for i := range n {
		value := make([]byte, size)
		for k := range value {
			value[k] = byte('a' + (i*31+k*k>>2)%26)
		}
		key := fmt.Appendf(nil, "key-%d", i)
		switch i % 4 {
		case 1:
			key = nil
		case 2:
			value = nil
		}
		w.Append(oldTime+int64(i*7%5), key, value, headers...)
	}
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// settled retries what a broker answers while a topic is new.
func (p *oldPlay) settled(topic string) {
	for {
		if r := ask[*kmsg.ListOffsetsResponse](p.c, 1, listRequest(topic, timeLatest, 0)); r.Topics[0].Partitions[0].ErrorCode == 0 {
			return
		}
	}
}

// produce sends one batch at a version and returns the partition's answer.
func (p *oldPlay) produce(version int16, topic string, set []byte) string {
	resp := ask[*kmsg.ProduceResponse](p.c, version, produceRequest(topic, 0, -1, set))
	got := resp.Topics[0].Partitions[0]
	return fmt.Sprintf("error %d base %d time %d", got.ErrorCode, got.BaseOffset, got.LogAppendTime)
}

func (p *oldPlay) fetch(version int16, topic string, offset int64, maxBytes int32) {
	p.t.Helper()
	got := p.c.oldFetch(version, topic, offset, maxBytes)
	p.say(fmt.Sprintf("error %d hw %d %s", got.ErrorCode, got.HighWatermark, p.set(got.RecordBatches)), "fetch v%d %s at %d, at most %d", version, topic, offset, maxBytes)
}

// set describes a record set: its size and a hash of all bytes, and if anything in it is compressed only what can be compared.
func (p *oldPlay) set(set []byte) string {
	if set == nil {
		return "null"
	}
	plain, offsets := true, []int64{}
	var inside []byte
	for rest := set; len(rest) > batch.MagicPos; {
		size, err := batch.EntrySize(rest)
		if err != nil || size > len(rest) {
			break
		}
		e, err := batch.ReadEntry(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := batch.Verify(rest); err != nil {
			p.t.Fatal(err)
		}
		plain = plain && e.Codec == batch.None
		offsets = append(offsets, e.LastOffset)
		inside = fmt.Appendf(inside, "%d %d %d ", e.Magic, e.Codec, e.MaxTimestamp)
		var r batch.Reader
		if err := r.Reset(rest[:size], 0); err != nil {
			p.t.Fatal(err)
		}
		var rec batch.Record
		for r.Next(&rec) {
			inside = fmt.Appendf(inside, "%d %d %q %v %q %v\n", rec.Offset, rec.Timestamp, rec.Key, rec.Key == nil, rec.Value, rec.Value == nil)
		}
		if r.Err() != nil {
			p.t.Fatal(r.Err())
		}
		rest = rest[size:]
	}
	if plain {
		return fmt.Sprintf("%d bytes %x offsets %v", len(set), digest(set), offsets)
	}
	return fmt.Sprintf("compressed %x offsets %v", digest(inside), offsets)
}

func digest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:6]
}

// fetches reads batches of each codec, and of several, with every old version, from several offsets and with several limits.
func (p *oldPlay) fetches() {
	header := batch.RecordHeader{Key: "h", Value: []byte("v")}
	for _, t := range []struct {
		topic  string
		codecs []batch.Codec
	}{
		{"none", []batch.Codec{batch.None, batch.None, batch.None}}, {"gzip", []batch.Codec{batch.Gzip, batch.Gzip}},
		{"snappy", []batch.Codec{batch.Snappy}}, {"lz4", []batch.Codec{batch.LZ4}},
		{"several", []batch.Codec{batch.None, batch.Gzip, batch.None, batch.LZ4, batch.Snappy}},
		{"last-zstd", []batch.Codec{batch.None, batch.Zstd}}, {"zstd", []batch.Codec{batch.Zstd, batch.None}},
	} {
		topic, codecs := t.topic, t.codecs
		p.c.formatTopic(topic)
		p.settled(topic)
		for i, codec := range codecs {
			p.say(p.produce(7, topic, oldBatch(p.t, codec, 10, 50+100*i, header)), "produce %s %d", topic, i)
		}
		end := int64(10 * len(codecs))
		limits := []int32{0, 11, 100, 700, 2000, 100_000}
		if topic != "none" {
			limits = []int32{100_000} // how large compressed sets are is the compressor's business
		}
		for version := int16(0); version < 4; version++ {
			for _, offset := range []int64{0, 1, 5, 9, 10, 15, end - 1, end, end + 1} {
				for _, limit := range limits {
					p.fetch(version, topic, offset, limit)
				}
			}
		}
	}
}

// formats produces with every version to topics of every format.
func (p *oldPlay) formats() {
	for _, format := range []string{"0.8.2", "0.10.2", "0.11.0"} {
		for _, codec := range []string{"producer", "gzip", "uncompressed"} {
			topic := "format-" + format + "-" + codec
			p.c.formatTopic(topic, "message.format.version", format, "compression.type", codec)
			p.settled(topic)
			records := []record{{"a", "one", oldTime + 5}, {"b", "two", oldTime}, {"c", strings.Repeat("three", 30), oldTime + 1}}
			for version := int16(0); version < 4; version++ {
				for _, z := range []batch.Codec{batch.None, batch.Snappy} {
					set := batchOf(p.t, z, records...)
					if version < 3 {
						set = wrapped(p.t, byte(max(version, 1)-1), z, records...)
					}
					p.say(p.produce(version, topic, set), "produce v%d codec %d to %s", version, z, topic)
				}
			}
			for _, tc := range []struct {
				name string
				set  []byte
			}{
				{"headers", oldBatch(p.t, batch.None, 2, 10, batch.RecordHeader{Key: "h"})},
				{"a producer id", producerBatch(p.t, batch.None, 77, 0, 0, records...)},
				{"zstd", batchOf(p.t, batch.Zstd, records...)},
			} {
				answer, _, _ := strings.Cut(p.produce(7, topic, tc.set), " base")
				p.say(answer, "produce with %s to %s", tc.name, topic)
			}
			for version := int16(0); version < 5; version++ {
				p.fetch(version, topic, 1, 100_000)
			}
		}
	}
}

// markers puts control batches between records.
func (p *oldPlay) markers() {
	p.c.formatTopic("marked")
	p.settled("marked")
	for i := range 3 {
		p.say(p.produce(7, "marked", oldBatch(p.t, batch.None, 3, 40)), "produce before marker %d", i)
		r := kmsg.NewPtrWriteTxnMarkersRequest()
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.Committed = int64(500+i), true
		mt := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		mt.Topic, mt.Partitions = "marked", []int32{0}
		m.Topics = append(m.Topics, mt)
		r.Markers = append(r.Markers, m)
		resp := ask[*kmsg.WriteTxnMarkersResponse](p.c, 1, r)
		p.say(fmt.Sprint(resp.Markers[0].Topics[0].Partitions[0].ErrorCode), "marker %d", i)
	}
	for version := int16(0); version < 4; version++ {
		for offset := range int64(13) {
			p.fetch(version, "marked", offset, 100_000)
		}
	}
}

// sets are what producers may get wrong in a message set.
func (p *oldPlay) sets() {
	good := func(magic byte) []byte { return message(magic, 0, 0, oldTime, []byte("k"), []byte("v")) }
	crc := good(1)
	crc[len(crc)-1] ^= 1
	crcInside := wrapped(p.t, 1, batch.None, record{"k", "v", oldTime}, record{"k", "w", oldTime})
	crcInside[len(crcInside)-1] ^= 1
	small := good(0)
	binary.BigEndian.PutUint32(small[8:], 5)
	negative := good(0)
	binary.BigEndian.PutUint32(negative[8:], math.MaxUint32)
	for _, format := range []string{"0.8.2", "0.10.2", "0.11.0"} {
		for _, tc := range []struct {
			name string
			set  []byte
		}{
			{"empty", []byte{}},
			{"torn", good(1)[:20]},
			{"shorter than a magic", good(1)[:10]},
			{"one and torn", append(good(1), good(1)[:20]...)},
			{"crc", crc},
			{"crc of the second", crcInside},
			{"magic 0 and 1", append(good(0), good(1)...)},
			{"magic 1 and 2", append(good(1), batchOf(p.t, batch.None, record{"k", "v", oldTime})...)},
			{"magic 2", batchOf(p.t, batch.None, record{"k", "v", oldTime})},
			{"two of magic 2", append(batchOf(p.t, batch.None, record{"k", "v", oldTime}), batchOf(p.t, batch.None, record{"k", "v", oldTime})...)},
			{"offsets", append(message(1, 0, 7, oldTime, nil, nil), message(1, 0, 3, oldTime, nil, nil)...)},
			{"append time", message(1, 8, 0, oldTime, nil, []byte("v"))},
			{"append time without time", message(1, 8, 0, -1, nil, []byte("v"))},
			{"time -1", message(1, 0, 0, -1, nil, []byte("v"))},
			{"time -2", message(1, 0, 0, -2, nil, []byte("v"))},
			{"future", message(1, 0, 0, oldTime*2, nil, []byte("v"))},
			{"gzip of nothing", message(1, 1, 0, oldTime, nil, []byte{})},
			{"gzip null", message(1, 1, 0, oldTime, nil, nil)},
			{"gzip of garbage", message(1, 1, 0, oldTime, nil, []byte("garbage"))},
			{"codec 5", message(1, 5, 0, oldTime, nil, []byte("v"))},
			{"wrapper in wrapper", nested(p.t)},
			{"magic 0 in magic 1", mixedWrapper(p.t)},
			{"wrapper with offset", wrapped(p.t, 1, batch.Gzip, record{"k", "v", oldTime}, record{"k", "w", oldTime})},
			{"size 5", small},
			{"size -1", negative},
			{"magic 3", append(good(1)[:16], append([]byte{3}, good(1)[17:]...)...)},
		} {
			for _, key := range []string{"delete", "compact"} {
				topic := "sets-" + format + "-" + key
				if tc.name == "empty" {
					p.c.formatTopic(topic, "message.format.version", format, "cleanup.policy", key, "message.timestamp.after.max.ms", "3600000")
					p.settled(topic)
				}
				name, _, _ := strings.Cut(p.produceOrEnd(2, topic, tc.set), " base")
				p.say(name, "set %s to %s", tc.name, topic)
			}
		}
	}
}

// nested is a compressed set inside a compressed set.
func nested(t *testing.T) []byte {
	inner := wrapped(t, 1, batch.Gzip, record{"k", "v", oldTime})
	return rewrap(t, inner)
}

// mixedWrapper is a wrapper of magic 1 with a message of magic 0.
func mixedWrapper(t *testing.T) []byte {
	return rewrap(t, message(0, 0, 0, 0, []byte("k"), []byte("v")))
}

// rewrap compresses a set into a wrapper of magic 1.
func rewrap(t *testing.T, set []byte) []byte {
	t.Helper()
	b, err := gzipped(set)
	if err != nil {
		t.Fatal(err)
	}
	return message(1, 1, 0, oldTime, nil, b)
}

// produceOrEnd is produce on a connection of its own, which may be closed instead of an answer.
func (p *oldPlay) produceOrEnd(version int16, topic string, set []byte) string {
	c := p.dial()
	defer c.conn.Close()
	r := produceRequest(topic, 0, -1, set)
	r.SetVersion(version)
	c.send(r)
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return "closed"
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.conn, frame); err != nil {
		return "closed"
	}
	in := kbin.Reader{Src: frame[4:]}
	resp := r.ResponseKind().(*kmsg.ProduceResponse)
	if err := resp.ReadFrom(in.Src); err != nil {
		p.t.Fatal(err)
	}
	got := resp.Topics[0].Partitions[0]
	return fmt.Sprintf("error %d base %d time %d", got.ErrorCode, got.BaseOffset, got.LogAppendTime)
}

// starts asks ListOffsets v0 for the starts of segments.
func (p *oldPlay) starts() {
	p.c.formatTopic("segments", "segment.bytes", "1048576")
	p.settled("segments")
	p.c.formatTopic("empty")
	p.settled("empty")
	for range 12 {
		p.produce(7, "segments", batchOf(p.t, batch.None, record{"k", string(make([]byte, 400_000)), oldTime}))
	}
	for _, topic := range []string{"segments", "empty", "absent"} {
		for _, timestamp := range []int64{-1, -2, 0, 1, math.MaxInt64} {
			for _, most := range []int32{0, 1, 3, 100} {
				r := listRequest(topic, timestamp, 0)
				r.Topics[0].Partitions[0].MaxNumOffsets = most
				got := ask[*kmsg.ListOffsetsResponse](p.c, 0, r).Topics[0].Partitions[0]
				p.say(fmt.Sprintf("error %d offsets %v", got.ErrorCode, got.OldStyleOffsets), "list %s at %d, at most %d", topic, timestamp, most)
			}
		}
	}
}
