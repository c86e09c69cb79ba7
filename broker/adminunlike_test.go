package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
)

// unlike is one place in two trees that is not the same.
type unlike struct{ path, got, want string }

// kinds is words for two texts, nothing for a text that is empty in one and null in the other, and else values, with more for what Kafka does not have.
func (u *unlike) kinds() []string {
	switch text := regexp.MustCompile(`^".+"$`); {
	case text.MatchString(u.got) && text.MatchString(u.want):
		return []string{"words"}
	case u.got+u.want == `null""` || u.got+u.want == `""null`:
		return []string{"nothing"}
	case u.want == "null":
		return []string{"values", "more"}
	}
	return []string{"values"}
}

// unequal lists the places where trees differ.
func unequal(path string, got, want any) (out []unlike) {
	if g, ok := got.(map[string]any); ok {
		if w, ok := want.(map[string]any); ok {
			for _, k := range keysOf(g, w) {
				out = append(out, unequal(strings.TrimPrefix(path+"."+k, "."), g[k], w[k])...)
			}
			return out
		}
	}
	if g, ok := got.([]any); ok {
		if w, ok := want.([]any); ok && labelled(g) && labelled(w) {
			byLabel, ofKafka := labels(g), labels(w)
			for _, k := range keysOf(byLabel, ofKafka) {
				out = append(out, unequal(path+"["+k+"]", byLabel[k], ofKafka[k])...)
			}
			return out
		}
	}
	if g, ok := got.([]any); ok {
		if w, ok := want.([]any); ok && len(g) == len(w) {
			for i := range g {
				out = append(out, unequal(fmt.Sprintf("%s[%d]", path, i), g[i], w[i])...)
			}
			return out
		}
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return []unlike{{path, shown(got), shown(want)}}
}

func shown(tree any) string {
	raw, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// labelled reports if a list has things with names of their own.
func labelled(list []any) bool { return len(labels(list)) == len(list) }

func labels(list []any) map[string]any {
	out := map[string]any{}
	for _, e := range list {
		if l := elementName(e); l != "" {
			out[l] = e
		}
	}
	return out
}

func keysOf(maps ...map[string]any) (keys []string) {
	seen := map[string]bool{}
	for _, m := range maps {
		for k := range m {
			if !seen[k] {
				keys = append(keys, k)
			}
			seen[k] = true
		}
	}
	sort.Strings(keys)
	return keys
}

// difference is one line of testdata/admin/differences: version, script, step, place and kind, in which * stands for anything, and the reason.
type difference struct {
	line  int
	text  string
	parts [5]*regexp.Regexp
	used  bool
}

func readDifferences(t *testing.T) (out []*difference) {
	t.Helper()
	text, err := os.ReadFile(adminFolder + "/differences")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 6 || strings.TrimSpace(fields[5]) == "" {
			t.Fatalf("differences: line %d: %q is not version | script | step | place | kind | reason", i+1, line)
		}
		d := &difference{line: i + 1, text: line}
		for j := range d.parts {
			glob := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(fields[j])), `\*`, ".*")
			d.parts[j] = regexp.MustCompile("^(?:" + glob + ")$")
		}
		out = append(out, d)
	}
	return out
}

// permitted reports if a place may differ.
func permitted(allowed []*difference, place [4]string, kinds []string) bool {
	for _, d := range allowed {
		match := slices.ContainsFunc(kinds, d.parts[4].MatchString)
		for j := range place {
			match = match && d.parts[j].MatchString(place[j])
		}
		if match {
			d.used = true
			return true
		}
	}
	return false
}
