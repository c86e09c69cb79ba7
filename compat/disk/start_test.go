package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
)

// refuseLimit is how long a start may take to notice that it cannot work.
const refuseLimit = time.Minute

// fix is what a message says to do, in one of many words.
const fix = `\b(name|choose|use|pick|set|move|make|remount|mount|chown|chmod|stop|give|run|must be writable|let)\b`

// refused demands an exit code other than 0 and a message that holds all of want, each a regular expression.
func refused(t *testing.T, name string, cfg harness.Config, want ...string) {
	t.Helper()
	code, out := harness.Run(t, cfg, refuseLimit)
	checkRefusal(t, name, code, out, want...)
}

func checkRefusal(t *testing.T, name string, code int, out string, want ...string) {
	t.Helper()
	if code == 0 {
		t.Errorf("%s: exit code 0", name)
	}
	if strings.Contains(out, "panic:") || strings.Contains(out, "goroutine ") {
		t.Errorf("%s: a stack trace is no message:\n%.2000s", name, out)
	}
	for _, w := range want {
		if !regexp.MustCompile(`(?i)` + w).MatchString(out) {
			t.Errorf("%s: the message should match %q:\n%.1500s", name, w, out)
		}
	}
	t.Logf("%s: exit code %d: %.400s", name, code, strings.TrimSpace(out))
}

func foreign(t *testing.T) bool {
	t.Helper()
	return harness.Foreign(t, "messages of refused starts")
}

// TestPaths: data directories that cannot be used.
func TestPaths(t *testing.T) {
	if foreign(t) {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a-file")
	if err := os.WriteFile(file, []byte("not a directory"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "a file where the directory should be", harness.Config{Dir: file}, regexp.QuoteMeta(file), "is a file|not a directory", fix)
	below := filepath.Join(file, "data")
	refused(t, "a directory below a file", harness.Config{Dir: below}, regexp.QuoteMeta(file), "is a file|not a directory", fix)
	t.Run("read-only file system", func(t *testing.T) {
		ro := mountTmpfs(t, "ro")
		refused(t, "read-only file system", harness.Config{Dir: filepath.Join(ro, "data")}, regexp.QuoteMeta(ro), "read-only", fix)
	})
	t.Run("permission denied", permissionDenied)
}

// permissionDenied runs the broker as another user, since root may write everywhere.
func permissionDenied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skipf("needs setpriv of util-linux to become another user: %v", err)
	}
	base, err := os.MkdirTemp("", "gregor-compat")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	bin := filepath.Join(base, "gregor")
	text, err := os.ReadFile(harness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	closed, owned := filepath.Join(base, "closed"), filepath.Join(base, "owned")
	for _, err := range []error{os.Chmod(base, 0o755), os.WriteFile(bin, text, 0o755), os.Mkdir(closed, 0o755), os.Mkdir(owned, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, dir := range map[string]string{"a directory that cannot be made": filepath.Join(closed, "data"), "another user's directory": owned} {
		code, out := harness.RunArgs(t, setpriv, []string{"--reuid=65534", "--regid=65534", "--clear-groups", bin, "serve", "--data-dir", dir, "--listen", harness.FreeAddr(t)}, refuseLimit)
		checkRefusal(t, name, code, out, regexp.QuoteMeta(dir), "permission denied", fix)
	}
}

// TestTaken: a directory or a port that another broker has.
func TestTaken(t *testing.T) {
	if foreign(t) {
		return
	}
	b := harness.Start(t, harness.Config{})
	refused(t, "second process on the directory", harness.Config{Dir: b.Dir()}, regexp.QuoteMeta(b.Dir()), "in use by another process|already", fix)
	refused(t, "port in use", harness.Config{Dir: t.TempDir(), Listen: b.Addr()}, regexp.QuoteMeta(b.Addr()), "in use", fix)
	if !b.Alive() {
		t.Error("the first broker died of it")
	}
	b.Kill(t)
	b.Up(t) // a killed process leaves no lock behind
}

// TestSettings: wrong values stop the start, unknown keys are named and do not.
func TestSettings(t *testing.T) {
	if foreign(t) {
		return
	}
	for _, c := range []struct{ kv, allowed string }{
		{"num.partitions=banana", "int|number"}, {"num.partitions=0", "1"}, {"log.segment.bytes=-5", "1048576|14|at least|greater"},
		{"compression.type=rar", "gzip.*zstd|zstd.*gzip|producer"},
	} {
		key, value, _ := strings.Cut(c.kv, "=")
		refused(t, c.kv, harness.Config{Dir: t.TempDir(), Set: []string{c.kv}}, regexp.QuoteMeta(key), regexp.QuoteMeta(value), c.allowed)
	}
	refused(t, "--set without =", harness.Config{Dir: t.TempDir(), Set: []string{"novalue"}}, "novalue", "key=value|=")
	refused(t, "--listen without a port", harness.Config{Dir: t.TempDir(), Listen: "nonsense"}, "nonsense", "port")
	refused(t, "--listen with a port too large", harness.Config{Dir: t.TempDir(), Listen: "127.0.0.1:99999"}, "99999")
	b := harness.Start(t, harness.Config{Set: []string{"no.such.key=1"}})
	if !strings.Contains(b.Log(), "no.such.key") {
		t.Errorf("the log does not name the unknown key no.such.key:\n%.2000s", b.Log())
	}
}

// TestPortZero: the ready line names the port that the kernel chose.
func TestPortZero(t *testing.T) {
	b := harness.Start(t, harness.Config{Listen: "127.0.0.1:0"})
	if strings.HasSuffix(b.Addr(), ":0") {
		t.Fatalf("ready line names %s", b.Addr())
	}
	b.Create(t, 1, nil, harness.Topic("zero")) // and metadata leads back to it
}

// TestFewOpenFiles: a limit of open files that is too low is named, at the start.
func TestFewOpenFiles(t *testing.T) {
	if foreign(t) {
		return
	}
	script := filepath.Join(t.TempDir(), "few")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n 16\nexec '%s' \"$@\"\n", harness.Binary(t))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"30", script, "serve", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", harness.FreeAddr(t)}
	code, out := harness.RunArgs(t, "timeout", args, refuseLimit) // it may refuse or warn and go on; timeout ends it then
	checkRefusal(t, "16 open files", code, out, "ulimit|LimitNOFILE", "limit=16|limit of 16|16 open files")
}
