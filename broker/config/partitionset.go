package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// PartitionSet is a set of partitions of one topic, as gregor.write.enabled and gregor.read.enabled name them: "true" is all, "false" none, and else
// a list of numbers and ranges such as 0-3,7,9- (from 9 on, so that partitions that are added later are in it).
type PartitionSet struct{ ranges []partitionRange } // ascending, apart, both ends inside

type partitionRange struct{ first, last int32 }

// AllPartitions returns the set of all.
func AllPartitions() PartitionSet { return PartitionSet{[]partitionRange{{0, math.MaxInt32}}} }

// ParsePartitionSet reads a set.
func ParsePartitionSet(text string) (PartitionSet, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return AllPartitions(), nil
	case "false":
		return PartitionSet{}, nil
	}
	var s PartitionSet
	for item := range strings.SplitSeq(text, ",") {
		r, err := parseRange(strings.TrimSpace(item))
		if err != nil {
			return s, err
		}
		s = s.With(PartitionSet{[]partitionRange{r}})
	}
	return s, nil
}

func parseRange(item string) (partitionRange, error) {
	from, to, isRange := strings.Cut(item, "-")
	first, err := strconv.ParseInt(from, 10, 32)
	last := first
	switch {
	case err != nil || first < 0:
	case isRange && to == "":
		last = math.MaxInt32
	case isRange:
		last, err = strconv.ParseInt(to, 10, 32)
	}
	if err != nil || first < 0 || last < first {
		return partitionRange{}, fmt.Errorf("%q is not a partition or a range of partitions such as 3, 0-3 or 4-", item)
	}
	return partitionRange{int32(first), int32(last)}, nil
}

// Has says whether partition n is in the set.
func (s PartitionSet) Has(n int32) bool {
	for _, r := range s.ranges {
		if n >= r.first && n <= r.last {
			return true
		}
	}
	return false
}

// With returns the partitions that are in either set.
func (s PartitionSet) With(more PartitionSet) PartitionSet {
	all := slices.Concat(s.ranges, more.ranges)
	slices.SortFunc(all, func(a, b partitionRange) int { return int(a.first) - int(b.first) })
	var out []partitionRange
	for _, r := range all {
		if n := len(out); n > 0 && int64(r.first) <= int64(out[n-1].last)+1 {
			out[n-1].last = max(out[n-1].last, r.last)
			continue
		}
		out = append(out, r)
	}
	return PartitionSet{out}
}

// Without returns the partitions of s that are not in less.
func (s PartitionSet) Without(less PartitionSet) PartitionSet {
	left := slices.Clone(s.ranges)
	for _, cut := range less.ranges {
		var next []partitionRange
		for _, r := range left {
			if cut.last < r.first || cut.first > r.last {
				next = append(next, r)
				continue
			}
			if r.first < cut.first {
				next = append(next, partitionRange{r.first, cut.first - 1})
			}
			if cut.last < r.last {
				next = append(next, partitionRange{cut.last + 1, r.last})
			}
		}
		left = next
	}
	return PartitionSet{left}
}

// String is what ParsePartitionSet reads.
func (s PartitionSet) String() string {
	if len(s.ranges) == 0 {
		return "false"
	}
	if s.ranges[0] == AllPartitions().ranges[0] {
		return "true"
	}
	var items []string
	for _, r := range s.ranges {
		item := strconv.Itoa(int(r.first))
		switch {
		case r.last == math.MaxInt32:
			item += "-"
		case r.last > r.first:
			item += "-" + strconv.Itoa(int(r.last))
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

// partitions is the rule for a key that has a PartitionSet.
type partitions struct{}

func (partitions) problem(v any) (string, string) {
	if _, err := ParsePartitionSet(format(v)); err != nil {
		return "", err.Error()
	}
	return "", ""
}

func (partitions) allowed() string { return "true, false, or partitions such as 0-3,7,9-" }
