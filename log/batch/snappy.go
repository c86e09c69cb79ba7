package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
)

// The stream that snappy-java writes (called xerial): 8 magic bytes, int32 version, int32 oldest compatible version, then blocks of int32
// length and a snappy block; big-endian.
const (
	xerialMagic  = "\x82SNAPPY\x00"
	xerialHeader = 16
	// snappyRatio is above what any snappy block can inflate to: 64 bytes need a copy of 3.
	snappyRatio = 22
)

var errSnappyShort = errors.New("snappy stream is cut off")

// snappyReader inflates a xerial stream, or a single raw block (librdkafka and others write that). Like snappy-java it takes streams
// that were concatenated. Its memory is one block: 32 KiB of a stream from most clients, the batch for a raw block.
type snappyReader struct {
	src   []byte
	out   []byte
	block []byte
	raw   bool
}

func (z *snappyReader) reset(src []byte) error {
	if cap(z.block) > keepScratch {
		z.block = nil
	}
	z.src, z.out = src, nil
	z.raw = !bytes.HasPrefix(src, []byte(xerialMagic))
	if z.raw {
		return nil
	}
	return z.header()
}

func (z *snappyReader) header() error {
	if len(z.src) < xerialHeader {
		return errSnappyShort
	}
	if v := int32(binary.BigEndian.Uint32(z.src[8:])); v < 1 {
		return fmt.Errorf("snappy stream has version %d", v)
	}
	z.src = z.src[xerialHeader:]
	return nil
}

func (z *snappyReader) Read(p []byte) (int, error) {
	for len(z.out) == 0 {
		if len(z.src) == 0 {
			return 0, io.EOF
		}
		block, err := z.next()
		if err != nil {
			return 0, err
		}
		if err := z.inflate(block); err != nil {
			return 0, err
		}
	}
	n := copy(p, z.out)
	z.out = z.out[n:]
	return n, nil
}

// next cuts the next block off the source.
func (z *snappyReader) next() (block []byte, err error) {
	if z.raw {
		block, z.src = z.src, nil
		return block, nil
	}
	for bytes.HasPrefix(z.src, []byte(xerialMagic)) {
		if err := z.header(); err != nil {
			return nil, err
		}
	}
	if len(z.src) < 4 {
		return nil, errSnappyShort
	}
	n := int32(binary.BigEndian.Uint32(z.src))
	if n <= 0 || int(n) > len(z.src)-4 {
		return nil, fmt.Errorf("snappy block of %d bytes, %d are left", n, len(z.src)-4)
	}
	block, z.src = z.src[4:4+n], z.src[4+n:]
	return block, nil
}

func (z *snappyReader) inflate(block []byte) error {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return err
	}
	if n > snappyRatio*len(block) {
		return fmt.Errorf("snappy block of %d bytes says it inflates to %d", len(block), n)
	}
	if cap(z.block) < n {
		z.block = make([]byte, n)
	}
	z.out, err = snappy.DecodeStrict(z.block[:n], block)
	return err
}
