package zk

import (
	"slices"
	"testing"
)

// TestHosts: every server in turn, by its name, and a rest after each round.
func TestHosts(t *testing.T) {
	var h hosts
	if err := h.Init([]string{"a:1", "b:2", "c:3"}); err != nil || h.Len() != 3 {
		t.Fatal(err, h.Len())
	}
	round := func() (servers []string, rests int) {
		for range 3 {
			s, rest := h.Next()
			if servers = append(servers, s); rest {
				rests++
			}
		}
		return servers, rests
	}
	first, rests := round()
	if got := slices.Sorted(slices.Values(first)); !slices.Equal(got, []string{"a:1", "b:2", "c:3"}) || rests != 0 {
		t.Errorf("%v with %d rests", got, rests)
	}
	for range 2 {
		if again, rests := round(); !slices.Equal(again, first) || rests != 1 {
			t.Errorf("%v after %v, %d rests", again, first, rests)
		}
	}
	h.Next()
	h.Connected()
	if s, rest := h.Next(); s != first[1] || rest {
		t.Errorf("%s after a connection, %v", s, rest)
	}
}
