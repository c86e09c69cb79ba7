package kcat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gregor/compat/harness"
)

// keysAndHeaders: keys from lines, null and empty, headers that repeat, read back as kcat's JSON.
func keysAndHeaders(t *testing.T, k tool) {
	topic := k.topic(t, 1)
	k.produce(t, topic, "k1:v1\nno key\nk3:\n:v4\n", "-K", ":", "-Z")
	k.produce(t, topic, "k5:\n:v6\n", "-K", ":", "-H", "a=1", "-H", "b=2", "-H", "a=3", "-z", "lz4")
	type message struct {
		Offset       int64
		Headers      []string
		Key, Payload *string
	}
	s := func(v string) *string { return &v }
	want := []message{
		{0, nil, s("k1"), s("v1")}, {1, nil, nil, s("no key")}, {2, nil, s("k3"), nil}, {3, nil, nil, s("v4")},
		{4, []string{"a", "1", "b", "2", "a", "3"}, s("k5"), s("")}, {5, []string{"a", "1", "b", "2", "a", "3"}, s(""), s("v6")},
	}
	lines := strings.Split(strings.TrimSpace(k.consume(t, topic, "-J", "-o", "beginning")), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d messages, want %d: %s", len(lines), len(want), lines)
	}
	for i, line := range lines {
		var got message
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want[i])
		if !bytes.Equal(a, b) {
			t.Errorf("message %d: got %s, want %s", i, a, b)
		}
	}
}

// bigRecords: the largest batch that message.max.bytes lets in, and one byte more.
func bigRecords(t *testing.T, k tool) {
	topic := k.topic(t, 1)
	checkLimit(t, k, topic, maxBatch)
	k.produce(t, topic, "after\n")
	if got := k.consume(t, topic, "-o", "-1"); got != "after\n" {
		t.Errorf("after a refused record: read %.100q, want the next one", got)
	}
}

// bigByTopic: max.message.bytes of a topic, above and below the broker's.
func bigByTopic(t *testing.T, k tool) {
	for _, limit := range []int{2000, 3 << 20} {
		checkLimit(t, k, k.topic(t, 1, fmt.Sprintf("max.message.bytes=%d", limit)), limit)
	}
}

func checkLimit(t *testing.T, k tool, topic string, limit int) {
	t.Helper()
	overhead := batchOverhead + 2*varintLen(limit-batchOverhead) // two lengths in the record
	fits := sendSized(t, k, topic, limit-overhead)
	if fits.err != nil {
		t.Errorf("a batch of exactly %d bytes was refused: %v: %s", limit, fits.err, fits.stderr)
	}
	got := k.consume(t, topic, "-o", "beginning", "-D", "", "-X", "fetch.message.max.bytes=8000000")
	if got != string(fits.value) {
		t.Errorf("a batch of %d bytes came back as %d bytes, want %d", limit, len(got), len(fits.value))
	}
	over := sendSized(t, k, topic, limit-overhead+1)
	if over.err == nil || !strings.Contains(over.stderr, "Message size too large") {
		t.Errorf("a batch of %d bytes, limit %d: want `Broker: Message size too large`, got %v: %s", limit+1, limit, over.err, over.stderr)
	}
	if got := k.consume(t, topic, "-o", "beginning", "-f", `%o `, "-X", "fetch.message.max.bytes=8000000"); got != "0 " {
		t.Errorf("offsets after a refused record: %q, want only 0", got)
	}
}

// varintLen is how many bytes n takes as a zigzag varint.
func varintLen(n int) int { return (bits.Len(uint(2*n)) + 6) / 7 }

type sized struct {
	value  []byte
	stderr string
	err    error
}

// sendSized sends one record with a value of n bytes, with the client's own limit out of the way.
func sendSized(t *testing.T, k tool, topic string, n int) sized {
	t.Helper()
	value := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), n/36+1)[:n]
	path := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(path, value, 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := k.try(nil, "-P", "-t", topic, "-p", "0", "-X", "message.max.bytes=8000000", path)
	return sized{value, stderr, err}
}

// choosePartitions: -p puts records where it says, a key's records stay together, and nothing is lost or doubled.
func choosePartitions(t *testing.T, k tool) {
	topic := k.topic(t, 4)
	for p := range 4 {
		k.produce(t, topic, fmt.Sprintf("to %d\n", p), "-p", fmt.Sprint(p))
	}
	for p := range 4 {
		if got, want := k.consume(t, topic, "-p", fmt.Sprint(p)), fmt.Sprintf("to %d\n", p); got != want {
			t.Errorf("partition %d holds %q, want %q", p, got, want)
		}
	}
	if _, stderr, err := k.try(strings.NewReader("x\n"), "-P", "-t", topic, "-p", "9", "-X", "message.timeout.ms=3000"); err == nil {
		t.Errorf("producing to partition 9 of 4 succeeded: %s", stderr)
	}
	keyed := k.topic(t, 4)
	var in strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&in, "key%d:value%d\n", i%50, i)
	}
	k.produce(t, keyed, in.String(), "-K", ":")
	home := map[string]string{}
	var values []string
	for _, line := range strings.Fields(k.consume(t, keyed, "-f", `%p:%k:%s\n`)) {
		f := strings.Split(line, ":")
		if p, ok := home[f[1]]; ok && p != f[0] {
			t.Errorf("key %s is in partitions %s and %s", f[1], p, f[0])
		}
		home[f[1]] = f[0]
		values = append(values, f[2])
	}
	slices.Sort(values)
	if n := len(slices.Compact(values)); n != 1000 {
		t.Errorf("%d different values came out, want 1000", n)
	}
}

// acks: every setting stores the records; idempotence too.
func acks(t *testing.T, k tool) {
	topic := k.topic(t, 1)
	for i, opts := range [][]string{{"acks=0"}, {"acks=1"}, {"acks=all"}, {"enable.idempotence=true"}} {
		line := fmt.Sprintf("%s\n", opts[0])
		k.produce(t, topic, line, "-p", "0", "-X", opts[0])
		// acks=0 is not answered: wait until the record is there, the next one must come after it
		got := k.consume(t, topic, "-p", "0", "-o", fmt.Sprint(i))
		for tries := 0; got == "" && tries < 50; tries++ {
			got = k.consume(t, topic, "-p", "0", "-o", fmt.Sprint(i))
		}
		if got != line {
			t.Errorf("%s: offset %d holds %q, want %q", opts[0], i, got, line)
		}
	}
}

// autoCreate: a producer's first record makes the topic; a consumer makes none.
func autoCreate(t *testing.T, k tool) {
	name := harness.Topic("auto")
	if _, stderr, err := k.try(nil, "-C", "-e", "-t", name); err == nil || !strings.Contains(stderr, "Unknown topic or partition") {
		t.Errorf("consuming a topic that does not exist: want `Unknown topic or partition`, got %v: %s", err, stderr)
	}
	k.produce(t, name, "hello\n")
	if got := k.consume(t, name, "-o", "beginning"); got != "hello\n" {
		t.Errorf("a topic made by its first record holds %q", got)
	}
	if _, stderr, err := k.try(strings.NewReader("x\n"), "-P", "-t", "not/a topic", "-X", "message.timeout.ms=3000"); err == nil {
		t.Errorf("producing to the topic `not/a topic` succeeded: %s", stderr)
	}
}
