package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"gregor/log/batch"
)

// magicLog is a log with entries of several magics, and what is in it.
type magicLog struct {
	t       *testing.T
	o       Options
	l       *Log
	rng     *rand.Rand
	records []batch.Record
	firsts  []int64 // first offset of each entry
}

// kinds are the formats that an append may have.
type kind struct {
	magic int8
	codec batch.Codec
}

func allKinds() []kind {
	list := []kind{{2, batch.None}, {2, batch.Zstd}}
	for magic := range int8(2) {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4} {
			list = append(list, kind{magic, codec})
		}
	}
	return list
}

func newMagicLog(t *testing.T, seed uint64) *magicLog {
	o := options(newFS(t))
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 2000, 300
	return &magicLog{t: t, o: o, l: mustOpen(t, o), rng: rng(seed)}
}

// add appends some records in a format.
func (m *magicLog) add(k kind) {
	m.t.Helper()
	n := 1 + m.rng.IntN(5)
	records := make([]batch.Record, n)
	var w batch.Builder
	w.Reset(batch.Options{LeaderEpoch: -1})
	if k.magic == 2 {
		w.Reset(batch.Options{Codec: k.codec, LeaderEpoch: -1})
	}
	base := m.l.EndOffset()
	for i := range records {
		r := batch.Record{Offset: base + int64(i), Timestamp: 1000 + m.rng.Int64N(5000), Key: []byte("key"),
			Value: bytes.Repeat([]byte{byte('a' + m.rng.IntN(26))}, m.rng.IntN(150))}
		w.Append(r.Timestamp, r.Key, r.Value)
		if k.magic == 0 {
			r.Timestamp = -1
		}
		records[i] = r
	}
	b, err := w.Finish(nil)
	must(m.t, err)
	switch {
	case k.magic == 2 && k.codec == batch.None && n%2 == 0: // as a set of two batches
		n, records = 2*n, append(records, records...)
		for i := range n {
			records[i].Offset = base + int64(i)
		}
		a, err := m.l.AppendSet(5, func(at int64) ([]byte, error) {
			second := bytes.Clone(b)
			batch.Stamp(second, int64(n/2), -1)
			set := append(b, second...)
			err := batch.ShiftSet(set, at)
			return set, err
		})
		must(m.t, err)
		if a.BaseOffset != base || a.LastOffset != base+int64(n)-1 {
			m.t.Fatalf("%d records appended at %d: %+v", n, base, a)
		}
		m.firsts = append(m.firsts, base, base+int64(n/2))
	case k.magic == 2:
		mustAppend(m.t, m.l, b)
		m.firsts = append(m.firsts, base)
	default:
		var d batch.Downgrader
		a, err := m.l.AppendSet(0, func(at int64) ([]byte, error) {
			batch.Stamp(b, at, -1)
			return d.Set(nil, b, batch.SetOptions{Magic: k.magic, Codec: k.codec})
		})
		must(m.t, err)
		if a.BaseOffset != base || a.LastOffset != base+int64(n)-1 {
			m.t.Fatalf("%d records appended at %d: %+v", n, base, a)
		}
		for i := range n {
			if i == 0 || k.codec == batch.None {
				m.firsts = append(m.firsts, base+int64(i))
			}
		}
	}
	m.records = append(m.records, records...)
}

// check compares every kind of read with what should be there.
func (m *magicLog) check() {
	m.t.Helper()
	var got []batch.Record
	for _, b := range readAllMagics(m.t, m.l, m.l.StartOffset()) {
		var r batch.Reader
		must(m.t, r.Reset(b, 0))
		var rec batch.Record
		for r.Next(&rec) {
			rec.Key, rec.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
			got = append(got, rec)
		}
		must(m.t, r.Err())
	}
	if len(got) != len(m.records) || int64(len(got)) != m.l.EndOffset() {
		m.t.Fatalf("%d records, want %d; end %d", len(got), len(m.records), m.l.EndOffset())
	}
	for i, w := range m.records {
		if got[i].Offset != w.Offset || got[i].Timestamp != w.Timestamp || !bytes.Equal(got[i].Value, w.Value) {
			m.t.Fatalf("record %+v, want %+v", got[i], w)
		}
	}
	m.checkOffsets()
	m.checkTimes()
}

