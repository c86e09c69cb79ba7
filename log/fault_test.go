package log

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

// faultRun is one history with a fault in it, and what it was told.
type faultRun struct {
	t     *testing.T
	o     Options
	mem   *crashfs.FS
	l     *Log
	acked map[int64][]byte // appends that succeeded
	high  int64            // the largest high watermark seen
	point int64
	errs  []error
}

// history does a bit of everything. It goes on after errors, as the broker does.
func (r *faultRun) history() {
	if r.l = r.open(false); r.l == nil {
		return
	}
	for i := range 14 {
		r.append(i)
		if i%3 == 2 {
			r.note(r.l.Flush())
			r.point = r.l.RecoveryPoint()
		}
		r.read()
	}
	r.l.mu.Lock()
	r.l.snapshots.since = snapshotEvery
	r.l.mu.Unlock()
	r.note(r.l.Tick())
	r.note(r.l.AdvanceStart(min(7, r.l.HighWatermark())))
	// A clean stop that failed is none.
	if err := r.l.Close(); err != nil {
		r.note(err)
		return
	}
	point := r.l.RecoveryPoint()
	if l := r.open(true); l != nil {
		r.l, r.point = l, point
		r.append(100)
		r.note(r.l.Flush())
		r.read()
	}
}

func (r *faultRun) open(clean bool) *Log {
	o := r.o
	o.Clean, o.RecoveryPoint = clean, r.point
	if clean {
		o.RecoveryPoint, o.LogStart = r.l.RecoveryPoint(), r.l.StartOffset()
	}
	l, err := Open(o)
	r.note(err)
	return l
}

func (r *faultRun) note(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func (r *faultRun) append(i int) {
	b := batchOf(r.t, 1+i%3, 60, int64(1000+10*i), batch.Options{})
	end := r.l.EndOffset()
	a, err := appendTo(r.l, b, int32(i/6))
	if err == nil {
		r.acked[a.BaseOffset] = b
		return
	}
	r.note(err)
	if r.l.EndOffset() != end {
		r.t.Fatalf("append failed with %v and the end moved from %d to %d", err, end, r.l.EndOffset())
	}
	if r.l.Err() == nil && errors.Is(err, ErrOffline) {
		r.t.Fatalf("append says %v, Err says nothing", err)
	}
}

// read checks that what consumers are given is what was appended; a read that fails is no wrong answer.
func (r *faultRun) read() {
	r.high = max(r.high, r.l.HighWatermark())
	offset := r.l.StartOffset()
	for offset < r.l.HighWatermark() {
		s, err := r.l.Read(offset, 1<<20, ToHighWatermark, true)
		if err != nil {
			r.note(err)
			return
		}
		b := make([]byte, s.Size)
		_, err = s.File.ReadAt(b, s.Pos)
		s.Release()
		if err != nil {
			r.note(err)
			return
		}
		for len(b) > 0 {
			e, err := batch.ReadEntry(b)
			must(r.t, err)
			if string(b[:e.Size]) != string(r.acked[e.BaseOffset]) {
				r.t.Fatalf("offset %d is not what was appended", e.BaseOffset)
			}
			b, offset = b[e.Size:], e.LastOffset+1
		}
	}
}

// verify opens what is on disk, without faults.
func (r *faultRun) verify(disk *crashfs.FS, name string) {
	o := r.o
	o.FS, o.RecoveryPoint = disk, r.point
	l, err := Open(o)
	if err != nil {
		r.t.Fatalf("%s: %v; errors before: %v", name, err, r.errs)
	}
	defer l.Abandon()
	if l.EndOffset() < r.high {
		r.t.Fatalf("%s: the log ends at %d, consumers saw %d", name, l.EndOffset(), r.high)
	}
	sameBatches(r.t, readAll(r.t, l, l.StartOffset(), ToLogEnd), r.acked, l.StartOffset(), l.EndOffset())
	for i := range 3 {
		b := batchOf(r.t, 2, 10, int64(9000+i), batch.Options{})
		mustAppend(r.t, l, b)
	}
	must(r.t, l.Flush())
}

func newFaultRun(t *testing.T) *faultRun {
	r := &faultRun{t: t, mem: newFS(t), acked: make(map[int64][]byte)}
	r.o = options(faultfs.New(r.mem))
	r.o.Config = Config{SegmentBytes: 700, IndexIntervalBytes: 100, Preallocate: true}
	return r
}

// TestFaults fails each call of the file system, one in each run.
func TestFaults(t *testing.T) {
	count := newFaultRun(t)
	var calls []faultfs.Op
	count.o.FS.(*faultfs.FS).Observe(func(op faultfs.Op) { calls = append(calls, op) })
	count.history()
	planned := calls
	must(t, count.l.Close())
	if len(count.errs) > 0 || len(planned) < 100 {
		t.Fatalf("without a fault: %d calls, %v", len(planned), count.errs)
	}
	for name, rule := range map[string]faultfs.Rule{
		"enospc": {Err: syscall.ENOSPC},
		"eio":    {Err: syscall.EIO},
		"short":  {Err: syscall.ENOSPC, Short: 20, Kind: faultfs.Write},
	} {
		for i := range planned {
			if rule.Kind == faultfs.Write && planned[i].Kind != faultfs.Write {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				r := newFaultRun(t)
				nth := rule
				seen := 0
				nth.Kind, nth.Times = "", 1
				nth.Match = func(faultfs.Op) bool { seen++; return seen == i+1 }
				r.o.FS.(*faultfs.FS).Add(nth)
				r.history()
				if seen <= i {
					t.Fatalf("only %d calls", seen)
				}
				if r.l != nil {
					r.read()
					r.l.Abandon()
					r.l.handles.Close()
				}
				if open := r.mem.OpenFiles(); len(open) > 0 {
					t.Fatalf("left open: %v", open)
				}
				r.verify(r.mem.CrashClone(rng(1), crashfs.KeepAll()), "killed at "+planned[i].String())
				r.verify(r.mem.CrashClone(rng(1), crashfs.LoseAll()), "power cut at "+planned[i].String())
			})
		}
	}
}

