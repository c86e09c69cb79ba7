package log

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// crashModel drives a log on a disk that forgets, and knows what must be there afterwards: surely what consumers could see,
// maybe what was appended, never anything else.
type crashModel struct {
	t     *testing.T
	rng   *rand.Rand
	o     Options
	l     *Log
	mem   *crashfs.FS
	clock *clock

	written   map[int64][]byte // by base offset; the newest that was there
	seq       map[int64]int32  // next sequence of each producer
	txns      map[int64]*txnProducer
	unsynced  bool // since the log was opened
	epoch     int32
	ts        int64
	point     int64 // checkpointed recovery point
	start     int64 // checkpointed log start
	restarted bool  // epochs below a log start that was given up are not known
	low       int64 // nothing below was truncated since the last open
	captures  []capture
	chance    float64 // that a call of the file system is followed by a power cut in another world
}

// capture is the disk after a power cut, and what was sure then.
type capture struct {
	disk         *crashfs.FS
	surely       int64
	point, start int64
	written      map[int64][]byte
	restarting   bool // in TruncateFullyAndStartAt, before which the log start is given up
	op           string
}

func newCrashModel(t *testing.T, seed uint64) *crashModel {
	m := &crashModel{t: t, rng: rng(seed), written: make(map[int64][]byte), seq: make(map[int64]int32),
		txns: make(map[int64]*txnProducer), low: math.MaxInt64}
	m.o, m.clock = options(nil), newClock()
	m.o.Now = m.clock.Now
	m.o.Config = Config{SegmentBytes: 600 + m.rng.Int64N(3000), IndexIntervalBytes: 1 + m.rng.IntN(300), SegmentIndexBytes: 400,
		Preallocate: m.rng.IntN(4) == 0, FileDeleteDelayMs: m.rng.Int64N(3) * 1000}
	m.mem = newFS(t)
	m.open(true)
	return m
}

func (m *crashModel) open(clean bool) {
	m.t.Helper()
	seam := faultfs.New(m.mem)
	m.o.FS = seam
	m.o.RecoveryPoint, m.o.LogStart, m.o.Clean = m.point, m.start, clean
	m.l, m.low = nil, math.MaxInt64
	l, err := Open(m.o)
	must(m.t, err)
	m.l = l
	seam.Observe(func(op faultfs.Op) {
		if m.chance > 0 && op.Kind.Changes() && m.rng.Float64() < m.chance {
			m.capture(op.String())
		}
	})
}

func (m *crashModel) capture(op string) {
	policy := crashfs.Random()
	switch m.rng.IntN(4) {
	case 0:
		policy = crashfs.LoseAll()
	case 1:
		policy = crashfs.KeepAll()
	}
	m.captures = append(m.captures, capture{disk: m.mem.CrashClone(m.rng, policy),
		surely: min(m.l.HighWatermark(), m.low), point: m.point, start: m.start, written: maps.Clone(m.written), restarting: m.low == 0, op: op})
}

// step does one random thing.
func (m *crashModel) step() {
	switch n := m.rng.IntN(100); {
	case n < 60:
		m.append()
	case n < 80:
		m.sync()
	case n < 85:
		m.checkpoint()
	case n < 88:
		must(m.t, m.l.Tick())
	case n < 90:
		m.l.mu.Lock()
		m.l.snapshots.since = snapshotEvery
		m.l.mu.Unlock()
		must(m.t, m.l.Tick())
	case n < 93:
		m.truncate()
	case n < 94:
		m.clock.advance(time.Duration(m.rng.IntN(3)) * time.Second)
		m.l.Sweep()
	case n < 95:
		m.retain(m.l)
	case n < 96:
		must(m.t, m.l.AdvanceStart(m.l.StartOffset()+m.rng.Int64N(m.l.HighWatermark()-m.l.StartOffset()+1)))
	case n < 98:
		must(m.t, m.l.Close())
		m.checkpoint()
		m.open(true)
	case n < 99:
		m.epoch++
		must(m.t, m.l.AssignEpoch(m.epoch, m.l.EndOffset()))
	default:
		m.check(m.l)
	}
}

