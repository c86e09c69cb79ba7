package log

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
)

// hintLog makes a log of several segments whose last is larger than what is read without an index, and stops it.
func hintLog(t *testing.T, clean bool) (o Options, want map[int64][]byte) {
	t.Helper()
	o = options(newFS(t))
	o.Config = Config{SegmentBytes: 100 << 10, IndexIntervalBytes: 500}
	l := mustOpen(t, o)
	want = make(map[int64][]byte)
	r := rng(9)
	var seq int32
	for l.Size() < 390<<10 {
		b := batchOf(t, 3, 100+r.IntN(300), 1000+10*l.EndOffset()+r.Int64N(200), batch.Options{Producer: &batch.Producer{ID: 7, Sequence: seq}})
		a, err := appendTo(l, b, int32(l.EndOffset()/400))
		must(t, err)
		want[a.BaseOffset] = b
		seq += 3
	}
	must(t, l.Flush())
	if clean {
		must(t, l.Close())
	} else {
		l.Abandon()
	}
	return reopened(o, l, clean), want
}

// damage are things that happen to a file that is a hint.
var damage = map[string]func(t *testing.T, f vfs.File, size int64, other []byte){
	"emptied":   func(t *testing.T, f vfs.File, _ int64, _ []byte) { must(t, f.Truncate(0)) },
	"halved":    func(t *testing.T, f vfs.File, size int64, _ []byte) { must(t, f.Truncate(size/24*12)) },
	"cut odd":   func(t *testing.T, f vfs.File, size int64, _ []byte) { must(t, f.Truncate(max(size-5, 0))) },
	"zeroed":    func(t *testing.T, f vfs.File, size int64, _ []byte) { overwrite(t, f, make([]byte, size)) },
	"zero tail": func(t *testing.T, f vfs.File, size int64, _ []byte) { must(t, f.Truncate(size+120)) },
	"ones": func(t *testing.T, f vfs.File, size int64, _ []byte) {
		overwrite(t, f, bytes.Repeat([]byte{0xff}, int(size)))
	},
	"backwards": func(t *testing.T, f vfs.File, size int64, _ []byte) {
		b := make([]byte, size)
		_, _ = f.ReadAt(b, 0)
		slices.Reverse(b)
		overwrite(t, f, b)
	},
	"another segment's": func(t *testing.T, f vfs.File, _ int64, other []byte) {
		must(t, f.Truncate(0))
		overwrite(t, f, other)
	},
}

func overwrite(t *testing.T, f vfs.File, b []byte) {
	t.Helper()
	_, err := f.WriteAt(b, 0)
	must(t, err)
}

// TestHintsAreNotTrusted damages every kind of file but the log, in every segment, and compares all reads with what was written.
func TestHintsAreNotTrusted(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, ext := range []string{indexExt, timeExt, snapshotExt, epochFile} {
			for name, harm := range damage {
				if ext == snapshotExt && name == "another segment's" {
					continue // it has a right checksum, and says nowhere which offset it is for
				}
				t.Run(fmt.Sprintf("clean=%v/%s/%s", clean, ext, name), func(t *testing.T) {
					o, want := hintLog(t, clean)
					harmFiles(t, o, ext, harm)
					checkHints(t, o, want)
				})
			}
			t.Run(fmt.Sprintf("clean=%v/%s/missing", clean, ext), func(t *testing.T) {
				o, want := hintLog(t, clean)
				if ext == epochFile {
					must(t, o.FS.Remove(filepath.Join(o.Dir, ext)))
				} else if removeFiles(t, o, ext) == 0 {
					t.Fatal("there is no such file")
				}
				checkHints(t, o, want)
			})
		}
	}
}

func harmFiles(t *testing.T, o Options, ext string, harm func(*testing.T, vfs.File, int64, []byte)) {
	t.Helper()
	var other []byte
	for _, name := range fileNames(t, o) {
		if filepath.Ext(name) != ext && name != ext {
			continue
		}
		f, err := o.FS.Open(filepath.Join(o.Dir, name))
		must(t, err)
		size, err := f.Size()
		must(t, err)
		before := make([]byte, size)
		_, _ = f.ReadAt(before, 0)
		harm(t, f, size, other)
		must(t, f.Close())
		other = before
	}
}

// checkHints opens the log twice: what was rebuilt must be good too, and silently so.
func checkHints(t *testing.T, o Options, want map[int64][]byte) {
	t.Helper()
	for _, again := range []bool{false, true} {
		lines := &logLines{}
		o.Logger = lines.logger()
		l := mustOpen(t, o)
		m := &crashModel{t: t, rng: rng(4), written: want, ts: 1000 + 10*l.EndOffset()}
		end := l.EndOffset()
		if want[end-3] == nil {
			t.Fatalf("log ends at %d", end)
		}
		m.check(l)
		for offset := int64(0); offset < end; offset += 7 {
			s, err := l.Read(offset, 1, ToHighWatermark, true)
			must(t, err)
			sameBatches(t, [][]byte{content(t, &s)}, want, offset/3*3, offset/3*3+3)
			s.Release()
		}
		if again && lines.has("level=WARN") {
			t.Fatalf("warned again: %s", lines.buf.String())
		}
		must(t, l.Close())
		o = reopened(o, l, true)
	}
}

