package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	bigValue = 900 << 10
	// baseTime is the first record's timestamp in ms; it is fixed so that the set is the same in every run.
	baseTime = int64(1_700_000_000_000)
	// queryTime is what consumers ask ListOffsets for.
	queryTime = baseTime + 3_000
)

// Each partition holds one kind of records, so that a partition that differs names its kind.
const (
	small = iota
	big
	null
	withHeaders
	partitions
)

// kinds are the partitions' names.
var kinds = [partitions]string{"small", "big", "null value", "headers"}

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
	for kind, contents := range [partitions][]record{smalls(rng), bigs(rng), nulls(), headed()} {
		for i, content := range contents {
			content.partition = int32(kind)
			content.timestamp = baseTime + int64(i)*1000
			all = append(all, content)
		}
		all[len(all)-1].timestamp = baseTime + 500 // one late record: timestamps need not ascend
	}
	return all
}

func smalls(rng *rand.Rand) []record {
	return []record{
		{key: []byte("small"), value: []byte("value")},
		{key: nil, value: []byte("no key")},
		{key: []byte{}, value: []byte("empty key")},
		{key: []byte("empty value"), value: []byte{}},
		{key: []byte{}, value: []byte{}},
		{key: []byte("ключ-キー"), value: []byte("значение 値 😀")},
		{key: allBytes(), value: bytes.Repeat(allBytes(), 3)},
		{key: []byte("text"), value: bytes.Repeat([]byte("a line that compresses well; "), 2000)},
		{key: []byte("noise"), value: noise(rng, 10<<10)},
		{key: noise(rng, 300), value: []byte("long key")},
		{key: []byte("burst"), value: []byte("1")},
		{key: []byte("burst"), value: []byte("2")},
		{key: []byte("late"), value: []byte("last")},
	}
}

// bigs are noise, text and zeros, so that a big record is seen both as it is and as a few compressed bytes.
func bigs(rng *rand.Rand) []record {
	return []record{
		{key: []byte("before"), value: []byte("v")},
		{key: []byte("big noise"), value: noise(rng, bigValue)},
		{key: []byte("big text"), value: bytes.Repeat([]byte("0123456789abcdef\n"), bigValue/16/17)},
		{key: []byte("zeros"), value: make([]byte, bigValue/32)},
		{key: []byte("after"), value: []byte("v")},
	}
}

func nulls() []record {
	return []record{
		{key: []byte("null value"), value: nil},
		{key: nil, value: nil},
		{key: []byte{}, value: nil},
		{key: []byte("null value"), value: []byte("no more")},
		{key: []byte("null value"), value: nil},
	}
}

func headed() []record {
	h := func(key, value string) header { return header{key, []byte(value)} }
	var many []header
	for i := range 40 {
		many = append(many, h(fmt.Sprintf("h%02d", i), fmt.Sprintf("value %d", i)))
	}
	return []record{
		{key: []byte("one header"), value: []byte("v"), headers: []header{h("k", "v")}},
		{key: []byte("same header twice"), value: []byte("v"), headers: []header{h("dup", "1"), h("dup", "2"), h("other", "x")}},
		{key: []byte("odd headers"), value: []byte("v"), headers: []header{h("empty", ""), {"null", nil}, h("юникод", "\x00\x01\xfe\xff")}},
		{key: []byte("none"), value: []byte("v")},
		{key: []byte("many headers"), value: []byte("v"), headers: many},
		{key: []byte("last"), value: []byte("v"), headers: []header{h("k", "v")}},
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

// withoutHeaders is the set as a client sends it that knows none.
func withoutHeaders(set []record) []record {
	out := slices.Clone(set)
	for i := range out {
		out[i].headers = nil
	}
	return out
}

// without leaves out what a client cannot or will not send.
func without(set []record, refused func(record) bool) []record {
	return slices.DeleteFunc(slices.Clone(set), refused)
}

// line is what all consumers must report for r at offset: the format of java/Lines.java without the topic.
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
