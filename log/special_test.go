package log

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gregor/log/batch"
	"gregor/log/vfs/faultfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func TestLeftovers(t *testing.T) {
	o := options(newFS(t))
	l := mustOpen(t, o)
	want := fill(t, l, 3)
	must(t, l.Flush())
	l.Abandon()
	gone := []string{fileName(50, logExt+".deleted"), fileName(50, indexExt+".deleted"), fileName(0, logExt+".cleaned"), fileName(0, logExt+".swap"), epochFile + ".tmp", fileName(77, indexExt)}
	kept := []string{"partition.metadata", "notes.txt"}
	for _, name := range append(gone, kept...) {
		put(t, o.FS, o.Dir, name, []byte("x"))
	}
	lines := &logLines{}
	o = reopened(o, l, false)
	o.Logger = lines.logger()
	l = mustOpen(t, o)
	sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, 9)
	must(t, l.Close())
	names := strings.Join(fileNames(t, o), "\n") + "\n"
	for _, name := range gone {
		if strings.Contains(names, name+"\n") {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range kept {
		if !strings.Contains(names, name+"\n") {
			t.Errorf("%s is gone", name)
		}
	}
	if !lines.has("compaction that did not end") {
		t.Errorf("nothing is said of the swap file: %s", lines.buf.String())
	}
}

func TestFastBoot(t *testing.T) {
	o, path, ends, want := tornLog(t)
	f, err := o.FS.Open(path)
	must(t, err)
	must(t, f.Truncate(ends[2]-3))
	var b [1]byte
	_, err = f.ReadAt(b[:], ends[1]-20)
	must(t, err)
	b[0]++
	_, err = f.WriteAt(b[:], ends[1]-20)
	must(t, err)
	must(t, f.Close())
	o.FastBoot = true
	l := mustOpen(t, o)
	defer l.Abandon()
	if l.EndOffset() != 12 || l.Size() != ends[1] || l.RecoveryPoint() != 9 || l.HighWatermark() != 9 {
		t.Fatalf("end %d, size %d, recovery point %d, high watermark %d", l.EndOffset(), l.Size(), l.RecoveryPoint(), l.HighWatermark())
	}
	sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, 9)
}

// TestOpenTransaction opens logs with a transaction that Kafka wrote: read_committed ends at it, until its marker is there.
func TestOpenTransaction(t *testing.T) {
	p := batch.Producer{ID: 5, Epoch: 1}
	plain := batchOf(t, 2, 10, 1000, batch.Options{})
	data := batchOf(t, 3, 10, 1000, batch.Options{Producer: &p, Transactional: true, BaseOffset: 2})
	after := batchOf(t, 1, 10, 1000, batch.Options{BaseOffset: 5})
	marker := batch.AppendMarker(nil, p, 1000, 3, true)
	batch.Stamp(marker, 6, 0)
	for _, tc := range []struct {
		name    string
		batches [][]byte
		stable  int64
		read    int
	}{
		{"none", [][]byte{plain}, 2, 1},
		{"open", [][]byte{plain, data, after}, 2, 1},
		{"ended", [][]byte{plain, data, after, marker}, 7, 4},
	} {
		for _, clean := range []bool{true, false} {
			t.Run(tc.name, func(t *testing.T) {
				o := options(newFS(t))
				must(t, o.FS.MkdirAll(o.Dir))
				var b []byte
				for _, part := range tc.batches {
					b = append(b, part...)
				}
				put(t, o.FS, o.Dir, fileName(0, logExt), b)
				o.Clean = clean
				l := mustOpen(t, o)
				must(t, l.Flush())
				if l.LastStable() != tc.stable {
					t.Fatalf("last stable offset %d, want %d", l.LastStable(), tc.stable)
				}
				if got := readAll(t, l, 0, ToLastStable); len(got) != tc.read {
					t.Fatalf("read_committed reads %d batches, want %d", len(got), tc.read)
				}
				must(t, l.Close())
				l = mustOpen(t, reopened(o, l, true))
				if l.LastStable() != tc.stable {
					t.Fatalf("reopened: last stable offset %d, want %d", l.LastStable(), tc.stable)
				}
				must(t, l.Close())
			})
		}
	}
}

// TestTranscript shows every call that changes the disk, so that one that is missing is a difference to be looked at.
func TestTranscript(t *testing.T) {
	seam := faultfs.New(newFS(t))
	var out strings.Builder
	seam.Observe(func(op faultfs.Op) {
		if op.Kind.Changes() {
			out.WriteString("  " + strings.ReplaceAll(op.String(), testDir+"/", "") + "\n")
		}
	})
	o := options(seam)
	o.Config.SegmentBytes = 700
	var l *Log
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"open", func() { l = mustOpen(t, o) }},
		{"append", func() { fill(t, l, 1) }},
		{"sync", func() { runSync(t, l) }},
		{"append again", func() { fill(t, l, 1) }},
		{"sync again", func() { runSync(t, l) }},
		{"append with a roll", func() { fill(t, l, 2) }},
		{"sync after the roll", func() { runSync(t, l) }},
		{"new epoch", func() { must(t, l.AssignEpoch(3, l.EndOffset())) }},
		{"truncate", func() { must(t, l.TruncateTo(9)) }},
		{"advance the start", func() { must(t, l.AdvanceStart(l.HighWatermark())) }},
		{"append after", func() { fill(t, l, 1) }},
		{"close", func() { must(t, l.Close()) }},
		{"open after a clean stop", func() { l = mustOpen(t, reopened(o, l, true)); l.Abandon() }},
		{"open after a crash", func() { l = mustOpen(t, reopened(o, l, false)); l.Abandon() }},
		{"delete", func() { must(t, l.Delete()) }},
	} {
		out.WriteString(step.name + "\n")
		step.do()
	}
	golden := filepath.Join("testdata", "transcript.txt")
	if *rewrite {
		must(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if out.String() != string(want) {
		t.Fatalf("file calls differ from %s (go test -run Transcript -rewrite, then read the diff):\n%s", golden, out.String())
	}
}

func TestTruncate(t *testing.T) {
	for _, at := range []int64{0, 1, 3, 8, 30, 59, 60, 100} {
		o := options(newFS(t))
		o.Config.SegmentBytes = 1000
		l := mustOpen(t, o)
		want := fill(t, l, 20)
		must(t, l.TruncateTo(at))
		end := min(at/3*3, 60)
		if l.EndOffset() != end || l.HighWatermark() != end || l.RecoveryPoint() != end {
			t.Fatalf("to %d: end %d, high watermark %d, recovery point %d", at, l.EndOffset(), l.HighWatermark(), l.RecoveryPoint())
		}
		for base, b := range fill(t, l, 5) {
			want[base] = b
		}
		sameBatches(t, readAll(t, l, 0, ToLogEnd), want, 0, end+15)
		must(t, l.Close())
		l = mustOpen(t, reopened(o, l, true))
		sameBatches(t, readAll(t, l, 0, ToHighWatermark), want, 0, end+15)
		if err := l.TruncateTo(-1); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Fatalf("to -1: %v", err)
		}
		if err := l.AdvanceStart(1000); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Fatalf("start beyond the high watermark: %v", err)
		}
		must(t, l.Close())
	}
}
