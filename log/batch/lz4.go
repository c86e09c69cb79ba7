package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pierrec/lz4/v4"
)

// Parts of an LZ4 frame (format 1.5.1 and later, as Kafka's KafkaLZ4BlockInputStream takes it).
const (
	lz4Magic        = 0x184D2204
	lz4Stored       = 1 << 31 // bit of the block size: block is not compressed
	lz4FlagReserved = 0x03    // bit 0 is the dictionary id, which Kafka counts as reserved
	lz4FlagContent  = 0x04    // content checksum
	lz4FlagSize     = 0x08    // content size
	lz4FlagBlock    = 0x10    // block checksums
	lz4FlagIndep    = 0x20    // blocks are independent
)

var errLZ4Short = errors.New("lz4 frame is cut off")

// lz4Reader inflates one LZ4 frame block by block. Block and content checksums are verified where the frame has them. Its memory is one
// block: 64 KiB from nearly every client, 4 MiB at most.
type lz4Reader struct {
	src      []byte
	out      []byte // what of block was not read yet
	block    []byte
	max      int
	flags    byte
	done     bool
	checksum xxh32
}

// reset starts on a frame. With looseHeader the header checksum is not looked at: magic 0 writers computed it over other bytes.
func (z *lz4Reader) reset(src []byte, looseHeader bool) error {
	if cap(z.block) > keepScratch {
		z.block = nil
	}
	z.out, z.done = nil, false
	if len(src) < 7 {
		return errLZ4Short
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return fmt.Errorf("lz4 frame starts with %08x", m)
	}
	z.flags = src[4]
	bd := src[5]
	switch {
	case z.flags>>6 != 1:
		return fmt.Errorf("lz4 frame has version %d", z.flags>>6)
	case z.flags&lz4FlagReserved != 0 || bd&0x8f != 0:
		return fmt.Errorf("lz4 frame has reserved bits: flags %02x, block descriptor %02x", z.flags, bd)
	case z.flags&lz4FlagIndep == 0:
		return errors.New("lz4 frame has dependent blocks")
	case bd>>4 < 4:
		return fmt.Errorf("lz4 frame has block size id %d", bd>>4)
	}
	z.max = 1 << (8 + 2*(bd>>4))
	end := 6
	if z.flags&lz4FlagSize != 0 {
		end += 8
	}
	if len(src) <= end {
		return errLZ4Short
	}
	if sum := byte(xxSum(src[4:end]) >> 8); !looseHeader && sum != src[end] {
		return fmt.Errorf("lz4 frame header checksum is %02x, the bytes have %02x", src[end], sum)
	}
	z.src = src[end+1:]
	z.checksum.reset()
	return nil
}

func (z *lz4Reader) Read(p []byte) (int, error) {
	for len(z.out) == 0 {
		if z.done {
			return 0, io.EOF
		}
		if err := z.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, z.out)
	z.out = z.out[n:]
	return n, nil
}

// piece cuts n bytes off the source.
func (z *lz4Reader) piece(n int) ([]byte, error) {
	if n > len(z.src) {
		return nil, errLZ4Short
	}
	b := z.src[:n]
	z.src = z.src[n:]
	return b, nil
}

// next inflates the next block, or ends the frame. Like Kafka's reader it takes one frame and ignores what follows.
func (z *lz4Reader) next() error {
	b, err := z.piece(4)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 {
		z.done = true
		return z.verify(z.flags&lz4FlagContent != 0, z.checksum.sum)
	}
	n := int(size &^ lz4Stored)
	if n > z.max {
		return fmt.Errorf("lz4 block of %d bytes, largest is %d", n, z.max)
	}
	block, err := z.piece(n)
	if err != nil {
		return err
	}
	if err := z.verify(z.flags&lz4FlagBlock != 0, func() uint32 { return xxSum(block) }); err != nil {
		return err
	}
	if size&lz4Stored != 0 {
		z.out = block
	} else if z.out, err = z.inflate(block); err != nil {
		return err
	}
	if z.flags&lz4FlagContent != 0 {
		z.checksum.write(z.out)
	}
	return nil
}

// verify reads a checksum, if there is one, and compares it.
func (z *lz4Reader) verify(present bool, sum func() uint32) error {
	if !present {
		return nil
	}
	b, err := z.piece(4)
	if err != nil {
		return err
	}
	if want, got := binary.LittleEndian.Uint32(b), sum(); want != got {
		return fmt.Errorf("lz4 checksum is %08x, the bytes have %08x", want, got)
	}
	return nil
}

func (z *lz4Reader) inflate(block []byte) ([]byte, error) {
	// A byte inflates to at most 255: small input needs no large buffer.
	room := min(z.max, 255*len(block)+16)
	if cap(z.block) < room {
		z.block = make([]byte, room)
	}
	n, err := lz4.UncompressBlock(block, z.block[:room])
	if err != nil {
		return nil, err
	}
	return z.block[:n], nil
}
