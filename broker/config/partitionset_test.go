package config

import (
	"math/rand/v2"
	"testing"
)

func TestPartitionSet(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", " FALSE ": "false", "0-": "true", "3": "3", "0-3,7,9-": "0-3,7,9-", "9-, 0-3,4,2": "0-4,9-", "5,5,6": "5-6", "0-2147483647": "true",
	} {
		s, err := ParsePartitionSet(text)
		if err != nil || s.String() != want {
			t.Errorf("%q is %q, %v, want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "3-1", "1,,2", "0-99999999999", "1.5", "yes"} {
		if s, err := ParsePartitionSet(text); err == nil {
			t.Errorf("%q is taken as %s", text, s)
		}
	}
}

// TestPartitionSetOperations compares with sets of numbers.
func TestPartitionSetOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const most = 20
	for range 2000 {
		s, model := AllPartitions(), [most]bool{}
		for i := range model {
			model[i] = true
		}
		for range 6 {
			first := rng.Int32N(most)
			r := PartitionSet{[]partitionRange{{first, min(first+rng.Int32N(6), most-1)}}}
			open := rng.IntN(2) == 0
			for n := r.ranges[0].first; n <= r.ranges[0].last; n++ {
				model[n] = open
			}
			if open {
				s = s.With(r)
			} else {
				s = s.Without(r)
			}
		}
		again, err := ParsePartitionSet(s.String())
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range model {
			if s.Has(int32(n)) != want || again.Has(int32(n)) != want {
				t.Fatalf("%s (%s again): partition %d is not %v", s, again, n, want)
			}
		}
		if !s.Has(most + 5) {
			t.Fatalf("%s lacks the partitions to come", s)
		}
	}
}

func FuzzPartitionSet(f *testing.F) {
	for _, s := range []string{"true", "0-3,7,9-", "1,,2", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParsePartitionSet(text)
		if err != nil {
			return
		}
		if again, err := ParsePartitionSet(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%q is %q and then %q, %v", text, s, again, err)
		}
	})
}
