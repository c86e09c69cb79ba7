package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/compact"
	"gregor/log/producer"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// keyed is a record as it was appended.
type keyed struct {
	ts         int64
	key, value string
	null       bool // tombstone
	headers    string
}

// cleanModel drives a compacted log and knows what a reader must find in it.
type cleanModel struct {
	t     *testing.T
	rng   *rand.Rand
	o     Options
	l     *Log
	mem   *crashfs.FS
	clock *clock

	written  map[int64]keyed // by offset
	builder  batch.Builder
	codecs   []batch.Codec
	aborted  map[int64]bool // offsets of records of aborted transactions
	live     map[string]int64
	open     map[int64][]int64 // offsets of the open transaction of each producer
	seq      map[int64]int32
	keys     int
	first    int64 // first dirty offset, as the checkpoint has it
	point    int64 // checkpointed recovery point
	index    int64 // bytes
	captures []capturedClean
	each     bool // capture at every step
}

type capturedClean struct {
	disk *crashfs.FS
	op   string
}

const cleanRetention = 10_000

func newCleanModel(t *testing.T, seed uint64) *cleanModel {
	m := &cleanModel{t: t, rng: rng(seed), clock: newClock(), written: make(map[int64]keyed), aborted: make(map[int64]bool),
		live: make(map[string]int64), open: make(map[int64][]int64), seq: make(map[int64]int32)}
	m.codecs = [][]batch.Codec{{batch.None, batch.Zstd}, {batch.None, batch.Snappy, batch.LZ4}, {batch.Gzip, batch.None, batch.None}}[seed%3]
	m.keys = 5 + m.rng.IntN(60)
	m.index = 24 * (3 + m.rng.Int64N(100))
	m.o = options(nil)
	m.o.Now = m.clock.Now
	m.o.Config = Config{SegmentBytes: 600 + m.rng.Int64N(3000), IndexIntervalBytes: 1 + m.rng.IntN(300), SegmentIndexBytes: 600, Compacted: true,
		FileDeleteDelayMs: m.rng.Int64N(2) * 100}
	m.mem = newFS(t)
	m.reopen(true)
	return m
}

func (m *cleanModel) reopen(clean bool) {
	m.t.Helper()
	seam := faultfs.New(m.mem)
	m.o.FS = seam
	m.o.RecoveryPoint, m.o.LogStart, m.o.Clean, m.o.CleanBelow = m.point, -1, clean, m.first
	m.l = mustOpen(m.t, m.o)
	must(m.t, m.l.Flush())
	seam.Observe(func(op faultfs.Op) {
		if m.each && op.Kind.Changes() {
			surely := []crashfs.Policy{crashfs.LoseAll(), crashfs.KeepAll()}[m.rng.IntN(2)]
			for _, p := range []crashfs.Policy{surely, crashfs.Random()} {
				m.captures = append(m.captures, capturedClean{m.mem.CrashClone(m.rng, p), op.String()})
			}
		}
	})
}

func (m *cleanModel) batch(n int, o batch.Options) (b []byte, records []keyed) {
	w := &m.builder
	w.Reset(o)
	for range n {
		r := keyed{ts: m.clock.Now().UnixMilli() - m.rng.Int64N(1000), key: fmt.Sprintf("key-%d", m.rng.IntN(m.keys)), value: strings.Repeat("v", m.rng.IntN(60)) + fmt.Sprint(m.rng.Int64())}
		var headers []batch.RecordHeader
		if m.rng.IntN(3) == 0 {
			r.headers = fmt.Sprint(m.rng.IntN(1000))
			headers = append(headers, batch.RecordHeader{Key: "h", Value: []byte(r.headers)})
		}
		value := []byte(r.value)
		if m.rng.IntN(6) == 0 {
			r.null, r.value, value = true, "", nil
		}
		w.Append(r.ts, []byte(r.key), value, headers...)
		records = append(records, r)
	}
	b, err := w.Finish(nil)
	must(m.t, err)
	return b, records
}

func (m *cleanModel) append() {
	o := batch.Options{Codec: m.codecs[m.rng.IntN(len(m.codecs))]}
	id := m.rng.Int64N(6)
	txn := id >= 3
	if id > 0 {
		o.Producer = &batch.Producer{ID: id, Sequence: m.seq[id]}
		o.Transactional = txn
	}
	n := 1 + m.rng.IntN(5)
	b, records := m.batch(n, o)
	a := mustAppend(m.t, m.l, b)
	if id > 0 {
		m.seq[id] += int32(n)
	}
	for i, r := range records {
		at := a.BaseOffset + int64(i)
		m.written[at] = r
		if txn {
			m.open[id] = append(m.open[id], at)
		}
	}
	if txn && m.rng.IntN(2) == 0 {
		m.end(id)
	}
}

