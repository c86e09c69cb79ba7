package wire

import (
	"math/bits"
	"sync"
)

const (
	// chunkSize is what is read at once from a connection whose next frame is not known: small requests arrive many to a read.
	chunkSize = 16 << 10
	// firstRead is the largest buffer that a frame's length gets by itself; more is given as the bytes arrive. A connection that has sent a
	// larger frame whole gets that much at once from then on (conn.earned), up to largestClass.
	firstRead = 1 << 20
	// copyBuffer is what sections are copied through where sendfile is not possible.
	copyBuffer = 64 << 10
	// Pooled buffers have a power of two of bytes, from smallestClass to largestClass; larger ones are not kept.
	smallestClass = 1 << 10
	largestClass  = 16 << 20
	bufferClasses = 15
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

// get returns a buffer of at least n bytes with arbitrary content.
func (p *buffers) get(n int) *buffer {
	if n > largestClass {
		return &buffer{b: make([]byte, n), class: -1}
	}
	class := 0
	if n > smallestClass {
		class = bits.Len(uint(n-1)) - bits.Len(smallestClass-1)
	}
	if b, ok := p.pools[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, smallestClass<<class), class: class}
}

// put takes a buffer back; nil is allowed.
func (p *buffers) put(b *buffer) {
	if b != nil && b.class >= 0 {
		p.pools[b.class].Put(b)
	}
}
