package batch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files under testdata/kafka-3.9.1 are sets of 20 records at offsets 100 to 119, as the MemoryRecords of Apache Kafka 3.9.1 writes
// them in every magic and codec.

func kafkaFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/kafka-3.9.1/*.bin")
	if err != nil || len(names) == 0 {
		t.Fatal("no files", err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func kafkaSamples(name string) []sample {
	size := 5000
	if strings.Contains(name, "none") {
		size = 50
	}
	list := make([]sample, 20)
	for i := range list {
		s := sample{ts: 1_700_000_000_000 + int64(i*7%5), key: fmt.Appendf(nil, "key-%d", i), value: make([]byte, size)}
		for k := range s.value {
			s.value[k] = byte('a' + (i*31+k*k%17)%26)
		}
		switch {
		case strings.HasPrefix(name, "magic0"):
			s.ts = -1
		case strings.Contains(name, "append-time"):
			s.ts = 1_700_000_009_999
		}
		switch i % 4 {
		case 1:
			s.key = nil
		case 2:
			if strings.HasPrefix(name, "magic2") {
				s.headers = []RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "", Value: nil}, {Key: "empty", Value: []byte{}}}
			}
		case 3:
			s.value = nil
		}
		list[i] = s
	}
	return list
}

func TestReadKafka(t *testing.T) {
	for name, file := range kafkaFiles(t) {
		t.Run(name, func(t *testing.T) {
			want := kafkaSamples(name)
			next := int64(100)
			for len(file) > 0 {
				if err := Verify(file); err != nil {
					t.Fatal(err)
				}
				e, err := ReadEntry(file)
				if err != nil {
					t.Fatal(err)
				}
				n := int(e.LastOffset - next + 1)
				compare(t, file[:e.Size], next, want[:n])
				checkEntry(t, e, name, want[:n])
				want, next, file = want[n:], next+int64(n), file[e.Size:]
			}
			if len(want) != 0 {
				t.Errorf("%d records are missing", len(want))
			}
		})
	}
}

func checkEntry(t *testing.T, e Entry, name string, want []sample) {
	t.Helper()
	latest := int64(-1)
	for _, s := range want {
		latest = max(latest, s.ts)
	}
	if e.MaxTimestamp != latest || fmt.Sprintf("magic%d", e.Magic) != name[:6] || (e.Codec == None) != strings.Contains(name, "none") {
		t.Errorf("entry %+v, want max timestamp %d", e, latest)
	}
}

func TestCheckKafka(t *testing.T) {
	for name, file := range kafkaFiles(t) {
		if !strings.HasPrefix(name, "magic2") || strings.Contains(name, "append-time") {
			continue
		}
		Stamp(file, 0, -1)
		before := bytes.Clone(file)
		var c Checker
		if _, err := c.Check(file, anyTime()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(before, file) {
			t.Errorf("%s: Check changed a batch that was right", name)
		}
	}
}

func TestVerifyFindsEveryFlip(t *testing.T) {
	for name, file := range kafkaFiles(t) {
		e, err := ReadEntry(file)
		if err != nil {
			t.Fatal(err)
		}
		first := MagicPos
		if e.Magic == 2 {
			first = CRCPos
		}
		for i := first; i < min(e.Size, 400); i++ {
			file[i] ^= 4
			if Verify(file) == nil {
				t.Errorf("%s: flip at %d was not found", name, i)
			}
			file[i] ^= 4
		}
	}
}

func TestSearch(t *testing.T) {
	for name, file := range kafkaFiles(t) {
		e, err := ReadEntry(file)
		if err != nil {
			t.Fatal(err)
		}
		list := kafkaSamples(name)
		if e.LastOffset == 100 {
			list = list[:1]
		}
		var r Reader
		for ts := int64(1_700_000_000_000 - 2); ts < 1_700_000_000_000+7; ts++ {
			for _, from := range []int64{0, 105, 119, 120} {
				wantOffset, wantTime := int64(-1), int64(-1)
				for i, s := range list {
					if s.ts >= ts && int64(100+i) >= from {
						wantOffset, wantTime = int64(100+i), s.ts
						break
					}
				}
				offset, timestamp, ok, err := r.Search(file, ts, from)
				if err != nil {
					t.Fatal(name, err)
				}
				if !ok {
					offset, timestamp = -1, -1
				}
				if offset != wantOffset || timestamp != wantTime {
					t.Errorf("%s: time %d from %d: offset %d time %d, want %d %d", name, ts, from, offset, timestamp, wantOffset, wantTime)
				}
			}
		}
	}
}
