package logdir

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	id := strings.Repeat("0f", 16)
	cases := []struct {
		name string
		want TopicPartition
		kind dirKind
	}{
		{"a-0", TopicPartition{"a", 0}, live},
		{"a.b_c-d-12", TopicPartition{"a.b_c-d", 12}, live},
		{"a--1", TopicPartition{"a-", 1}, live},
		{"__consumer_offsets-49", TopicPartition{"__consumer_offsets", 49}, live},
		{"a-2147483647", TopicPartition{"a", 2147483647}, live},
		{"a-2147483648", TopicPartition{}, foreign},
		{"a-00", TopicPartition{}, foreign},
		{"a-+1", TopicPartition{}, foreign},
		{"a-", TopicPartition{}, foreign},
		{"-1", TopicPartition{}, foreign},
		{"a", TopicPartition{}, foreign},
		{"", TopicPartition{}, foreign},
		{"a b-1", TopicPartition{}, foreign},
		{"lost+found", TopicPartition{}, foreign},
		{"a-0." + id + "-delete", TopicPartition{"a", 0}, deleted},
		{"a-b-7." + id + "-future", TopicPartition{"a-b", 7}, future},
		{"a-0." + id + "-stray", TopicPartition{"a", 0}, stray},
		{"a-0." + id[1:] + "-delete", TopicPartition{}, foreign},
		{"a-0." + id[2:] + "xx-delete", TopicPartition{}, foreign},
		{"a-0-delete", TopicPartition{}, foreign},
		{id + "-delete", TopicPartition{}, foreign},
		{"." + id + "-delete", TopicPartition{}, foreign},
	}
	for _, c := range cases {
		got, kind := parseName(c.name)
		if got != c.want || kind != c.kind {
			t.Errorf("%q: %v, kind %d; want %v, kind %d", c.name, got, kind, c.want, c.kind)
		}
	}
}

func TestDeletedName(t *testing.T) {
	for _, tp := range []TopicPartition{{"a", 0}, {strings.Repeat("x", 249), 12345}, {"a-b.c", 7}} {
		name := deletedName(tp)
		got, kind := parseName(name)
		if kind != deleted || got.Partition != tp.Partition || !strings.HasPrefix(tp.Topic, got.Topic) || len(name) > maxName {
			t.Errorf("%s: %q is read as %v, kind %d", tp, name, got, kind)
		}
		if name == deletedName(tp) {
			t.Errorf("%s: the same name twice", tp)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a-0", "a-00", "-", "a-0.0123456789abcdef0123456789abcdef-delete", "é-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		tp, kind := parseName(name)
		if kind == live && (tp.String() != name || !tp.valid()) {
			t.Errorf("%q is read as %v", name, tp)
		}
		if kind == foreign && tp != (TopicPartition{}) {
			t.Errorf("%q is foreign and %v", name, tp)
		}
	})
}