// TestDiskFull checks that a log goes on by itself when there is room again, with nothing half-written in it.
func TestDiskFull(t *testing.T) {
	r := newFaultRun(t)
	r.o.Config.Preallocate = false
	r.l = r.open(false)
	r.append(0)
	remove := r.o.FS.(*faultfs.FS).Add(faultfs.Rule{Kind: faultfs.Write, Err: syscall.ENOSPC, Short: 30})
	if _, err := appendTo(r.l, batchOf(t, 3, 60, 1, batch.Options{}), 0); !errors.Is(err, ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full disk: %v", err)
	}
	if err := r.l.Err(); err != nil {
		t.Fatalf("offline: %v", err)
	}
	remove()
	r.append(1)
	must(t, r.l.Flush())
	r.read()
	if len(r.errs) > 0 || r.l.HighWatermark() != 3 {
		t.Fatalf("%v, high watermark %d", r.errs, r.l.HighWatermark())
	}
	must(t, r.l.Close())
	r.point = r.l.RecoveryPoint()
	r.verify(r.mem, "reopened")
}

func TestFailedSyncIsFinal(t *testing.T) {
	r := newFaultRun(t)
	r.l = r.open(false)
	r.append(0)
	must(t, r.l.Flush())
	r.append(1)
	r.o.FS.(*faultfs.FS).Add(faultfs.Rule{Kind: faultfs.Sync, Err: syscall.EIO, Times: 1})
	woken := &wakes{}
	if r.l.Watch(woken, 100, ToHighWatermark) {
		t.Fatal("offset 100 is not there yet")
	}
	for range 2 {
		if err := r.l.Flush(); !errors.Is(err, ErrOffline) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("flush: %v", err)
		}
	}
	if woken.count() != 1 {
		t.Fatalf("woken %d times", woken.count())
	}
	if _, err := appendTo(r.l, batchOf(t, 1, 1, 1, batch.Options{}), 0); !errors.Is(err, ErrOffline) {
		t.Fatalf("append: %v", err)
	}
	if _, ok := r.l.BeginSync(); ok {
		t.Fatal("asks for another sync")
	}
	if r.l.HighWatermark() != 1 || r.l.RecoveryPoint() != 1 {
		t.Fatalf("high watermark %d, recovery point %d", r.l.HighWatermark(), r.l.RecoveryPoint())
	}
	r.read()
	if err := r.l.Close(); !errors.Is(err, ErrOffline) {
		t.Fatalf("close: %v", err)
	}
}
