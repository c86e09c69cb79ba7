package compact

import (
	"encoding/binary"
	"math/bits"
)

// sipKey is the secret of a sum.
type sipKey struct{ k0, k1 uint64 }

// sipState is the state of SipHash (Aumasson and Bernstein, 2012).
type sipState struct{ v0, v1, v2, v3 uint64 }

func (s *sipState) round() {
	s.v0 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v2 = bits.RotateLeft64(s.v2, 32)
}

func (s *sipState) absorb(m uint64) {
	s.v3 ^= m
	s.round()
	s.round()
	s.v0 ^= m
}

// digest is a sum of 128 bits.
type digest struct{ lo, hi uint64 }

// sum is SipHash-2-4 of 128 bits.
//
// Two keys with the same sum would cost a record, so the sum must have 128 bits (Kafka takes MD5 for the same reason: among a billion keys two are the
// same with a probability of 10^-21), and nobody may be able to make such keys: MD5 collisions are made in seconds by whoever may produce. SipHash is a keyed
// function; its key is random for each index and never leaves the process. It needs no set-up and about a nanosecond per byte, several times less than
// MD5 or SHA-256 for keys of usual length.
func (k sipKey) sum(b []byte) digest {
	s := sipState{
		v0: k.k0 ^ 0x736f6d6570736575,
		v1: k.k1 ^ 0x646f72616e646f6d ^ 0xee,
		v2: k.k0 ^ 0x6c7967656e657261,
		v3: k.k1 ^ 0x7465646279746573,
	}
	tail := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		s.absorb(binary.LittleEndian.Uint64(b))
	}
	for i, c := range b {
		tail |= uint64(c) << (8 * i)
	}
	s.absorb(tail)
	s.v2 ^= 0xee
	for range 4 {
		s.round()
	}
	out := digest{lo: s.v0 ^ s.v1 ^ s.v2 ^ s.v3}
	s.v1 ^= 0xdd
	for range 4 {
		s.round()
	}
	out.hi = s.v0 ^ s.v1 ^ s.v2 ^ s.v3
	return out
}
