package wire

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// lie is a frame of the key and version whose body is filled and has a length at the given offset that uses up what is left.
func lie(key, version int16, size, at int, fill byte, flexible bool) []byte {
	req := versioned(kmsg.RequestForKey(key), version)
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 1, 0xff, 0xff)
	if req.IsFlexible() {
		b = append(b, 0)
	}
	start := len(b)
	for len(b) < start+size {
		b = append(b, fill)
	}
	left := size - at
	if flexible {
		copy(b[start+at:], binary.AppendUvarint(nil, uint64(left/2)))
	} else {
		binary.BigEndian.PutUint32(b[start+at:], uint32(left/2))
	}
	return b
}

// TestLyingLengths puts a length at every offset of small and middle frames of every key and measures what the decoder allocates.
func TestLyingLengths(t *testing.T) {
	s, err := New(Config{Handler: handlerFunc(echo), Supports: supportsAll})
	if err != nil {
		t.Fatal(err)
	}
	c := &conn{srv: s}
	worst, what := 0.0, ""
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		high := kmsg.RequestForKey(key).MaxVersion()
		for _, version := range []int16{0, high} {
			for _, size := range []int{20, 8 << 10} {
				for at := range 16 {
					for _, fill := range []byte{0, 1, 2} {
						b := lie(key, version, size, at, fill, kmsgFlexible(key, version))
						n := allocated(func() { c.parse(new(slot), b) })
						if n > uint64(decodeBase+decodeFactor*len(b)) {
							t.Errorf("key %d version %d size %d offset %d fill %d: %d bytes for a frame of %d", key, version, size, at, fill, n, len(b))
						}
						if f := float64(n) / float64(len(b)); size > 20 && f > worst {
							worst, what = f, kmsg.NameForKey(key)
						}
					}
				}
			}
		}
	}
	t.Logf("worst: %.0f bytes of memory for a byte of the frame, %s", worst, what)
}

func kmsgFlexible(key, version int16) bool {
	return versioned(kmsg.RequestForKey(key), version).IsFlexible()
}
