package kraft

import (
	"os"
	"path/filepath"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
)

// goldenRecords are the values of all records that Kafka wrote.
func goldenRecords(tb testing.TB) (values [][]byte) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(golden, segmentName(0)))
	if err != nil {
		tb.Fatal(err)
	}
	var r batch.Reader
	for len(b) > 0 {
		h, err := batch.ReadHeader(b)
		if err == nil {
			err = r.Reset(b[:h.Size()], 0)
		}
		if err != nil {
			tb.Fatal(err)
		}
		var rec batch.Record
		for !h.Control() && r.Next(&rec) {
			values = append(values, append([]byte{}, rec.Value...))
		}
		b = b[h.Size():]
	}
	return values
}

// FuzzApply: any record is taken over or refused, and a refused one leaves an image that goes on.
func FuzzApply(f *testing.F) {
	for _, v := range goldenRecords(f) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := NewImage()
		for _, v := range goldenRecords(t) {
			if err := m.Apply(v); err != nil {
				t.Fatal(err)
			}
		}
		_ = m.Apply(b)
		_ = m.Apply(b)
		for _, name := range m.TopicNames() {
			if m.Topic(name) == nil || m.Topic(name).Name != name {
				t.Errorf("topic %q is not to be found", name)
			}
		}
	})
}

// FuzzSegment: a log of any bytes is read, refused or torn; what is whole is written to.
func FuzzSegment(f *testing.F) {
	b, err := os.ReadFile(filepath.Join(golden, segmentName(0)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:500])
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := crashfs.New()
		if err := mem.MkdirAll("/d"); err != nil {
			t.Fatal(err)
		}
		put(t, mem, "/d/"+segmentName(0), b)
		if _, err := Read(mem, "/d"); err != nil {
			return
		}
		w := wanted(t)
		if _, err := Write(mem, "/d", w); err != nil {
			t.Fatal(err)
		}
		mustRead(t, mem, "/d")
	})
}
