package log

import (
	"path/filepath"
	"reflect"
	"testing"

	"gregor/log/vfs"
)

func TestEpochEnd(t *testing.T) {
	known := epochList{{0, 0}, {2, 10}, {5, 20}}
	for _, tc := range []struct {
		list   epochList
		start  int64
		asked  int32
		floor  int32
		end    int64
		answer bool
	}{
		{known, 0, 0, 0, 10, true}, {known, 0, 1, 0, 10, true}, {known, 0, 2, 2, 20, true}, {known, 0, 3, 2, 20, true},
		{known, 0, 4, 2, 20, true}, {known, 0, 5, 5, 30, true}, {known, 0, 6, -1, -1, false}, {known, 0, -1, -1, -1, false},
		// Trimmed to 12: epoch 0 is not known any more.
		{known, 12, 0, 0, 12, true}, {known, 12, 1, 1, 12, true}, {known, 12, 2, 2, 20, true}, {known, 25, 2, 2, 25, true},
		{known[1:], 10, 0, 0, 10, true}, {nil, 0, 0, -1, -1, false}, {epochList{{3, 0}}, 0, 3, 3, 30, true},
	} {
		floor, end, ok := tc.list.end(tc.asked, tc.start, 30)
		if floor != tc.floor || end != tc.end || ok != tc.answer {
			t.Errorf("epoch %d of %v from %d: %d, %d, %v, want %d, %d, %v", tc.asked, tc.list, tc.start, floor, end, ok, tc.floor, tc.end, tc.answer)
		}
	}
}

func TestEpochs(t *testing.T) {
	o := options(newFS(t))
	l := mustOpen(t, o)
	if _, ok := l.LatestEpoch(); ok {
		t.Fatal("a new log has an epoch")
	}
	step := func(name string, want ...EpochStart) {
		t.Helper()
		if got := l.epochs(); !reflect.DeepEqual([]EpochStart(got), want) && len(got)+len(want) > 0 {
			t.Fatalf("%s: %v, want %v", name, got, want)
		}
	}
	must(t, l.AssignEpoch(1, 0))
	must(t, l.AssignEpoch(1, 50))
	step("assigned twice", EpochStart{1, 0})
	fill(t, l, 1)
	must(t, l.AssignEpoch(4, 3))
	must(t, l.AssignEpoch(2, 3))
	must(t, l.AssignEpoch(6, 3))
	step("nothing was written under 4", EpochStart{1, 0}, EpochStart{6, 3})
	fill(t, l, 2)
	must(t, l.AssignEpoch(7, 9))
	must(t, l.Close())
	b, err := vfs.ReadFile(o.FS, filepath.Join(o.Dir, epochFile), 100)
	must(t, err)
	if string(b) != "0\n3\n1 0\n6 3\n7 9\n" {
		t.Fatalf("checkpoint is %q", b)
	}
	l = mustOpen(t, reopened(o, l, true))
	step("above the end", EpochStart{1, 0}, EpochStart{6, 3})
	must(t, l.AssignEpoch(7, 9))
	must(t, l.TruncateTo(20))
	step("truncated above the end", EpochStart{1, 0}, EpochStart{6, 3})
	must(t, l.TruncateTo(3))
	step("truncated", EpochStart{1, 0})
	must(t, l.TruncateFullyAndStartAt(100))
	step("truncated fully")
	if l.StartOffset() != 100 || l.EndOffset() != 100 || l.HighWatermark() != 100 || l.RecoveryPoint() != 100 {
		t.Fatalf("start %d, end %d, high %d, recovery point %d", l.StartOffset(), l.EndOffset(), l.HighWatermark(), l.RecoveryPoint())
	}
	must(t, l.Close())
}

func FuzzEpochs(f *testing.F) {
	for _, s := range []string{"", "0\n0\n", "0\n1\n3 0\n", "0\n2\n1 0\n6 3\n", "0\n2\n6 0\n1 3\n", "1\n0\n", "0\n99999999999999\n", "0\n1\n-1 -2\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeEpochs(b)
		if err != nil {
			return
		}
		again, err := decodeEpochs(list.encode())
		if err != nil || len(again) != len(list) {
			t.Fatalf("%v becomes %v, %v", list, again, err)
		}
		for epoch := int32(-2); epoch < 10; epoch++ {
			if _, end, ok := list.end(epoch, 0, 1<<62); ok && end < 0 {
				t.Fatalf("epoch %d ends at %d", epoch, end)
			}
		}
	})
}

// TestTornEpochs: no part of a checkpoint is taken for a whole one, not even one whose last number only lost digits.
func TestTornEpochs(t *testing.T) {
	whole := epochList{{0, 0}, {1, 76}}.encode()
	for n := range whole {
		if list, err := decodeEpochs(whole[:n]); err == nil {
			t.Errorf("%q is taken for %v", whole[:n], list)
		}
	}
}