// end writes a marker.
func (m *cleanModel) end(id int64) {
	commit := m.rng.IntN(2) == 0
	_, err := m.l.AppendMarker(producer.Marker{ProducerID: id, Commit: commit}, 0)
	must(m.t, err)
	if !commit {
		for _, at := range m.open[id] {
			m.aborted[at] = true
		}
	}
	delete(m.open, id)
}

func (m *cleanModel) endAll() {
	for _, id := range slices.Sorted(maps.Keys(m.open)) {
		m.end(id)
	}
}

func (m *cleanModel) options() CleanOptions {
	return CleanOptions{Bound: m.point, DeleteRetentionMs: cleanRetention, Index: compact.Limits{Bytes: m.index, Load: 0.9}, BufferBytes: 512}
}

// clean does a round, and what it takes to be allowed to.
func (m *cleanModel) clean() Cleaned {
	m.t.Helper()
	must(m.t, m.l.Flush())
	m.point = m.l.RecoveryPoint()
	done, err := m.l.Clean(context.Background(), m.options())
	must(m.t, err)
	if done.Next < m.first || done.IndexBytes > m.index {
		m.t.Fatalf("clean from %d went to %d with an index of %d bytes, at most %d", m.first, done.Next, done.IndexBytes, m.index)
	}
	m.first = done.Next
	if at := m.l.CleanBelow(); at != done.Next {
		m.t.Fatalf("clean below %d is kept, want %d", at, done.Next)
	}
	return done
}

// survivors reads all records that are there.
func (m *cleanModel) survivors(l *Log) (offsets []int64) {
	m.t.Helper()
	var r batch.Reader
	last := int64(-1)
	for _, b := range readAll(m.t, l, l.StartOffset(), ToLogEnd) {
		must(m.t, r.Reset(b, 0))
		h := r.Header()
		if h.Control() {
			continue
		}
		for rec := (batch.Record{}); r.Next(&rec); {
			got := keyed{ts: rec.Timestamp, key: string(rec.Key), value: string(rec.Value), null: rec.Value == nil}
			for h := range rec.Headers.All() {
				got.headers = string(h.Value)
			}
			if want, ok := m.written[rec.Offset]; !ok || want != got || rec.Offset <= last {
				m.t.Fatalf("record at offset %d after %d is %+v, written was %+v (%v)", rec.Offset, last, got, want, ok)
			}
			last = rec.Offset
			offsets = append(offsets, rec.Offset)
		}
		must(m.t, r.Err())
	}
	return offsets
}

// check compares what a reader of committed records finds in l with the model.
func (m *cleanModel) check(l *Log) {
	m.t.Helper()
	end := l.LastStable()
	want := make(map[string]int64)
	for _, at := range slices.Sorted(maps.Keys(m.written)) {
		if at >= end || m.aborted[at] || m.isOpen(at) {
			continue
		}
		r := m.written[at]
		if r.null {
			delete(want, r.key)
		} else {
			want[r.key] = at
		}
	}
	got := make(map[string]int64)
	dropped, err := l.AbortedIn(l.StartOffset(), end)
	must(m.t, err)
	for _, at := range m.survivors(l) {
		if at >= end || m.isOpen(at) {
			continue
		}
		// What a reader leaves out must be what the index says.
		if m.aborted[at] {
			if !slices.ContainsFunc(dropped, func(a AbortedTxn) bool { return a.FirstOffset <= at && at < a.LastOffset }) {
				m.t.Fatalf("offset %d of an aborted transaction is there, and in no transaction of the index: %+v", at, dropped)
			}
			continue
		}
		if r := m.written[at]; r.null {
			delete(got, r.key)
		} else {
			got[r.key] = at
		}
	}
	if !maps.Equal(got, want) {
		m.t.Fatalf("newest offsets of the keys are\n%v\nwant\n%v\nstable end %d", got, want, end)
	}
}

func (m *cleanModel) isOpen(at int64) bool {
	for _, offsets := range m.open {
		if slices.Contains(offsets, at) {
			return true
		}
	}
	return false
}