func (m *crashModel) append() {
	if m.rng.IntN(3) == 0 {
		m.transact()
		return
	}
	o := batch.Options{Codec: batch.Codec(m.rng.IntN(2) * 4)}
	n := 1 + m.rng.IntN(4)
	if id := m.rng.Int64N(4); id > 0 {
		o.Producer = &batch.Producer{ID: id, Sequence: m.seq[id]}
	}
	if m.rng.IntN(30) == 0 {
		m.epoch++
	}
	m.ts += m.rng.Int64N(100) - 20
	b := batchOf(m.t, n, m.rng.IntN(120), max(m.ts, 0), o)
	m.written[m.l.EndOffset()] = b // it may be on disk before Append returns
	a, err := appendTo(m.l, b, m.epoch)
	must(m.t, err)
	if a.Duplicate {
		m.t.Fatalf("batch %+v is taken for a duplicate: %+v", o.Producer, a)
	}
	if o.Producer != nil {
		m.seq[o.Producer.ID] += int32(n)
	}
}

// sync does a round of the committer, sometimes with appends during it.
func (m *crashModel) sync() {
	target, ok := m.l.BeginSync()
	if !ok {
		return
	}
	if m.rng.IntN(2) == 0 {
		m.append()
	}
	err := syncAll(target.Files)
	if m.rng.IntN(2) == 0 {
		m.append()
	}
	m.l.EndSync(target, err)
	must(m.t, err)
}

func (m *crashModel) checkpoint() { m.point, m.start = m.l.RecoveryPoint(), m.l.StartOffset() }

func (m *crashModel) truncate() {
	from, end := m.l.StartOffset(), m.l.EndOffset()
	if m.rng.IntN(6) == 0 {
		at := m.rng.Int64N(end + 50)
		m.low, m.point, m.start = 0, 0, 0
		must(m.t, m.l.TruncateFullyAndStartAt(at))
		m.lose(0)
	} else {
		at := from + m.rng.Int64N(end-from+1)
		m.low = m.batchStart(at)
		m.point = min(m.point, m.low)
		must(m.t, m.l.TruncateTo(at))
		m.lose(m.low)
	}
	m.low = math.MaxInt64
	m.checkpoint()
	m.resetSequences()
}

// batchStart is the base offset of the batch that holds offset.
func (m *crashModel) batchStart(offset int64) int64 {
	for base, b := range m.written {
		if e, _ := batch.ReadEntry(b); base <= offset && offset <= base+e.LastOffset-e.BaseOffset {
			return base
		}
	}
	return offset
}

// lose forgets what was written from offset on.
func (m *crashModel) lose(offset int64) {
	for base := range m.written {
		if base >= offset {
			delete(m.written, base)
		}
	}
}

// resetSequences makes producers go on where the log is, or anywhere if it does not know them.
func (m *crashModel) resetSequences() {
	clear(m.seq)
	for _, p := range m.l.Producers() {
		m.seq[p.ProducerID] = p.LastSequence + 1
	}
	m.resetTransactions()
}

// check compares all of l with what was written.
func (m *crashModel) check(l *Log) {
	m.t.Helper()
	got := readAll(m.t, l, l.StartOffset(), ToLogEnd)
	start := l.StartOffset()
	lastOf := make(map[int64]batch.Header)
	var epochs epochList
	for i, b := range got {
		h, err := batch.ReadHeader(b)
		must(m.t, err)
		if i == 0 {
			start = min(start, h.BaseOffset)
		}
		if h.ProducerID >= 0 && !h.Control() {
			lastOf[h.ProducerID] = h
		}
		epochs, _ = epochs.assign(h.LeaderEpoch, max(h.BaseOffset, l.StartOffset()))
	}
	sameBatches(m.t, got, m.written, start, l.EndOffset())
	if !m.restarted {
		m.checkProducers(l, lastOf)
		m.checkEpochs(l, epochs)
		m.checkTransactions(l)
	}
	m.checkTimes(l, got)
}