// checkOffsets: from each offset the first entry is the one that holds it.
func (m *magicLog) checkOffsets() {
	m.t.Helper()
	for offset := range m.l.EndOffset() {
		s, err := m.l.Read(offset, 1, ToLogEnd, true)
		must(m.t, err)
		var r batch.Reader
		must(m.t, r.Reset(content(m.t, &s), 0))
		s.Release()
		var rec batch.Record
		first, last := int64(-1), int64(-1)
		for r.Next(&rec) {
			if first < 0 {
				first = rec.Offset
			}
			last = rec.Offset
		}
		if first > offset || last < offset || !slices.Contains(m.firsts, first) {
			m.t.Fatalf("offset %d: the entry holds %d to %d", offset, first, last)
		}
	}
}

func (m *magicLog) checkTimes() {
	m.t.Helper()
	newest := TimestampOffset{Timestamp: -1}
	for _, r := range m.records {
		if r.Timestamp > newest.Timestamp {
			newest = TimestampOffset{Timestamp: r.Timestamp, Offset: r.Offset}
		}
	}
	at, ok, err := m.l.MaxTimestamp(ToLogEnd)
	must(m.t, err)
	if ok != (newest.Timestamp >= 0) || ok && (at.Offset != newest.Offset || at.Timestamp != newest.Timestamp) {
		m.t.Fatalf("largest timestamp: %+v %v, want %+v", at, ok, newest)
	}
	for range 40 {
		ts := 900 + m.rng.Int64N(5300)
		i := slices.IndexFunc(m.records, func(r batch.Record) bool { return r.Timestamp >= ts })
		at, ok, err := m.l.SearchTimestamp(ts, ToLogEnd)
		must(m.t, err)
		if ok != (i >= 0) || ok && (at.Offset != m.records[i].Offset || at.Timestamp != m.records[i].Timestamp) {
			m.t.Fatalf("search for %d: %+v %v, want record %d", ts, at, ok, i)
		}
	}
}

// truncate cuts the log; the entry that holds the offset goes as a whole.
func (m *magicLog) truncate(offset int64) {
	m.t.Helper()
	must(m.t, m.l.TruncateTo(offset))
	end := int64(len(m.records))
	for len(m.firsts) > 0 && end > offset {
		end = m.firsts[len(m.firsts)-1]
		m.firsts = m.firsts[:len(m.firsts)-1]
	}
	m.records = m.records[:end]
	if m.l.EndOffset() != end {
		m.t.Fatalf("truncated to %d: the log ends at %d, want %d", offset, m.l.EndOffset(), end)
	}
}

// reopen closes the log, or leaves it as a kill does, and may damage its hints before it opens it again.
func (m *magicLog) reopen(clean bool, harm string) {
	m.t.Helper()
	runSync(m.t, m.l)
	if clean {
		must(m.t, m.l.Close())
	} else {
		m.l.Abandon()
	}
	for _, name := range fileNames(m.t, m.o) {
		if filepath.Ext(name) == harm {
			must(m.t, m.o.FS.Remove(filepath.Join(m.o.Dir, name)))
		}
	}
	m.o = reopened(m.o, m.l, clean)
	if !clean {
		m.o.RecoveryPoint = m.rng.Int64N(m.o.RecoveryPoint + 1)
	}
	m.l = mustOpen(m.t, m.o)
}

func readAllMagics(t *testing.T, l *Log, offset int64) [][]byte {
	t.Helper()
	var all [][]byte
	for {
		s, err := l.Read(offset, 500, ToLogEnd, true)
		must(t, err)
		if s.Size == 0 {
			s.Release()
			return all
		}
		var entries Entries
		entries.Reset(&s, 0)
		size := 0
		for {
			b, err := entries.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			must(t, batch.Verify(b))
			e, err := batch.ReadEntry(b)
			must(t, err)
			all = append(all, bytes.Clone(b))
			offset = e.LastOffset + 1
			size += len(b)
		}
		if size != entries.Pos() || size == 0 {
			t.Fatalf("read %d bytes, position %d", size, entries.Pos())
		}
		entries.Release()
		s.Release()
	}
}

