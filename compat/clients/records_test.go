package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	partitions = 3
	bigValue   = 900 << 10
	// baseTime is the first record's timestamp in ms; it is fixed so that the set is the same in every run.
	baseTime = int64(1_700_000_000_000)
	// queryTime is what consumers ask ListOffsets for.
	queryTime = baseTime + 10_000
)

// header values are nil for null.
type header struct {
	key   string
	value []byte
}

// record is one record of the deterministic set. Key and value are nil for null, which Kafka tells from empty.
type record struct {
	partition int32
	timestamp int64
	key       []byte
	value     []byte
	headers   []header
}

// recordSet is the set that every producer writes into each of its topics, in this order.
func recordSet() []record {
	rng := rand.New(rand.NewPCG(7, 11))
	var all []record
	for p := range int32(partitions) {
		for i, content := range contents(rng, p) {
			content.partition = p
			content.timestamp = baseTime + int64(i)*1000
			all = append(all, content)
		}
		all[len(all)-1].timestamp = baseTime + 500 // one late record: timestamps need not ascend
	}
	return all
}

// contents are one partition's keys, values and headers.
func contents(rng *rand.Rand, p int32) []record {
	name := func(s string) []byte { return fmt.Appendf(nil, "%s-%d", s, p) }
	h := func(key, value string) header { return header{key, []byte(value)} }
	return []record{
		{key: name("small"), value: name("value")},
		{key: nil, value: name("no key")},
		{key: []byte{}, value: name("empty key")},
		{key: name("empty value"), value: []byte{}},
		{key: name("null value"), value: nil},
		{key: nil, value: nil},
		{key: []byte{}, value: []byte{}},
		{key: name("ключ-キー"), value: name("значение 値 😀")},
		{key: allBytes(), value: bytes.Repeat(allBytes(), 3)},
		{key: name("text"), value: bytes.Repeat([]byte("a line that compresses well; "), 2000)},
		{key: name("noise"), value: noise(rng, 10<<10)},
		{key: name("one header"), value: name("v"), headers: []header{h("k", "v")}},
		{key: name("same header twice"), value: name("v"), headers: []header{h("dup", "1"), h("dup", "2"), h("other", "x")}},
		{key: name("odd headers"), value: name("v"), headers: []header{h("empty", ""), {"null", nil}, h("юникод", "\x00\x01\xfe\xff")}},
		{key: name("before big"), value: name("v")},
		{key: name("big"), value: big(rng, p)},
		{key: noise(rng, 300), value: name("long key")},
		{key: name("many headers"), value: name("v"), headers: manyHeaders()},
		{key: name("burst"), value: name("1")},
		{key: name("burst"), value: name("2")},
		{key: name("late"), value: name("last")},
	}
}

// big is noise, text or zeros, so that a big record is seen both as it is and as a few compressed bytes.
func big(rng *rand.Rand, p int32) []byte {
	switch p {
	case 0:
		return noise(rng, bigValue)
	case 1:
		return bytes.Repeat([]byte("0123456789abcdef\n"), bigValue/17)
	default:
		return make([]byte, bigValue)
	}
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func manyHeaders() []header {
	var hs []header
	for i := range 40 {
		hs = append(hs, header{fmt.Sprintf("h%02d", i), fmt.Appendf(nil, "value %d", i)})
	}
	return hs
}

// line is what all consumers must report for r at offset: the format of java/Matrix.java without the topic.
func (r record) line(offset int64) string {
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s", r.partition, offset, r.timestamp, shown(r.key), shown(r.value), shownHeaders(r.headers))
}

// row is r as the producing programs read it.
func (r record) row() string {
	hs := make([]string, len(r.headers))
	for i, h := range r.headers {
		hs[i] = h.key + "=" + full(h.value)
	}
	return fmt.Sprintf("%d\t%d\t%s\t%s\t%s", r.partition, r.timestamp, full(r.key), full(r.value), strings.Join(hs, ","))
}

func full(b []byte) string {
	if b == nil {
		return "-"
	}
	return "=" + base64.StdEncoding.EncodeToString(b)
}

func shown(b []byte) string {
	if len(b) > 256 {
		return fmt.Sprintf("#%d:%x", len(b), sha256.Sum256(b))
	}
	return full(b)
}

func shownHeaders(hs []header) string {
	parts := make([]string, len(hs))
	for i, h := range hs {
		parts[i] = h.key + "=" + shown(h.value)
	}
	return strings.Join(parts, ",")
}

// byPartition maps the set to the lines each partition must hold, offsets dense from 0.
func byPartition(set []record) [][]string {
	out := make([][]string, partitions)
	for _, r := range set {
		out[r.partition] = append(out[r.partition], r.line(int64(len(out[r.partition]))))
	}
	return out
}