func (m *crashModel) checkProducers(l *Log, lastOf map[int64]batch.Header) {
	m.t.Helper()
	known := make(map[int64]int32)
	for _, p := range l.Producers() {
		known[p.ProducerID] = p.LastSequence
		if p.Epoch > lastOf[p.ProducerID].ProducerEpoch {
			delete(lastOf, p.ProducerID) // a marker began a new epoch
		}
	}
	for id, h := range lastOf {
		if last, ok := known[id]; !ok || last != h.LastSequence() {
			m.t.Fatalf("producer %d: last sequence %d known %v, the log has %d", id, last, ok, h.LastSequence())
		}
	}
}

func (m *crashModel) checkEpochs(l *Log, want epochList) {
	m.t.Helper()
	for _, e := range want {
		if floor, _, ok := l.EpochEnd(e.Epoch); !ok || floor != e.Epoch {
			m.t.Fatalf("epoch %d of the batches is not known: %v, want %v", e.Epoch, l.epochs(), want)
		}
	}
	for i := 1; i < len(want); i++ {
		if _, end, _ := l.EpochEnd(want[i-1].Epoch); end != want[i].Start {
			m.t.Fatalf("epoch %d ends at %d, want %d: %v", want[i-1].Epoch, end, want[i].Start, l.epochs())
		}
	}
}

// checkTimes compares the time searches with all records.
func (m *crashModel) checkTimes(l *Log, got [][]byte) {
	m.t.Helper()
	var records []batch.Record
	var r batch.Reader
	for _, b := range got {
		must(m.t, r.Reset(b, 0))
		for rec := (batch.Record{}); r.Next(&rec); {
			if rec.Offset >= l.StartOffset() {
				records = append(records, rec)
			}
		}
		must(m.t, r.Err())
	}
	for range 3 {
		ts := m.rng.Int64N(m.ts + 150)
		want := TimestampOffset{Offset: -1}
		for _, rec := range records {
			if rec.Timestamp >= ts {
				want = TimestampOffset{Timestamp: rec.Timestamp, Offset: rec.Offset}
				break
			}
		}
		at, ok, err := l.SearchTimestamp(ts, ToLogEnd)
		must(m.t, err)
		if ok != (want.Offset >= 0) || ok && (at.Offset != want.Offset || at.Timestamp != want.Timestamp) {
			m.t.Fatalf("search for %d: %+v %v, want %+v", ts, at, ok, want)
		}
	}
	most := TimestampOffset{Timestamp: -1}
	for _, rec := range records {
		if rec.Timestamp > most.Timestamp {
			most = TimestampOffset{Timestamp: rec.Timestamp, Offset: rec.Offset}
		}
	}
	at, ok, err := l.MaxTimestamp(ToLogEnd)
	must(m.t, err)
	if ok != (len(records) > 0) || ok && (at.Offset != most.Offset || at.Timestamp != most.Timestamp) {
		m.t.Fatalf("largest timestamp: %+v %v, want %+v", at, ok, most)
	}
}

// world is the model in the world of c, after the power cut.
func (m *crashModel) world(c capture) *crashModel {
	w := *m
	w.mem, w.point, w.start, w.captures, w.chance = c.disk, c.point, c.start, nil, 0
	w.restarted = w.restarted || c.restarting
	w.written, w.seq, w.txns = c.written, make(map[int64]int32), make(map[int64]*txnProducer)
	w.open(false)
	if w.l.EndOffset() < c.surely {
		m.t.Fatalf("after a cut at %q the log ends at %d, consumers saw %d", c.op, w.l.EndOffset(), c.surely)
	}
	if high := w.l.HighWatermark(); high > w.l.EndOffset() {
		m.t.Fatalf("high watermark %d, end %d", high, w.l.EndOffset())
	}
	w.unsynced = true
	w.check(w.l)
	runSync(m.t, w.l)
	w.unsynced = false
	if !w.restarted {
		w.checkTransactions(w.l)
	}
	if w.l.HighWatermark() != w.l.EndOffset() {
		m.t.Fatalf("after a sync the high watermark is %d, the end %d", w.l.HighWatermark(), w.l.EndOffset())
	}
	w.lose(w.l.EndOffset())
	w.resetSequences()
	if w.rng.IntN(2) == 0 {
		w.retain(w.l)
	}
	return &w
}

