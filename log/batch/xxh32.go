package batch

import (
	"encoding/binary"
	"math/bits"
)

// xxh32 is the xxHash32 digest with seed 0, which LZ4 frames use for their checksums. Start with reset.
type xxh32 struct {
	v     [4]uint32
	buf   [16]byte
	n     int // bytes in buf
	total uint64
}

const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

func (x *xxh32) reset() {
	p := xxPrime1 // a variable: the sums wrap on purpose
	*x = xxh32{v: [4]uint32{p + xxPrime2, xxPrime2, 0, -p}}
}

func (x *xxh32) write(b []byte) {
	x.total += uint64(len(b))
	if x.n > 0 {
		k := copy(x.buf[x.n:], b)
		x.n += k
		b = b[k:]
		if x.n < len(x.buf) {
			return
		}
		x.blocks(x.buf[:])
		x.n = 0
	}
	whole := len(b) &^ 15
	x.blocks(b[:whole])
	x.n = copy(x.buf[:], b[whole:])
}

func (x *xxh32) blocks(b []byte) {
	v0, v1, v2, v3 := x.v[0], x.v[1], x.v[2], x.v[3]
	for ; len(b) >= 16; b = b[16:] {
		v0 = xxRound(v0, binary.LittleEndian.Uint32(b))
		v1 = xxRound(v1, binary.LittleEndian.Uint32(b[4:]))
		v2 = xxRound(v2, binary.LittleEndian.Uint32(b[8:]))
		v3 = xxRound(v3, binary.LittleEndian.Uint32(b[12:]))
	}
	x.v = [4]uint32{v0, v1, v2, v3}
}

func xxRound(v, in uint32) uint32 { return bits.RotateLeft32(v+in*xxPrime2, 13) * xxPrime1 }

func (x *xxh32) sum() uint32 {
	h := x.v[2] + xxPrime5 // v[2] is still the seed below 16 bytes
	if x.total >= 16 {
		h = bits.RotateLeft32(x.v[0], 1) + bits.RotateLeft32(x.v[1], 7) + bits.RotateLeft32(x.v[2], 12) + bits.RotateLeft32(x.v[3], 18)
	}
	h += uint32(x.total)
	b := x.buf[:x.n]
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*xxPrime3, 17) * xxPrime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}

// xxSum is the digest of b.
func xxSum(b []byte) uint32 {
	var x xxh32
	x.reset()
	x.write(b)
	return x.sum()
}
