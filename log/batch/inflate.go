package batch

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// zstdKeep is the largest window that a kept decoder may hold, in bytes: clients' default level needs 2 MiB.
	zstdKeep = 8 << 20
	// zstdMax is the largest window at all: what zstd's own decoder takes by default, and level 22 needs.
	zstdMax = 128 << 20
)

// inflater holds the decompressors of all codecs, made when first needed and reused after that.
type inflater struct {
	src    bytes.Reader
	stream source
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	snappy snappyReader
	lz4    lz4Reader
}

// source hides all but what decompressors need, so that none takes a short cut that inflates everything at once.
type source struct{ r *bytes.Reader }

func (s *source) Read(p []byte) (int, error) { return s.r.Read(p) }
func (s *source) ReadByte() (byte, error)    { return s.r.ReadByte() }

// open returns the inflated body, valid until the next open. magic is that of the entry.
func (f *inflater) open(codec Codec, body []byte, magic int8) (io.Reader, error) {
	f.src.Reset(body)
	f.stream.r = &f.src
	var r io.Reader
	var err error
	switch codec {
	case None:
		return &f.stream, nil
	case Gzip:
		r, err = f.openGzip()
	case Snappy:
		r, err = &f.snappy, f.snappy.reset(body)
	case LZ4:
		r, err = &f.lz4, f.lz4.reset(body, magic == 0)
	case Zstd:
		r, err = f.openZstd(body)
	default:
		return nil, fmt.Errorf("%w: %d", ErrCodec, codec)
	}
	if err != nil {
		return nil, damaged(err)
	}
	return r, nil
}

func (f *inflater) openGzip() (io.Reader, error) {
	if f.gzip == nil {
		f.gzip = new(gzip.Reader)
	}
	if err := f.gzip.Reset(&f.stream); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return f.gzip, nil
}

// openZstd picks the decoder by the window that the frame asks for. One with a large window is not kept.
func (f *inflater) openZstd(body []byte) (io.Reader, error) {
	var h zstd.Header
	if err := h.Decode(body); err != nil {
		return nil, err
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if window > zstdKeep {
		return newZstd(&f.stream, zstdMax)
	}
	if f.zstd == nil {
		var err error
		f.zstd, err = newZstd(&f.stream, zstdKeep)
		return f.zstd, err
	}
	return f.zstd, f.zstd.Reset(&f.stream)
}

// newZstd makes a decoder that runs on the goroutine of its reader.
func newZstd(r io.Reader, window uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

// release lets go of the batch.
func (f *inflater) release() {
	f.src.Reset(nil)
	f.snappy.src, f.snappy.out = nil, nil
	f.lz4.src, f.lz4.out = nil, nil
}