// TestCrash runs random histories and cuts the power after random calls of the file system, then goes on from there.
func TestCrash(t *testing.T) {
	runs := 18
	if testing.Short() {
		runs = 8
	}
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newCrashModel(t, seed)
			for life := range 4 {
				m.chance = 0.02
				for range 60 {
					m.step()
					// The history goes on, so worlds are looked at while the model is still what it was then.
					for _, c := range m.captures {
						w := m.world(c)
						must(t, w.l.Close())
					}
					m.captures = nil
				}
				m.chance = 0
				m.check(m.l)
				m.capture(fmt.Sprintf("end of life %d", life))
				c := m.captures[0]
				m.captures = nil
				m.l.Abandon()
				m = m.world(c)
			}
			must(t, m.l.Close())
			m.l.handles.Close()
			if open := m.mem.OpenFiles(); len(open) > 0 {
				t.Fatalf("left open: %v", open)
			}
		})
	}
}

// TestCrashDuringRecovery cuts the power in recovery again and again.
func TestCrashDuringRecovery(t *testing.T) {
	for seed := range uint64(5) {
		m := newCrashModel(t, 1000+seed)
		for range 80 {
			m.append()
			if m.rng.IntN(10) == 0 {
				m.sync()
			}
		}
		surely := m.l.HighWatermark()
		for range 5 {
			disk := m.mem.CrashClone(m.rng, crashfs.Random())
			seam := faultfs.New(disk)
			var after []*crashfs.FS
			seam.Observe(func(op faultfs.Op) {
				if op.Kind.Changes() {
					after = append(after, disk.CrashClone(m.rng, crashfs.Random()))
				}
			})
			o := m.o
			o.FS, o.RecoveryPoint, o.Clean = seam, m.point, false
			l := mustOpen(t, o)
			if l.EndOffset() < surely {
				t.Fatalf("seed %d: the log ends at %d, consumers saw %d", seed, l.EndOffset(), surely)
			}
			must(t, l.Close())
			for _, disk := range after {
				o.FS = disk
				l := mustOpen(t, o)
				if l.EndOffset() < surely {
					t.Fatalf("seed %d: after a crash in recovery the log ends at %d, consumers saw %d", seed, l.EndOffset(), surely)
				}
				m.unsynced = true
				m.check(l)
				must(t, l.Close())
			}
			m.mem = disk
		}
		m.l.Abandon()
	}
}

// TestCorruptBelowRecoveryPoint flips bytes that were durable.
func TestCorruptBelowRecoveryPoint(t *testing.T) {
	o := options(newFS(t))
	l := mustOpen(t, o)
	fill(t, l, 5)
	must(t, l.Flush())
	l.Abandon()
	path := l.list.Load().active().path(logExt)
	f, err := o.FS.Open(path)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	for pos := range size {
		if pos%61 < 16 && pos >= 12 {
			continue
		}
		var old, flipped [1]byte
		_, err := f.ReadAt(old[:], pos)
		must(t, err)
		flipped[0] = old[0] ^ 0x10
		_, err = f.WriteAt(flipped[:], pos)
		must(t, err)
		again, err := Open(reopened(o, l, false))
		var corrupt *CorruptError
		// The leader epoch is outside the checksum.
		if err == nil && pos%(size/5) >= batch.LeaderEpochPos && pos%(size/5) < batch.MagicPos {
			again.Abandon()
		} else if !errors.As(err, &corrupt) || corrupt.File != path || corrupt.Pos != pos/(size/5)*(size/5) {
			t.Fatalf("byte %d: %v", pos, err)
		}
		_, err = f.WriteAt(old[:], pos)
		must(t, err)
	}
	must(t, f.Truncate(size-1))
	if _, err := Open(reopened(o, l, false)); !errors.As(err, new(*CorruptError)) {
		t.Fatalf("cut below the recovery point: %v", err)
	}
	must(t, f.Truncate(0))
	if _, err := Open(reopened(o, l, true)); !errors.As(err, new(*CorruptError)) {
		t.Fatalf("emptied: %v", err)
	}
	must(t, f.Close())
}
