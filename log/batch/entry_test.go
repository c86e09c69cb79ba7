package batch

import (
	"encoding/binary"
	"errors"
	"testing"
)

func TestReadEntryRefuses(t *testing.T) {
	files := kafkaFiles(t)
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b }
	}
	for name, c := range map[string]struct {
		file   string
		damage func([]byte) []byte
		want   error
	}{
		"16 bytes":             {"magic2-none.bin", func(b []byte) []byte { return b[:16] }, ErrShort},
		"60 bytes":             {"magic2-none.bin", func(b []byte) []byte { return b[:60] }, ErrShort},
		"magic 0, 25 bytes":    {"magic0-none.bin", func(b []byte) []byte { return b[:25] }, ErrShort},
		"magic 3":              {"magic2-none.bin", func(b []byte) []byte { b[MagicPos] = 3; return b }, ErrMagic},
		"zeros":                {"magic2-none.bin", func(b []byte) []byte { clear(b); return b }, ErrCorrupt},
		"magic 2, size 48":     {"magic2-none.bin", put32(LengthPos, 48), ErrCorrupt},
		"magic 1, size 21":     {"magic1-none.bin", put32(LengthPos, 21), ErrCorrupt},
		"magic 0, size 13":     {"magic0-none.bin", put32(LengthPos, 13), ErrCorrupt},
		"negative size":        {"magic0-none.bin", put32(LengthPos, 1<<31), ErrCorrupt},
		"negative offset":      {"magic0-none.bin", put32(0, 1<<31), ErrCorrupt},
		"negative base offset": {"magic2-none.bin", put32(0, 1<<31), ErrCorrupt},
		"offset overflows":     {"magic2-none.bin", func(b []byte) []byte { return put32(4, 1<<32-1)(put32(0, 1<<31-1)(b)) }, ErrCorrupt},
		"last delta negative":  {"magic2-none.bin", put32(LastDeltaPos, 1<<31), ErrCorrupt},
	} {
		b := c.damage(append([]byte(nil), files[c.file]...))
		if e, err := ReadEntry(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if err := Verify(files["magic2-none.bin"][:100]); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
}

func TestReadHeaderRefuses(t *testing.T) {
	b := build(t, Options{}, samples(1, 1))
	if _, err := ReadHeader(b[:60]); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	b[MagicPos] = 1
	if _, err := ReadHeader(b); !errors.Is(err, ErrMagic) {
		t.Error(err)
	}
	b[MagicPos] = 2
	binary.BigEndian.PutUint32(b[LengthPos:], HeaderSize-OverheadSize-1)
	if _, err := ReadHeader(b); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestReaderRefuses(t *testing.T) {
	files := kafkaFiles(t)
	inner := func(codec Codec, magic byte, set []byte) []byte {
		var d deflater
		z, err := d.append(nil, codec, set)
		if err != nil {
			t.Fatal(err)
		}
		return message01(magic, byte(codec), 200, z)
	}
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"cut off":                 {files["magic1-gzip.bin"][:200], ErrShort},
		"cut in the overhead":     {files["magic1-gzip.bin"][:10], ErrShort},
		"no records":              {wrap(None, -1, 0, nil), ErrInvalid},
		"record cut":              {wrap(None, 1, 0, []byte{20, 0}), ErrInvalid},
		"record malformed":        {wrap(None, 1, 0, rec(0, 1, 1)), ErrInvalid},
		"headers malformed":       {wrap(None, 1, 0, rec(0, 1, 1, 2)), ErrInvalid},
		"compressed length -1":    {raw(t, Gzip, 1, 0, []byte{1}), ErrInvalid},
		"compressed record cut":   {raw(t, Gzip, 1, 0, []byte{20, 0}), ErrInvalid},
		"zstd in magic 1":         {inner(Zstd, 1, message01(1, 0, 0, nil)), ErrCodec},
		"codec 6 in magic 1":      {message01(1, 6, 0, nil), ErrCodec},
		"compressed twice":        {inner(Gzip, 1, inner(Gzip, 1, message01(1, 0, 0, nil))), ErrInvalid},
		"magic 0 in magic 1":      {inner(Gzip, 1, message01(0, 0, 0, nil)), ErrInvalid},
		"inner message cut":       {inner(Gzip, 1, message01(1, 0, 0, []byte("value"))[:20]), ErrInvalid},
		"inner size 3":            {inner(Gzip, 0, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3}), ErrInvalid},
		"bytes after the value":   {func() []byte { b := append(message01(0, 0, 0, nil), 0); b[LengthPos+3]++; return b }(), ErrInvalid},
		"wrapper without a value": {message01(1, byte(Gzip), 0, nil), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var r Reader
			err := r.Reset(c.in, 0)
			for rec := (Record{}); err == nil && r.Next(&rec); {
			}
			if err == nil {
				err = r.Err()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if r.Next(&Record{}) {
				t.Error("it goes on after an error")
			}
		})
	}
}

// message01 is a message of magic 0 or 1 without a key.
func message01(magic, attributes byte, offset int64, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes)
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, 55)
	}
	b = binary.BigEndian.AppendUint32(b, 1<<32-1)
	if value == nil {
		b = binary.BigEndian.AppendUint32(b, 1<<32-1)
	} else {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
	}
	binary.BigEndian.PutUint32(b[LengthPos:], uint32(len(b)-OverheadSize))
	return b
}