// TestMagics: logs of each format, and of all in turn, through appends, truncation, restarts, crashes and the loss of any index.
func TestMagics(t *testing.T) {
	kinds := allKinds()
	for i := range len(kinds) + 6 {
		name := "mixed"
		if i < len(kinds) {
			name = fmt.Sprintf("magic %d codec %d", kinds[i].magic, kinds[i].codec)
		}
		t.Run(fmt.Sprint(name, i), func(t *testing.T) {
			m := newMagicLog(t, uint64(i))
			for round := range 6 {
				for range 5 + m.rng.IntN(25) {
					k := kinds[m.rng.IntN(len(kinds))]
					if i < len(kinds) {
						k = kinds[i]
					}
					m.add(k)
				}
				m.check()
				switch round {
				case 0, 3:
					m.truncate(m.rng.Int64N(m.l.EndOffset() + 2))
				case 1:
					m.reopen(true, []string{"", indexExt, timeExt}[m.rng.IntN(3)])
				case 2, 4:
					m.reopen(false, []string{"", indexExt, timeExt, snapshotExt}[m.rng.IntN(4)])
				}
				m.check()
			}
			must(t, m.l.Close())
		})
	}
}

// TestMagicsTorn: a crash that tore the last entry of an old format leaves what was whole.
func TestMagicsTorn(t *testing.T) {
	for i, k := range allKinds() {
		m := newMagicLog(t, uint64(100+i))
		m.o.Config.SegmentBytes = 1 << 20
		m.l.SetConfig(m.o.Config)
		m.add(kind{2, batch.None})
		runSync(t, m.l)
		m.o = reopened(m.o, m.l, false)
		whole, end := m.l.Size(), len(m.records)
		m.add(k)
		size := m.l.Size()
		m.l.Abandon()
		name := filepath.Join(m.o.Dir, fileName(0, logExt))
		for at := whole; at < size; at += 1 + m.rng.Int64N(7) {
			f, err := m.o.FS.Open(name)
			must(t, err)
			b := make([]byte, size)
			_, err = f.ReadAt(b, 0)
			must(t, err)
			must(t, f.Truncate(at))
			l := mustOpen(t, m.o)
			if got := l.EndOffset(); got < int64(end) || got >= int64(len(m.records)) {
				t.Fatalf("%+v cut at %d of %d: the log ends at %d of %d", k, at-whole, size-whole, got, len(m.records))
			}
			l.Abandon()
			_, err = f.WriteAt(b, 0)
			must(t, err)
			must(t, f.Close())
		}
	}
}

