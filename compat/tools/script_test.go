package tools

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// step is one command of a script with what it must print.
type step struct {
	above []string // comments and empty lines
	only  []string // conditions
	words []string
	grep  string
	text  string // as it stands in the script
	want  []want
}

// want is one line under conditions, or a comment among them.
type want struct {
	only []string
	text string
}

// readScript reads a script; tail are the comments at its end.
func readScript(t *testing.T, file string) (steps []step, tail []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var above []string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ "):
			s := step{above: above, text: line}
			s.only, line = conditions(line[2:])
			if line, s.grep, _ = strings.Cut(line, " | grep "); line == "" {
				t.Fatalf("%s: %q is no command", file, s.text)
			}
			s.words = split(line)
			steps, above = append(steps, s), nil
		case line == "" || strings.HasPrefix(line, "#"):
			above = append(above, line)
		case len(steps) == 0:
			t.Fatalf("%s: %q comes before any command", file, line)
		default:
			last := &steps[len(steps)-1]
			for _, comment := range above { // a comment on this line
				last.want = append(last.want, want{text: comment})
			}
			above = nil
			only, text := conditions(line)
			last.want = append(last.want, want{only, text})
		}
	}
	return steps, above
}

// conditions takes "[2.8 gregor] " off the beginning of a line.
func conditions(line string) (only []string, rest string) {
	inside, ok := strings.CutPrefix(line, "[")
	if !ok {
		return nil, line
	}
	inside, rest, ok = strings.Cut(inside, "] ")
	only = strings.Fields(inside)
	if !ok || slices.ContainsFunc(only, func(w string) bool {
		return w != "2.8" && w != "4.4" && w != "gregor" && !strings.HasPrefix(w, "kafka")
	}) {
		return nil, line
	}
	return only, rest
}

// holds says whether all conditions are among those that hold.
func holds(only, now []string) bool {
	return !slices.ContainsFunc(only, func(w string) bool { return !slices.Contains(now, w) })
}

// split splits a command at spaces; 'single quotes' keep them.
func split(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// wanted are the lines that must be printed where now holds.
func (s *step) wanted(now []string) (lines []string) {
	for _, w := range s.want {
		if holds(w.only, now) && w.text != "" && !strings.HasPrefix(w.text, "#") {
			lines = append(lines, w.text)
		}
	}
	return lines
}

// rewrite puts what was printed, by version of the tools, in place of what was wanted of all brokers.
func (s *step) rewrite(printed map[string][]string) {
	var kept []want
	for _, w := range s.want {
		if slices.Contains(w.only, "gregor") {
			kept = append(kept, w)
		}
	}
	s.want = nil
	older, newer := printed["2.8"], slices.Clone(printed["4.4"])
	for _, line := range older {
		w := want{text: line}
		if i := slices.Index(newer, line); i >= 0 {
			newer = slices.Delete(newer, i, i+1)
		} else if len(s.only) == 0 {
			w.only = []string{"2.8"}
		}
		s.want = append(s.want, w)
	}
	for _, line := range newer {
		w := want{text: line}
		if len(s.only) == 0 {
			w.only = []string{"4.4"}
		}
		s.want = append(s.want, w)
	}
	s.want = append(s.want, kept...)
}

// mark notes how this broker differs from what was wanted: lines that only Kafka prints and lines that only this broker prints.
func (s *step) mark(printed map[string][]string) {
	var gone, come = map[string][]string{}, map[string][]string{}
	for _, v := range versions() {
		if holds(s.only, []string{v.name}) {
			gone[v.name], come[v.name] = differ(s.wanted([]string{v.name, "gregor"}), printed[v.name])
		}
	}
	take := func(lines []string, line string) ([]string, bool) {
		i := slices.Index(lines, line)
		if i < 0 {
			return lines, false
		}
		return slices.Delete(lines, i, i+1), true
	}
	var all []want
	for _, w := range s.want {
		hit := map[string]bool{}
		for _, v := range versions() {
			if holds(w.only, []string{v.name, "gregor"}) {
				gone[v.name], hit[v.name] = take(gone[v.name], w.text)
			}
		}
		switch {
		case !hit["2.8"] && !hit["4.4"]:
			all = append(all, w)
		case slices.Contains(w.only, "gregor"): // it does not any more
		case hit["2.8"] && hit["4.4"] || len(s.only) > 0 || len(w.only) > 0:
			all = append(all, want{append(slices.Clone(w.only), "kafka"), w.text})
		case hit["2.8"]:
			all = append(all, want{[]string{"2.8", "kafka"}, w.text}, want{[]string{"4.4"}, w.text})
		default:
			all = append(all, want{[]string{"4.4", "kafka"}, w.text}, want{[]string{"2.8"}, w.text})
		}
	}
	for _, line := range slices.Clone(come["2.8"]) {
		var both bool
		if come["4.4"], both = take(come["4.4"], line); both || len(s.only) > 0 {
			all = append(all, want{[]string{"gregor"}, line})
		} else {
			all = append(all, want{[]string{"2.8", "gregor"}, line})
		}
	}
	for _, line := range come["4.4"] {
		only := []string{"gregor"}
		if len(s.only) == 0 {
			only = []string{"4.4", "gregor"}
		}
		all = append(all, want{only, line})
	}
	s.want = all
}

// scriptText is the script as a file.
func scriptText(steps []step, tail []string) string {
	var b strings.Builder
	for _, s := range steps {
		for _, line := range append(slices.Clone(s.above), s.text) {
			b.WriteString(line + "\n")
		}
		for _, w := range s.want {
			if len(w.only) > 0 {
				b.WriteString("[" + strings.Join(w.only, " ") + "] ")
			}
			b.WriteString(w.text + "\n")
		}
	}
	for _, line := range tail {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// differ returns what is only in one of two lists, as often as it is.
func differ(a, b []string) (missing, extra []string) {
	left := slices.Clone(b)
	for _, line := range a {
		if i := slices.Index(left, line); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			missing = append(missing, line)
		}
	}
	return missing, left
}
