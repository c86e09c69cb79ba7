package log

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
)

const testDir = "/data/topic-0"

// clock is a clock that stands still until it is set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_700_000_000_000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func options(fsys vfs.FS) Options {
	return Options{FS: fsys, Dir: testDir, LogStart: -1, Now: newClock().Now}
}

func newFS(t testing.TB) *crashfs.FS {
	t.Helper()
	fsys := crashfs.New()
	must(t, fsys.MkdirAll(filepath.Dir(testDir)))
	must(t, fsys.SyncAll("/"))
	return fsys
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	must(t, err)
	return l
}

// reopened is options for an open after a stop of l.
func reopened(o Options, l *Log, clean bool) Options {
	o.RecoveryPoint, o.LogStart, o.Clean = l.RecoveryPoint(), l.StartOffset(), clean
	return o
}

// batchOf makes a batch of n records with values of size bytes and timestamps from ts on.
func batchOf(t testing.TB, n, size int, ts int64, o batch.Options) []byte {
	t.Helper()
	var w batch.Builder
	w.Reset(o)
	value := bytes.Repeat([]byte{'v'}, size)
	for i := range n {
		w.Append(ts+int64(i), []byte(fmt.Sprintf("key-%d", i)), value)
	}
	b, err := w.Finish(nil)
	must(t, err)
	return b
}

func appendTo(l *Log, b []byte, epoch int32) (Appended, error) {
	h, err := batch.ReadHeader(b)
	if err != nil {
		return Appended{}, err
	}
	return l.Append(b, h, epoch)
}

func mustAppend(t testing.TB, l *Log, b []byte) Appended {
	t.Helper()
	a, err := appendTo(l, b, 0)
	must(t, err)
	return a
}

// fill appends n batches of three records, 40 bytes a value, and returns them by base offset.
func fill(t testing.TB, l *Log, n int) map[int64][]byte {
	t.Helper()
	all := make(map[int64][]byte)
	for range n {
		b := batchOf(t, 3, 40, 1000+10*l.EndOffset(), batch.Options{})
		all[mustAppend(t, l, b).BaseOffset] = b
	}
	return all
}

// content reads all batches of s.
func content(t testing.TB, s *Slice) []byte {
	t.Helper()
	b := make([]byte, s.Size)
	if n, err := s.File.ReadAt(b, s.Pos); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		t.Fatal(err)
	}
	return b
}

// readAll reads the log from offset on as a consumer does and returns the batches.
func readAll(t testing.TB, l *Log, offset int64, limit ReadLimit) [][]byte {
	t.Helper()
	var all [][]byte
	for {
		s, err := l.Read(offset, 1<<20, limit, true)
		must(t, err)
		if s.Size == 0 {
			s.Release()
			return all
		}
		b := content(t, &s)
		if e, err := batch.ReadEntry(b); err != nil || e.BaseOffset != s.Offset || e.Size != s.FirstBatch {
			t.Fatalf("slice says batch at %d of %d bytes, it is %+v, %v", s.Offset, s.FirstBatch, e, err)
		}
		s.Release()
		for len(b) > 0 {
			must(t, batch.Verify(b))
			e, err := batch.ReadEntry(b)
			must(t, err)
			all = append(all, b[:e.Size])
			b, offset = b[e.Size:], e.LastOffset+1
		}
	}
}

// sameBatches checks that the batches from offset on are those that were appended, without a hole up to end.
func sameBatches(t testing.TB, got [][]byte, want map[int64][]byte, offset, end int64) {
	t.Helper()
	for _, b := range got {
		e, err := batch.ReadEntry(b)
		must(t, err)
		if e.BaseOffset != offset {
			t.Fatalf("batch at offset %d follows %d", e.BaseOffset, offset)
		}
		if !bytes.Equal(b, want[offset]) {
			t.Fatalf("batch at offset %d is not what was appended", offset)
		}
		offset = e.LastOffset + 1
	}
	if offset != end {
		t.Fatalf("read up to offset %d, want %d", offset, end)
	}
}

// logLines is a logger that keeps its messages.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logLines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.buf.Bytes(), []byte(text))
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