// unique checks that what is clean has each key once and nothing of aborted transactions.
func (m *cleanModel) unique() {
	m.t.Helper()
	seen := make(map[string]int64)
	for _, at := range m.survivors(m.l) {
		if at >= m.first {
			break
		}
		r := m.written[at]
		if old, ok := seen[r.key]; ok {
			m.t.Fatalf("%s is there at offsets %d and %d, although all below %d is clean", r.key, old, at, m.first)
		}
		seen[r.key] = at
		if m.aborted[at] {
			m.t.Fatalf("offset %d of an aborted transaction is there, although all below %d is clean", at, m.first)
		}
	}
}

func (m *cleanModel) producers(l *Log) {
	m.t.Helper()
	known := make(map[int64]int32)
	for _, p := range l.Producers() {
		known[p.ProducerID] = p.LastSequence
	}
	for id, next := range m.seq {
		if known[id] != next-1 {
			m.t.Fatalf("last sequence of producer %d is %d, want %d", id, known[id], next-1)
		}
	}
}

// TestCleanModel cleans a log over and over, with tombstones, transactions, indexes that are too small, restarts and crashes.
func TestCleanModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newCleanModel(t, seed)
			for range 7 {
				m.round()
			}
			must(t, m.l.Close())
		})
	}
}

func (m *cleanModel) round() {
	for range 10 + m.rng.IntN(60) {
		m.append()
	}
	if m.rng.IntN(2) == 0 {
		m.endAll()
	}
	m.clock.advance(time.Duration(m.rng.Int64N(cleanRetention)) * time.Millisecond)
	end := m.l.EndOffset()
	for done := m.clean(); done.Full; {
		done = m.clean()
	}
	m.check(m.l)
	m.unique()
	if m.l.EndOffset() != end {
		m.t.Fatalf("end offset was %d, is %d", end, m.l.EndOffset())
	}
	switch m.rng.IntN(4) {
	case 0:
		must(m.t, m.l.Close())
		m.point = m.l.RecoveryPoint()
		m.reopen(true)
	case 1:
		must(m.t, m.l.Flush())
		m.l.Abandon()
		m.mem = m.mem.CrashClone(m.rng, crashfs.Random())
		if m.rng.IntN(2) == 0 {
			m.removeHints()
		}
		m.reopen(false)
	case 2:
		m.l.Sweep()
	}
	m.check(m.l)
	m.producers(m.l)
}

// removeHints removes indexes and snapshots, so that all is read from the log.
func (m *cleanModel) removeHints() {
	entries, err := m.mem.List(testDir)
	must(m.t, err)
	for _, e := range entries {
		for _, ext := range []string{indexExt, timeExt, snapshotExt} {
			if strings.HasSuffix(e.Name(), ext) {
				must(m.t, m.mem.Remove(testDir+"/"+e.Name()))
			}
		}
	}
}

// TestCleanCut cuts the power at every call of the file system that a clean makes, and opens what is left.
func TestCleanCut(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newCleanModel(t, seed+100)
			m.keys = 12
			for range 2 {
				for range 30 {
					m.append()
				}
				m.endAll()
				m.clock.advance(cleanRetention / 2 * time.Millisecond)
				must(t, m.l.Flush())
				m.point = m.l.RecoveryPoint()
				m.each = true
				m.clean()
				m.each = false
				m.openCaptures()
			}
			must(t, m.l.Close())
		})
	}
}

func (m *cleanModel) openCaptures() {
	m.t.Helper()
	if len(m.captures) < 40 {
		m.t.Fatalf("only %d captures", len(m.captures))
	}
	for i, c := range m.captures {
		o := m.o
		// A cut in the recovery, too.
		seam := faultfs.New(c.disk)
		var again []*crashfs.FS
		if i%7 == 0 {
			seam.Observe(func(op faultfs.Op) {
				if op.Kind.Changes() && len(again) < 20 {
					again = append(again, c.disk.CrashClone(m.rng, crashfs.Random()))
				}
			})
		}
		o.FS, o.RecoveryPoint, o.LogStart, o.Clean = seam, m.point, -1, false
		m.openCapture(o, c.op, i%10 == 0)
		for _, disk := range again {
			o.FS = disk
			m.openCapture(o, c.op+", then in the recovery", false)
		}
	}
	m.captures = nil
}