// TestNoFalseAlarm opens good logs of every small size: nothing may be said and nothing written.
func TestNoFalseAlarm(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for n := range 30 {
			o := options(newFS(t))
			o.Config = Config{SegmentBytes: 900, IndexIntervalBytes: 1}
			l := mustOpen(t, o)
			fill(t, l, n)
			must(t, l.Flush())
			if clean {
				must(t, l.Close())
			} else {
				l.Abandon()
			}
			lines := &logLines{}
			o = reopened(o, l, clean)
			o.Logger = lines.logger()
			l = mustOpen(t, o)
			if clean && l.unsynced() {
				t.Fatalf("%d batches: something to sync after a clean stop", n)
			}
			if len(lines.buf.Bytes()) > 0 {
				t.Fatalf("%d batches, clean %v: %s", n, clean, lines.buf.String())
			}
			l.Abandon()
		}
	}
}

// tornLog makes a synced log with two batches above the recovery point.
func tornLog(t *testing.T) (o Options, path string, ends []int64, want map[int64][]byte) {
	t.Helper()
	o = options(newFS(t))
	l := mustOpen(t, o)
	want = fill(t, l, 3)
	must(t, l.Flush())
	point := l.RecoveryPoint()
	ends = append(ends, l.Size())
	for range 2 {
		for base, b := range fill(t, l, 1) {
			want[base] = b
		}
		ends = append(ends, l.Size())
	}
	must(t, l.Flush())
	path = l.list.Load().active().path(logExt)
	l.Abandon()
	o = reopened(o, l, false)
	o.RecoveryPoint = point
	return o, path, ends, want
}

// TestTornTail cuts the log at each byte of its last two batches, alone and filled with zeros up to 4 KiB.
func TestTornTail(t *testing.T) {
	o, path, ends, want := tornLog(t)
	mem := o.FS.(*crashfs.FS)
	must(t, mem.SyncAll("/"))
	for _, fill := range []bool{false, true} {
		for at := ends[0]; at <= ends[2]; at++ {
			disk := mem.CrashClone(rng(1), crashfs.KeepAll())
			f, err := disk.Open(path)
			must(t, err)
			must(t, f.Truncate(at))
			if fill {
				must(t, f.Truncate(at+4096))
			}
			must(t, f.Close())
			have := at
			if fill {
				have++ // a batch without headers ends with a zero
			}
			batches := 3
			for _, end := range ends[1:] {
				if have >= end {
					batches++
				}
			}
			o.FS = disk
			lines := &logLines{}
			o.Logger = lines.logger()
			l := mustOpen(t, o)
			if l.EndOffset() != int64(3*batches) || l.Size() != ends[batches-3] {
				t.Fatalf("cut at %d, zeros %v: the log ends at %d, %d bytes, want %d batches", at, fill, l.EndOffset(), l.Size(), batches)
			}
			if torn := fill || at != ends[batches-3]; torn != lines.has("cutting a torn tail") {
				t.Fatalf("cut at %d, zeros %v: logged %q", at, fill, lines.buf.String())
			}
			mustAppend(t, l, want[0])
			must(t, l.Flush())
			if got := len(readAll(t, l, 0, ToHighWatermark)); got != batches+1 {
				t.Fatalf("cut at %d: %d batches", at, got)
			}
			l.Abandon()
			want = fillAgain(t, want)
		}
	}
}

// fillAgain undoes what Append stamped into the first batch.
func fillAgain(t *testing.T, want map[int64][]byte) map[int64][]byte {
	t.Helper()
	batch.Stamp(want[0], 0, 0)
	return want
}

// TestChecksumZero keeps a batch whose checksum happens to be 0.
func TestChecksumZero(t *testing.T) {
	o := options(newFS(t))
	l := mustOpen(t, o)
	b := zeroChecksum(t)
	mustAppend(t, l, b)
	l.Abandon()
	l = mustOpen(t, o)
	defer l.Abandon()
	if l.EndOffset() != 1 {
		t.Fatalf("the log ends at %d", l.EndOffset())
	}
}

// zeroChecksum makes a batch with a checksum of 0: four bytes of the value are chosen for it. A CRC is linear over bits, so the
// 32 bits that make it 0 are the solution of linear equations.
func zeroChecksum(t *testing.T) []byte {
	t.Helper()
	b := batchOf(t, 1, 4, 1, batch.Options{})
	at := len(b) - 5 // the value; a header count follows
	sum := func(v uint32) uint32 {
		for i := range 4 {
			b[at+i] = byte(v >> (8 * i))
		}
		return castagnoli(b[batch.AttributesPos:])
	}
	zero := sum(0)
	var rows [32][2]uint32 // effect on the checksum, which bits of the value
	for i := range 32 {
		effect, bits := sum(1<<i)^zero, uint32(1)<<i
		for k := 31; k >= 0 && effect != 0; k-- {
			if effect>>k&1 == 0 {
				continue
			}
			if rows[k][0] == 0 {
				rows[k] = [2]uint32{effect, bits}
				break
			}
			effect, bits = effect^rows[k][0], bits^rows[k][1]
		}
	}
	left, v := zero, uint32(0)
	for k := 31; k >= 0; k-- {
		if left>>k&1 == 1 {
			left, v = left^rows[k][0], v^rows[k][1]
		}
	}
	if sum(v) != 0 {
		t.Fatal("no such batch")
	}
	for i := range 4 {
		b[batch.CRCPos+i] = 0
	}
	must(t, batch.Verify(b))
	return b
}
