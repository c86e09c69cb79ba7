package txn

import (
	"bytes"
	"testing"
)

// FuzzRecords: no record makes the replay panic, and what is read is written as it was.
func FuzzRecords(f *testing.F) {
	for _, s := range States() {
		m := meta{producer: Producer{5, 3}, lastEpoch: -1, previousID: 4, nextID: 9, timeout: 1000, state: s, started: 7, updated: 8, client: 2,
			partitions: []Partition{{"a", 0}, {"a", 3}, {"b", 1}}}
		for _, m.nextEpoch = range []int16{-1, 4} {
			f.Add(keyOf("t"), valueOf(&m))
		}
	}
	f.Add([]byte{}, []byte{0, 9})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		id, ok, err := ParseKey(key)
		if ok && err == nil && !bytes.HasPrefix(key, keyOf(id)) {
			t.Fatalf("key %x is of %q", key, id)
		}
		x := New("t", &Config{})
		if x.Replay(value) != nil || value == nil {
			return
		}
		again := New("t", &Config{})
		if err := again.Replay(valueOf(&x.meta)); err != nil {
			t.Fatal(err)
		}
		if a, b := valueOf(&x.meta), valueOf(&again.meta); !bytes.Equal(a, b) {
			t.Fatalf("%x becomes %x", a, b)
		}
		x.Loaded(Instant{})
	})
}
