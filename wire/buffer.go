package wire

import "sync"

const (
	// chunkSize is what is read at once from a connection whose next frame is not known: small requests arrive many to a read.
	chunkSize = 16 << 10
	// firstRead is the largest buffer that a frame's length gets by itself; more is given as the bytes arrive.
	firstRead = 1 << 20
	// copyBuffer is what sections are copied through where sendfile is not possible.
	copyBuffer = 64 << 10
	// bufferClasses are 1 KiB, 4 KiB, … 4 MiB; larger buffers are not kept.
	bufferClasses = 7
	largestClass  = 1 << 10 << (2 * (bufferClasses - 1))
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
	size := 1 << 10
	for class := range bufferClasses {
		if n <= size {
			if b, ok := p.pools[class].Get().(*buffer); ok {
				return b
			}
			return &buffer{b: make([]byte, size), class: class}
		}
		size <<= 2
	}
	return &buffer{b: make([]byte, n), class: -1}
}

// put takes a buffer back; nil is allowed.
func (p *buffers) put(b *buffer) {
	if b != nil && b.class >= 0 {
		p.pools[b.class].Put(b)
	}
}