func TestAppendSetRefuses(t *testing.T) {
	var d batch.Downgrader
	set := func(o batch.SetOptions, base int64, n int) []byte {
		b := batchOf(t, n, 20, 1000, batch.Options{})
		batch.Stamp(b, base, -1)
		out, err := d.Set(nil, b, o)
		must(t, err)
		return out
	}
	plain, packed := batch.SetOptions{Magic: 1}, batch.SetOptions{Magic: 1, Codec: batch.Gzip}
	broken := set(plain, 0, 2)
	broken[len(broken)-1] ^= 1
	failed := errors.New("no set")
	l := mustOpen(t, options(newFS(t)))
	for name, b := range map[string][]byte{
		"empty":          {},
		"producer":       batchOf(t, 1, 20, 1000, batch.Options{Producer: &batch.Producer{ID: 1}}),
		"control":        batch.AppendMarker(nil, batch.Producer{ID: 1}, 5, 0, true),
		"batch too late": batchOf(t, 1, 20, 1000, batch.Options{BaseOffset: 1}),
		"crc":            broken,
		"cut off":        set(plain, 0, 2)[:70],
		"too late":       set(plain, 1, 2),
		"gap":            append(set(plain, 0, 1), set(plain, 2, 1)...),
		"twice":          append(set(packed, 0, 3), set(packed, 0, 3)...),
		"below":          append(set(packed, 0, 3), set(plain, 1, 1)...),
		"far above":      set(packed, 1<<40, 1),
		"build fails":    nil,
		"size too small": {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0},
	} {
		_, err := l.AppendSet(0, func(int64) ([]byte, error) {
			if b == nil {
				return nil, failed
			}
			return b, nil
		})
		if err == nil || b == nil && !errors.Is(err, failed) || l.EndOffset() != 0 || l.Size() != 0 {
			t.Errorf("%s: %v, end %d", name, err, l.EndOffset())
		}
	}
	l.SetConfig(Config{SegmentBytes: 100})
	if _, err := l.AppendSet(0, func(int64) ([]byte, error) { return set(plain, 0, 10), nil }); !errors.Is(err, ErrTooLarge) {
		t.Errorf("larger than a segment: %v", err)
	}
	must(t, l.Close())
	if _, err := l.AppendSet(0, func(int64) ([]byte, error) { return set(plain, 0, 1), nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// FuzzAppendSet: whatever a set is, the log takes all of it or nothing, and reads and recovers what it took.
func FuzzAppendSet(f *testing.F) {
	var d batch.Downgrader
	for i, k := range allKinds() {
		b := batchOf(f, 1+i, 20, 1000, batch.Options{})
		if k.magic < 2 {
			var err error
			b, err = d.Set(nil, b, batch.SetOptions{Magic: k.magic, Codec: k.codec})
			must(f, err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := options(newFS(t))
		l := mustOpen(t, o)
		a, err := l.AppendSet(0, func(int64) ([]byte, error) { return bytes.Clone(b), nil })
		if err != nil {
			if l.EndOffset() != 0 || l.Size() != 0 {
				t.Fatalf("%v, but the log ends at %d with %d bytes", err, l.EndOffset(), l.Size())
			}
			must(t, l.Close())
			return
		}
		if l.EndOffset() != a.LastOffset+1 || l.Size() != int64(len(b)) {
			t.Fatalf("%+v, the log ends at %d", a, l.EndOffset())
		}
		runSync(t, l)
		l.Abandon()
		l = mustOpen(t, reopened(o, l, false))
		if got := bytes.Join(readAllMagics(t, l, 0), nil); !bytes.Equal(got, b) {
			t.Fatalf("read %x, appended %x", got, b)
		}
		must(t, l.Close())
	})
}

// TestNewerThan: the largest magic of the whole entries of a slice.
func TestNewerThan(t *testing.T) {
	m := newMagicLog(t, 7)
	m.o.Config.SegmentBytes = 1 << 20
	m.l.SetConfig(m.o.Config)
	sizes := []int64{}
	for _, magic := range []int8{0, 1, 2} {
		m.add(kind{magic, batch.None})
		sizes = append(sizes, m.l.Size())
	}
	for _, tc := range []struct {
		size  int64
		magic int8
		want  bool
	}{
		{0, 0, false}, {sizes[0], 0, false}, {sizes[0] + 10, 0, false}, {sizes[0] + 30, 0, false}, {sizes[1], 0, true}, {sizes[1], 1, false},
		{sizes[2] - 1, 1, false}, {sizes[2], 1, true}, {sizes[2], 2, false},
	} {
		s, err := m.l.Read(0, int(tc.size), ToLogEnd, false)
		must(t, err)
		got, err := s.NewerThan(tc.magic)
		if got != tc.want || err != nil {
			t.Errorf("%d bytes, magic %d: %v, %v", tc.size, tc.magic, got, err)
		}
		s.Release()
	}
	must(t, m.l.Close())
}

// TestEntriesDamage: damage in a slice is an error with file and position.
func TestEntriesDamage(t *testing.T) {
	m := newMagicLog(t, 9)
	m.add(kind{1, batch.None})
	s, err := m.l.Read(0, 1<<20, ToLogEnd, true)
	must(t, err)
	f, err := m.o.FS.Open(filepath.Join(m.o.Dir, fileName(0, logExt)))
	must(t, err)
	overwrite(t, f, make([]byte, 20))
	must(t, f.Close())
	var e Entries
	e.Reset(&s, 0)
	var damage *CorruptError
	if _, err := e.Next(); !errors.As(err, &damage) || filepath.Base(damage.File) != fileName(0, logExt) || damage.Pos != 0 {
		t.Errorf("%v", err)
	}
	e.Release()
	s.Release()
	m.l.Abandon()
}
