package compact

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// slotBytes is the size of a slot in memory: 16 bytes of digest and an offset, as in Kafka.
const slotBytes = 24

// slot holds a key's digest and its newest offset, plus one: 0 is a free slot.
type slot struct {
	key  digest
	next int64
}

// offsets is the newest offset of each key: an open table with linear probing, in one piece of memory. Keys are known by their digests.
type offsets struct {
	secret sipKey
	slots  []slot
	n      int
	max    int // keys that it may hold
}

// newOffsets makes a table of at most budget bytes for at most want keys, which is filled up to load, above 0 and below 1.
func newOffsets(budget int64, load float64, want int64) *offsets {
	load = min(max(load, 0.1), 0.99)
	size := max(budget/slotBytes, 2)
	if need := float64(want)/load + 2; need < float64(size) {
		size = int64(need)
	}
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // never fails
	return &offsets{
		secret: sipKey{binary.LittleEndian.Uint64(seed[:]), binary.LittleEndian.Uint64(seed[8:])},
		slots:  make([]slot, size),
		max:    max(int(float64(size)*load), 1),
	}
}

// find returns the slot of a digest, or the free one where it would go. One is always free.
func (o *offsets) find(d digest) *slot {
	at, _ := bits.Mul64(d.lo, uint64(len(o.slots))) // the digest's place in proportion
	for {
		s := &o.slots[at]
		if s.next == 0 || s.key == d {
			return s
		}
		if at++; at == uint64(len(o.slots)) {
			at = 0
		}
	}
}

// put notes an offset, which is not below those before. False: the table is full, and does not have the key.
func (o *offsets) put(key []byte, offset int64) bool {
	d := o.secret.sum(key)
	s := o.find(d)
	if s.next == 0 {
		if o.n == o.max {
			return false
		}
		o.n++
		s.key = d
	}
	s.next = offset + 1
	return true
}

// get is the newest offset of a key, -1 if it is not there.
func (o *offsets) get(key []byte) int64 {
	s := o.find(o.secret.sum(key))
	return s.next - 1
}
