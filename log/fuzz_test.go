package log

import (
	"errors"
	"path/filepath"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs"
)

func put(t testing.TB, fsys vfs.FS, dir, name string, b []byte) {
	t.Helper()
	f, err := fsys.Create(filepath.Join(dir, name))
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Close())
}

// FuzzRecovery opens a log whose file is any bytes: the valid batches at its start stay, the rest goes, and writing goes on.
func FuzzRecovery(f *testing.F) {
	good := batchOf(f, 2, 20, 1000, batch.Options{})
	second := batchOf(f, 1, 20, 1000, batch.Options{BaseOffset: 2, Codec: batch.Zstd})
	f.Add(good, int64(0), false)
	f.Add(append(append([]byte{}, good...), second...), int64(3), true)
	f.Add(append(append([]byte{}, good...), make([]byte, 100)...), int64(2), false)
	f.Add(good[:70], int64(0), true)
	f.Add([]byte{}, int64(1), false)
	f.Fuzz(func(t *testing.T, b []byte, point int64, clean bool) {
		o := options(newFS(t))
		must(t, o.FS.MkdirAll(o.Dir))
		put(t, o.FS, o.Dir, fileName(0, logExt), b)
		o.RecoveryPoint, o.Clean = point, clean
		l, err := Open(o)
		if err != nil {
			if !errors.As(err, new(*CorruptError)) && !errors.Is(err, batch.ErrCorrupt) && !errors.Is(err, batch.ErrCodec) && !errors.Is(err, batch.ErrInvalid) {
				t.Fatalf("neither opened nor corrupt: %v", err)
			}
			if point <= 0 {
				t.Fatalf("nothing was durable: %v", err)
			}
			return
		}
		defer l.Abandon()
		if !clean && l.Size() > 0 {
			readAll(t, l, l.StartOffset(), ToLogEnd)
		}
		end := l.EndOffset()
		if end < 1<<62 {
			a := mustAppend(t, l, batchOf(t, 1, 5, 1, batch.Options{}))
			if a.BaseOffset != end {
				t.Fatalf("appended at %d, the end was %d", a.BaseOffset, end)
			}
		}
	})
}

// FuzzIndexes opens a good log beside any index files: all of it must be found.
func FuzzIndexes(f *testing.F) {
	f.Add([]byte{}, []byte{}, false)
	f.Add([]byte{0, 0, 0, 5, 0, 0, 1, 0}, []byte{0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 5}, true)
	f.Add(make([]byte, 64), make([]byte, 48), true)
	o := options(newFS(f))
	o.Config = Config{SegmentBytes: 100 << 10, IndexIntervalBytes: 2000}
	l := mustOpen(f, o)
	want := make(map[int64][]byte)
	for l.Size() < 190<<10 {
		b := batchOf(f, 3, 1000, 1000+l.EndOffset(), batch.Options{})
		want[mustAppend(f, l, b).BaseOffset] = b
	}
	must(f, l.Close())
	var logs [2][]byte
	second := (*l.list.Load())[1].base
	for i, base := range []int64{0, second} {
		b, err := vfs.ReadFile(o.FS, filepath.Join(o.Dir, fileName(base, logExt)), 1<<20)
		must(f, err)
		logs[i] = b
	}
	end := l.EndOffset()
	f.Fuzz(func(t *testing.T, index, times []byte, clean bool) {
		o := o
		o.FS = newFS(t)
		must(t, o.FS.MkdirAll(o.Dir))
		for i, base := range []int64{0, second} {
			put(t, o.FS, o.Dir, fileName(base, logExt), logs[i])
			put(t, o.FS, o.Dir, fileName(base, indexExt), index)
			put(t, o.FS, o.Dir, fileName(base, timeExt), times)
		}
		o.RecoveryPoint, o.Clean = end, clean
		l := mustOpen(t, o)
		defer l.Abandon()
		for _, offset := range []int64{0, 1, second - 1, second, second + 5, end - 1} {
			s, err := l.Read(offset, 1, ToHighWatermark, true)
			must(t, err)
			if b := content(t, &s); string(b) != string(want[offset/3*3]) {
				t.Fatalf("offset %d is something else", offset)
			}
			s.Release()
		}
		if at, ok, err := l.SearchTimestamp(1000+second+9, ToHighWatermark); err != nil || !ok || at.Offset < second {
			t.Fatalf("time search: %+v, %v, %v", at, ok, err)
		}
	})
}
