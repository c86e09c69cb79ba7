package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// pieces is a Stream of data in pieces of a size; after the last it fails, or goes on for ever.
type pieces struct {
	data []byte
	size int
	err  error
}

func (p *pieces) Next() ([]byte, error) {
	if len(p.data) == 0 {
		return nil, p.err
	}
	b := p.data[:min(p.size, len(p.data))]
	p.data = p.data[len(b):]
	return b, nil
}

// mixed is a Body whose sections come from a file and from streams in turn.
type mixed struct {
	parts
	size int
	err  error
	over int // bytes that each stream has too many
}

func (b mixed) Encode(p *Payload, version int16) {
	b.parts.Encode(p, version)
	for i := range p.sections {
		if s := &p.sections[i].Section; i%2 == 0 && s.Source != nil {
			s.Stream = &pieces{data: b.data[s.Off : s.Off+int64(s.Len+b.over)], size: b.size, err: b.err}
			s.Source = nil
		}
	}
}

func TestStreams(t *testing.T) {
	file, data := filled(t, 13<<20)
	for name, sizes := range layouts {
		for _, size := range []int{1000, 1 << 20} {
			b := mixed{parts: parts{data: data, src: file, sizes: sizes, released: new(atomic.Int64)}, size: size, over: 5}
			s, addr := running(t, Config{Handler: handlerFunc(func(context.Context, *Request) Reply { return Reply{Body: b} })})
			c := dial(t, addr)
			c.send(append(frame(fetchRequest(), 0), frame(fetchRequest(), 1)...))
			for i := range int32(2) {
				if id, got := c.recv(); id != i || !bytes.Equal(got[1:], data[:b.len()]) {
					t.Fatalf("%s: answer %d, want %d, differs from what was sent (%d bytes, want %d)", name, id, i, len(got)-1, b.len())
				}
			}
			until(t, func() bool { return b.released.Load() == 2*b.sections() })
			inFiles := 0
			for i, n := range b.sectionSizes() {
				if i%2 == 1 {
					inFiles += n
				}
			}
			if runtime.GOOS == "linux" && !s.plain && inFiles > copyLimit && s.Stats().SendfileBytes != int64(2*inFiles) {
				t.Errorf("%s: %d bytes went by sendfile, want %d", name, s.Stats().SendfileBytes, 2*inFiles)
			}
		}
	}
}

func (b parts) sectionSizes() (list []int) {
	for _, n := range b.sizes {
		if n < 0 {
			list = append(list, -n)
		}
	}
	return list
}

// TestStreamFails: a stream that fails, or gives nothing, ends the connection, and its section is released.
func TestStreamFails(t *testing.T) {
	_, data := filled(t, 1<<20)
	for _, err := range []error{nil, errors.New("damaged")} {
		for _, size := range []int{-1000, -500_000} {
			log := newLines()
			b := mixed{parts: parts{data: data, sizes: []int{10, size}, src: bytes.NewReader(data), released: new(atomic.Int64)}, size: 4096, err: err, over: -1}
			_, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(func(context.Context, *Request) Reply { return Reply{Body: b} })})
			c := dial(t, addr)
			c.send(frame(fetchRequest(), 0))
			if got, err := io.ReadAll(c); err == nil && len(got) >= 4+5+10-size {
				t.Fatalf("got %d bytes: the answer was padded", len(got))
			}
			until(t, func() bool { return b.released.Load() == 1 })
			if line := log.next(t); !strings.Contains(line, "could not be made") {
				t.Error(line)
			}
		}
	}
}