func (m *cleanModel) openCapture(o Options, op string, again bool) {
	m.t.Helper()
	l, err := Open(o)
	if err != nil {
		m.t.Fatalf("cut after %s: %v", op, err)
	}
	must(m.t, l.Flush())
	m.check(l)
	m.producers(l)
	entries, err := o.FS.List(testDir)
	must(m.t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), cleanedExt) || strings.HasSuffix(e.Name(), swapExt) {
			m.t.Fatalf("cut after %s: %s is left", op, e.Name())
		}
	}
	if again { // what is left can be cleaned
		if _, err := l.Clean(context.Background(), m.options()); err != nil {
			m.t.Fatalf("cut after %s: cleaning again: %v", op, err)
		}
		m.check(l)
	}
	l.Abandon()
}

// TestCleanFails lets every call of a clean fail in turn: the log is served as it was or clean, and the next start goes on.
func TestCleanFails(t *testing.T) {
	for n := 0; ; n++ {
		m := newCleanModel(t, 7)
		for range 60 {
			m.append()
		}
		m.endAll()
		must(t, m.l.Flush())
		m.point = m.l.RecoveryPoint()
		seam := m.o.FS.(*faultfs.FS)
		hit := false
		remove := seam.Add(faultfs.Rule{Path: testDir, After: n, Times: 1, Err: syscall.EIO})
		seen := 0
		seam.Observe(func(faultfs.Op) { seen++ })
		_, err := m.l.Clean(context.Background(), m.options())
		seam.Observe(nil)
		remove()
		if hit = seen > n; err == nil && !hit {
			if n < 60 {
				t.Fatalf("only %d calls", n)
			}
			must(t, m.l.Close())
			return
		}
		m.check(m.l)
		m.l.Abandon()
		if open := m.mem.OpenFiles(); len(open) > 0 {
			t.Fatalf("call %d failed with %v: %v is left open", n, err, open)
		}
		m.reopen(false)
		m.check(m.l)
		m.clean()
		m.check(m.l)
		must(t, m.l.Close())
	}
}

// TestCleanBelow: how far a log is clean is taken back by a truncation, and not believed when it cannot be.
func TestCleanBelow(t *testing.T) {
	m := newCleanModel(t, 3)
	for range 80 {
		m.append()
	}
	m.endAll()
	m.append()
	m.endAll()
	for done := m.clean(); done.Full; {
		done = m.clean()
	}
	first := m.first
	c, err := m.l.Cleanable(0, true)
	must(t, err)
	if first == 0 || c.First != first || c.DirtyBytes != 0 || c.Ratio() != 0 {
		t.Fatalf("after a clean up to %d: %+v", first, c)
	}
	must(t, m.l.Close())
	m.point = m.l.RecoveryPoint()
	for _, wrong := range []int64{-5, m.point + 1, 1 << 60} {
		m.first = wrong
		m.reopen(true)
		c, err := m.l.Cleanable(0, true)
		must(t, err)
		if c.First != 0 || c.DirtyBytes == 0 || c.Ratio() != 1 || c.OldestMs <= 0 || c.OldestMs > m.clock.Now().UnixMilli() {
			t.Errorf("with %d in the checkpoint: %+v", wrong, c)
		}
		must(t, m.l.Close())
	}
	m.first = first
	m.reopen(true)
	must(t, m.l.TruncateTo(first-3))
	if at := m.l.CleanBelow(); at > first-3 {
		t.Errorf("clean below %d after a truncation to %d", at, first-3)
	}
	must(t, m.l.Close())
}

// TestCleanStops: a clean ends with its context, with the error of its pace and with the log, and names a damaged file.
func TestCleanStops(t *testing.T) {
	m := newCleanModel(t, 4)
	for range 80 {
		m.append()
	}
	m.endAll()
	must(t, m.l.Flush())
	m.point = m.l.RecoveryPoint()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.l.Clean(ctx, m.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	slow := errors.New("slow")
	o := m.options()
	o.Pace = func(int) error { return slow }
	if _, err := m.l.Clean(t.Context(), o); !errors.Is(err, slow) {
		t.Errorf("paced: %v", err)
	}
	o.Pace = func(int) error { m.l.Abandon(); return nil }
	if _, err := m.l.Clean(t.Context(), o); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	f, err := m.mem.Open(testDir + "/" + fileName(0, logExt))
	must(t, err)
	_, err = f.WriteAt([]byte("damage"), 80)
	must(t, errors.Join(err, f.Close()))
	m.reopen(true)
	var damage *CorruptError
	if _, err := m.l.Clean(t.Context(), m.options()); !errors.As(err, &damage) || damage.Pos != 0 || !strings.HasSuffix(damage.File, fileName(0, logExt)) {
		t.Errorf("damaged: %v", err)
	}
	must(t, m.l.Close())
}
