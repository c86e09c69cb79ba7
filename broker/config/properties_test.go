package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The golden file was written by java.util.Properties, with every character outside ASCII escaped as in JSON.
func TestParsePropertiesAsJava(t *testing.T) {
	f, err := os.Open("testdata/java.properties")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ParseProperties(f)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/java.properties.golden")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		var pair [2]string
		if err := json.Unmarshal([]byte("["+strings.Replace(strings.TrimSpace(line), "\t", ",", 1)+"]"), &pair); err != nil {
			t.Fatal(err)
		}
		want[pair[0]] = pair[1]
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got.Values[k]; !ok || v != want[k] {
			t.Errorf("%q = %q, %v; Java reads %q", k, v, ok, want[k])
		}
	}
	if len(got.Values) != len(want) {
		t.Errorf("%d keys, Java reads %d: %q", len(got.Values), len(want), got.Values)
	}
	if !slices.Equal(got.Repeated, []string{"dup"}) {
		t.Errorf("repeated keys %q, want dup", got.Repeated)
	}
	if got.Lines["long"] != 11 || got.Lines["next"] != 15 || got.Lines["dup"] != 19 {
		t.Errorf("lines %v", got.Lines)
	}
}

func TestParsePropertiesErrors(t *testing.T) {
	p, err := ParseProperties(strings.NewReader("a=1\nb=\\u12\nc=3\nd\\uzzzz=4\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2: value of b:") || !strings.Contains(err.Error(), "line 4:") {
		t.Errorf("error %v does not name lines 2 and 4", err)
	}
	if p.Values["a"] != "1" || p.Values["c"] != "3" {
		t.Errorf("good lines were lost: %v", p.Values)
	}
	if _, err := ParseProperties(strings.NewReader(strings.Repeat("#", MaxPropertiesSize+1))); err == nil {
		t.Error("a file above the limit was read")
	}
	if p, err := ParseProperties(strings.NewReader("a=caf\xe9")); err != nil || p.Values["a"] != "café" {
		t.Errorf("ISO 8859-1: %q, %v", p.Values["a"], err)
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no.properties")
	if _, err := ReadFile(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v does not name the file", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.properties")
	if err := os.WriteFile(bad, []byte("a=\\u1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(bad); err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("error %v does not name file and line", err)
	}
}

func FuzzParseProperties(f *testing.F) {
	seed, err := os.ReadFile("testdata/java.properties")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed))
	f.Add("a=b\nc:d\\\n e\n")
	f.Add("\\u0041=\\uD83D\\uDE00\\uD83D\n=\\")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProperties(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(p.Values) != len(p.Lines) {
			t.Fatalf("%d values, %d lines", len(p.Values), len(p.Lines))
		}
		count := strings.Count(normalizeNewlines(text), "\n") + 1
		for k, line := range p.Lines {
			if line < 1 || line > count {
				t.Fatalf("%q is on line %d of %d", k, line, count)
			}
		}
		// What is read, written with every character escaped, reads the same.
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(p.Values)) {
			b.WriteString(escape(k) + "=" + escape(p.Values[k]) + "\n")
		}
		again, err := ParseProperties(strings.NewReader(b.String()))
		if b.Len() <= MaxPropertiesSize && (err != nil || !maps.Equal(again.Values, p.Values)) {
			t.Fatalf("%q became %q, %v", p.Values, again.Values, err)
		}
	})
}

func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\f':
			b.WriteString(`\f`)
		case ' ', '=', ':', '#', '!', '\\':
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
