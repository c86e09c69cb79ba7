package stats

import (
	"math"
	"slices"
	"time"
)

// Samples keeps every latency of one run, so that its quantiles are exact. Add allocates nothing until the capacity
// given to NewSamples is used up.
type Samples struct {
	ns     []int64
	sorted bool
}

// NewSamples makes room for n samples.
func NewSamples(n int) *Samples { return &Samples{ns: make([]int64, 0, n)} }

// Add records one latency.
func (s *Samples) Add(d time.Duration) {
	s.ns = append(s.ns, int64(d))
	s.sorted = false
}

// Len is the number of samples.
func (s *Samples) Len() int { return len(s.ns) }

// Quantile is the smallest sample that at least the share q of all samples do not exceed (nearest rank); q is between
// 0 and 1. It is 0 when there are no samples.
func (s *Samples) Quantile(q float64) time.Duration {
	if len(s.ns) == 0 {
		return 0
	}
	if !s.sorted {
		slices.Sort(s.ns)
		s.sorted = true
	}
	rank := int(math.Ceil(q*float64(len(s.ns)))) - 1
	return time.Duration(s.ns[min(max(rank, 0), len(s.ns)-1)])
}

// Median is the middle value, or the mean of the two middle ones, of values. It is NaN when there are none. The slice
// is left as it is.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}
