package batch

import (
	"math"
	"testing"
)

func TestVarints(t *testing.T) {
	values := []int64{0, -1, 1, -64, 63, 64, -65, 8191, 8192, -8192, -8193, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64}
	for shift := range 63 {
		values = append(values, 1<<shift, -1<<shift)
	}
	for _, v := range values {
		b := appendVarint(nil, v)
		for _, tail := range [][]byte{nil, {0}, {0xff, 0xff}} { // what follows must not matter
			in := append(append([]byte{9}, b...), tail...)
			if got, i := varlong(in, 1); got != v || i != 1+len(b) {
				t.Errorf("varlong of %d: %d, index %d", v, got, i)
			}
			got, i := varint(in, 1)
			fits := v >= math.MinInt32 && v <= math.MaxInt32
			if fits && (got != v || i != 1+len(b)) || !fits && i != -1 {
				t.Errorf("varint of %d: %d, index %d", v, got, i)
			}
		}
		for cut := range b {
			if _, i := varlong(b[:cut], 0); i != -1 {
				t.Errorf("%d cut to %d bytes: index %d", v, cut, i)
			}
		}
	}
	if _, i := varlong([]byte{1, 1}, -1); i != -1 {
		t.Error("an index of -1 must stay")
	}
	if _, i := varint([]byte{1, 1}, -1); i != -1 {
		t.Error("an index of -1 must stay")
	}
	ff := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}
	if _, i := varlong(ff, 0); i != -1 {
		t.Error("more than 64 bits")
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	for _, codec := range codecs {
		b := build(t, Options{Codec: codec}, samples(50, 500))
		var c Checker
		r := anyTime()
		n := testing.AllocsPerRun(50, func() {
			if _, err := c.Check(b, r); err != nil {
				t.Fatal(err)
			}
		})
		// zstd's tables come from a pool that the race detector empties at random.
		if limit := 0.0; n > limit && (codec != Zstd || n > 3) {
			t.Errorf("codec %d: %v allocations per check", codec, n)
		}
	}
}
