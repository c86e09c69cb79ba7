package batch

import (
	"encoding/binary"
	"fmt"
	"io"

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
	// gzipFast is for what is not stored: the fastest level takes a third of the time.
	gzipFast *gzip.Writer
	lz4      *lz4.Writer
	zstd     *zstd.Encoder
	xerial   xerialWriter
	out      stream // of appendStream
	fast     bool   // choose gzipFast
}

// stream is a slice that is written to.
type stream struct{ out []byte }

func (s *stream) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

// open returns a compressor whose output goes to w, framed as Kafka's own writers do, valid until the next open.
func (d *deflater) open(codec Codec, w io.Writer) (io.WriteCloser, error) {
	switch codec {
	case None:
		return plainWriter{w}, nil
	case Gzip:
		return d.openGzip(w)
	case Snappy:
		return &d.xerial, d.xerial.reset(w)
	case LZ4:
		if err := d.openLZ4(w); err != nil {
			return nil, err
		}
		return d.lz4, nil
	case Zstd:
		if err := d.openZstd(); err != nil {
			return nil, err
		}
		d.zstd.Reset(w)
		return d.zstd, nil
	}
	return nil, fmt.Errorf("%w: %d", ErrCodec, codec)
}

// append appends body, compressed as Kafka's own writers frame it, to dst.
func (d *deflater) append(dst []byte, codec Codec, body []byte) ([]byte, error) {
	switch codec {
	case None:
		return append(dst, body...), nil
	case Gzip, Snappy, LZ4:
		return d.appendStream(dst, codec, body)
	case Zstd:
		return d.appendZstd(dst, body)
	}
	return dst, fmt.Errorf("%w: %d", ErrCodec, codec)
}

func (d *deflater) openGzip(w io.Writer) (*gzip.Writer, error) {
	z, level := &d.gzip, gzip.DefaultCompression
	if d.fast {
		z, level = &d.gzipFast, gzip.BestSpeed
	}
	if *z != nil {
		(*z).Reset(w)
		return *z, nil
	}
	var err error
	*z, err = gzip.NewWriterLevel(w, level)
	return *z, err
}

// appendStream appends body, compressed by a codec of open.
func (d *deflater) appendStream(dst []byte, codec Codec, body []byte) ([]byte, error) {
	d.out.out = dst
	defer func() { d.out.out = nil }()
	w, err := d.open(codec, &d.out)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return dst, err
	}
	return d.out.out, nil
}

func (d *deflater) openLZ4(w io.Writer) error {
	if d.lz4 != nil {
		d.lz4.Reset(w)
		return nil
	}
	d.lz4 = lz4.NewWriter(w)
	return d.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1))
}

// plainWriter passes on what it is given.
type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

// xerialWriter writes the stream that snappy-java writes.
type xerialWriter struct {
	w     io.Writer
	block []byte // not compressed yet
	out   []byte
}

func (x *xerialWriter) reset(w io.Writer) error {
	x.w, x.block = w, x.block[:0]
	x.out = append(append(x.out[:0], xerialMagic...), 0, 0, 0, 1, 0, 0, 0, 1)
	_, err := w.Write(x.out)
	return err
}

func (x *xerialWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), xerialBlock-len(x.block))
		x.block, p = append(x.block, p[:k]...), p[k:]
		if len(x.block) < xerialBlock {
			break
		}
		if err := x.Close(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Close writes the block that is begun.
func (x *xerialWriter) Close() error {
	if len(x.block) == 0 {
		return nil
	}
	if x.out == nil || cap(x.out) < 4+snappy.MaxEncodedLen(xerialBlock) {
		x.out = make([]byte, 4+snappy.MaxEncodedLen(xerialBlock))
	}
	x.out = x.out[:cap(x.out)]
	z := snappy.Encode(x.out[4:], x.block)
	x.block = x.block[:0]
	binary.BigEndian.PutUint32(x.out, uint32(len(z)))
	_, err := x.w.Write(x.out[:4+len(z)])
	return err
}

func (d *deflater) appendZstd(dst, body []byte) ([]byte, error) {
	if err := d.openZstd(); err != nil {
		return dst, err
	}
	return d.zstd.EncodeAll(body, dst), nil
}

func (d *deflater) openZstd() (err error) {
	if d.zstd == nil {
		d.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	}
	return err
}
