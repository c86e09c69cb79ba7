package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs one to its end.
func command(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, streams{out: &o, err: &e})
	return code, o.String(), e.String()
}

func TestImportAndExportSayWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	foreign := t.TempDir()
	if err := os.MkdirAll(filepath.Join(foreign, "notes-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"import"}, "--from DIR"},
		{[]string{"import", "--from", filepath.Join(empty, "none")}, "is not a directory"},
		{[]string{"import", "--from", empty}, "not imported, nothing was changed"},
		{[]string{"import", "--from", foreign}, "not imported, nothing was changed"},
		{[]string{"import", "--from", empty, "--configs", filepath.Join(empty, "none")}, "no such file"},
		{[]string{"export-kraft"}, "--data-dir DIR"},
		{[]string{"export-kraft", "--data-dir", empty}, "has no metadata of gregor"},
		{[]string{"export-zookeeper", "--data-dir", empty}, "has no metadata of gregor"},
	} {
		if code, _, errs := command(c.args...); code != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit code %d, %q", c.args, code, errs)
		}
	}
	for _, dir := range []string{empty, filepath.Join(foreign, "notes-1")} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
	if _, out, _ := command("import", "--from", empty); !strings.Contains(out, "in the way:\n  - there is no partition in ") {
		t.Errorf("%s", out)
	}
}
