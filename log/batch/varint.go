package batch

import "math"

// Records hold zigzag varints of at most 5 (varint) or 10 (varlong) bytes. The functions below read the one at b[i:] and return the
// index after it, or an index of -1 if it is cut off, too long or out of range; an index of -1 handed in comes out again, so that
// several reads can be checked at once.

// varlong reads a 64-bit value.
func varlong(b []byte, i int) (int64, int) {
	if i >= 0 && i < len(b)-1 {
		c, d := uint64(b[i]), uint64(b[i+1])
		if c < 0x80 {
			return unzigzag(c), i + 1
		}
		if d < 0x80 {
			return unzigzag(c&0x7f | d<<7), i + 2
		}
	}
	return slowVarint(b, i, 10)
}

// varint reads a 32-bit value.
func varint(b []byte, i int) (int64, int) {
	if i >= 0 && i < len(b)-1 {
		c, d := uint64(b[i]), uint64(b[i+1])
		if c < 0x80 {
			return unzigzag(c), i + 1
		}
		if d < 0x80 {
			return unzigzag(c&0x7f | d<<7), i + 2
		}
	}
	return slowVarint(b, i, 5)
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func slowVarint(b []byte, i, most int) (int64, int) {
	if i < 0 {
		return 0, -1
	}
	var u uint64
	for k := range most {
		if i+k >= len(b) {
			return 0, -1
		}
		c := b[i+k]
		if k == 9 && c > 1 {
			return 0, -1
		}
		u |= uint64(c&0x7f) << (7 * k)
		if c < 0x80 {
			if most == 5 && u > math.MaxUint32 {
				return 0, -1
			}
			return unzigzag(u), i + k + 1
		}
	}
	return 0, -1
}

// appendVarint appends v as zigzag varint.
func appendVarint(b []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}
