package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// xerialBlock is how much input snappy-java puts into a block.
const xerialBlock = 32 << 10

// deflater holds the compressors, made when first needed.
type deflater struct {
	gzip *gzip.Writer
	lz4  *lz4.Writer
	zstd *zstd.Encoder
}

// append appends body, compressed as Kafka's own writers frame it, to dst.
func (d *deflater) append(dst []byte, codec Codec, body []byte) ([]byte, error) {
	switch codec {
	case None:
		return append(dst, body...), nil
	case Gzip:
		return d.appendGzip(dst, body)
	case Snappy:
		return appendXerial(dst, body), nil
	case LZ4:
		return d.appendLZ4(dst, body)
	case Zstd:
		return d.appendZstd(dst, body)
	}
	return dst, fmt.Errorf("%w: %d", ErrCodec, codec)
}

func (d *deflater) appendGzip(dst, body []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	if d.gzip == nil {
		d.gzip = gzip.NewWriter(out)
	} else {
		d.gzip.Reset(out)
	}
	if _, err := d.gzip.Write(body); err != nil {
		return dst, err
	}
	err := d.gzip.Close()
	return out.Bytes(), err
}

func appendXerial(dst, body []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = append(dst, 0, 0, 0, 1, 0, 0, 0, 1)
	for len(body) > 0 {
		n := min(len(body), xerialBlock)
		block := snappy.Encode(nil, body[:n])
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		dst = append(dst, block...)
		body = body[n:]
	}
	return dst
}

func (d *deflater) appendLZ4(dst, body []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	if d.lz4 == nil {
		d.lz4 = lz4.NewWriter(out)
		if err := d.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1)); err != nil {
			return dst, err
		}
	} else {
		d.lz4.Reset(out)
	}
	if _, err := d.lz4.Write(body); err != nil {
		return dst, err
	}
	err := d.lz4.Close()
	return out.Bytes(), err
}

func (d *deflater) appendZstd(dst, body []byte) ([]byte, error) {
	if d.zstd == nil {
		var err error
		d.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dst, err
		}
	}
	return d.zstd.EncodeAll(body, dst), nil
}
