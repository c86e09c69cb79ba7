package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	s := NewSamples(1000)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(1000) {
		s.Add(time.Duration(i + 1))
	}
	tests := []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.0001, 1}, {0.5, 500}, {0.99, 990}, {0.999, 999}, {1, 1000}}
	for _, tt := range tests {
		if got := s.Quantile(tt.q); got != tt.want {
			t.Errorf("Quantile(%v) = %d, want %d", tt.q, got, tt.want)
		}
	}
	s.Add(5000)
	if got := s.Quantile(1); got != 5000 {
		t.Errorf("after another Add: Quantile(1) = %d, want 5000", got)
	}
}

func TestQuantileOfFew(t *testing.T) {
	s := NewSamples(0)
	if got := s.Quantile(0.5); got != 0 {
		t.Errorf("no samples: %d, want 0", got)
	}
	s.Add(7)
	for _, q := range []float64{0, 0.5, 0.999, 1} {
		if got := s.Quantile(q); got != 7 {
			t.Errorf("one sample: Quantile(%v) = %d, want 7", q, got)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	s := NewSamples(2000)
	if n := testing.AllocsPerRun(1000, func() { s.Add(1) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func TestMedian(t *testing.T) {
	tests := []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}}
	for _, tt := range tests {
		before := slices.Clone(tt.in)
		if got := Median(tt.in); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.in, got, tt.want)
		}
		if !slices.Equal(before, tt.in) {
			t.Errorf("Median changed its argument %v to %v", before, tt.in)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v, want NaN", got)
	}
}
