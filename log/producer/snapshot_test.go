package producer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"
)

func TestDecodeSnapshotRefuses(t *testing.T) {
	good := kafkaFile(t, "3.9.1", "00000000000000000167.snapshot")
	for name, damage := range map[string]func([]byte) []byte{
		"empty":        func([]byte) []byte { return nil },
		"header only":  func(b []byte) []byte { return b[:9] },
		"cut off":      func(b []byte) []byte { return b[:len(b)-1] },
		"cut and crc":  func(b []byte) []byte { return fix(b[:len(b)-1]) },
		"bytes follow": func(b []byte) []byte { return fix(append(b, 0)) },
		"version 2":    func(b []byte) []byte { b[1] = 2; return b },
		"flipped bit":  func(b []byte) []byte { b[30] ^= 1; return b },
		"huge count": func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[6:], 1<<32-1)
			return fix(b)
		},
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		if _, err := DecodeSnapshot(damage(bytes.Clone(good))); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fix makes the checksum right.
func fix(b []byte) []byte {
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func TestEmptySnapshot(t *testing.T) {
	b := New(1).EncodeSnapshot([]byte("x"))[1:]
	if entries, err := DecodeSnapshot(b); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	for _, version := range []string{"3.9.1", "4.4.0"} {
		b, err := os.ReadFile("testdata/kafka-" + version + "/00000000000000000167.snapshot")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(New(1).EncodeSnapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 10 {
			b = fix(bytes.Clone(b)) // or nothing gets past the checksum
		}
		entries, err := DecodeSnapshot(b)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		if again := EncodeEntries(nil, entries); !bytes.Equal(again, b) {
			t.Fatalf("encoded again: %x", again)
		}
		s := New(1000)
		s.Restore(entries, 1<<62, 0)
		for i := range entries {
			e := &entries[i]
			in := Batch{ProducerID: e.ProducerID, Epoch: e.Epoch, BaseSequence: e.LastSequence & 0x7fffffff}
			if dup, _ := s.Check(in, 0); dup != nil && (dup.FirstOffset < 0 || dup.LastOffset < dup.FirstOffset) {
				t.Fatalf("duplicate %+v", *dup)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s := New(1000)
	seq := int32(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := Batch{ProducerID: 5, BaseSequence: seq, LastDelta: 9}
		if _, err := s.Check(in, 0); err != nil {
			b.Fatal(err)
		}
		s.Append(in, int64(i)*10, 0)
		seq = (seq + 10) & 0x7fffffff
	}
}
