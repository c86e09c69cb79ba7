package wire

import (
	"math/bits"
	"sync"
)

const (
	// chunkSize is what is read at once from a connection whose next frame is not known: small requests arrive many to a read. It is also the
	// first buffer of a large frame. The larger ones come as the bytes arrive and are charged to the budget. A connection that has sent
	// a larger frame whole gets that much at once from then on (conn.earned), up to largestClass.
	chunkSize = 16 << 10
	// growth is how many times larger the next buffer of a frame is.
	growth = 4
	// copyBuffer is what sections are copied through where sendfile is not possible.
	copyBuffer = 64 << 10
	// Pooled buffers have 4, 5, 6 or 7 eighths of a power of two of bytes, from smallestClass to largestClass; larger ones are not kept. So a
	// buffer, and what is charged for it, is at most a quarter larger than asked for, also for a frame just above a power of two.
	smallestClass = 1 << 10
	largestClass  = 32 << 20
	bufferClasses = 15*4 + 1
)

// buffer is a byte slice with an owner: whoever got it from buffers.get gives it back by put, once.
type buffer struct {
	b     []byte // full length
	class int    // -1: not pooled
}

// buffers is a pool of buffers by size class.
type buffers struct {
	pools [bufferClasses]sync.Pool
}

// classOf returns the class for n bytes, -1 if they are too many, and the size of its buffers.
func classOf(n int) (class, size int) {
	if n > largestClass {
		return -1, n
	}
	n = max(n, smallestClass)
	shift := bits.Len(uint(n-1)) - 3
	eighths := (n-1)>>shift + 1 // 5 to 8
	return (shift-(bits.Len(smallestClass-1)-3))*4 + eighths - 8, eighths << shift
}

// get returns a buffer of at least n bytes with arbitrary content.
func (p *buffers) get(n int) *buffer {
	class, size := classOf(n)
	if class >= 0 {
		if b, ok := p.pools[class].Get().(*buffer); ok {
			return b
		}
	}
	return &buffer{b: make([]byte, size), class: class}
}

// put takes a buffer back; nil is allowed.
func (p *buffers) put(b *buffer) {
	if b != nil && b.class >= 0 {
		p.pools[b.class].Put(b)
	}
}
