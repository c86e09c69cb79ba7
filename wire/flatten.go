package wire

import "fmt"

// Flatten returns the whole payload as bytes, sections read into memory, and releases the sections. It is for tests of bodies.
func (p *Payload) Flatten() ([]byte, error) {
	defer p.release()
	var out []byte
	from := 0
	for i := range p.sections {
		s := &p.sections[i]
		out = append(out, p.Buf[from:s.at]...)
		from = s.at
		b := make([]byte, s.Len)
		if s.Stream != nil {
			b = b[:0]
			if err := s.pieces(func(piece []byte) error { b = append(b, piece...); return nil }); err != nil {
				return nil, fmt.Errorf("section %d: %w", i, err)
			}
			out = append(out, b...)
			continue
		}
		if n, err := s.Source.ReadAt(b, s.Off); n < len(b) {
			return nil, fmt.Errorf("section %d has %d bytes of %d: %w", i, n, len(b), err)
		}
		out = append(out, b...)
	}
	return append(out, p.Buf[from:]...), nil
}
