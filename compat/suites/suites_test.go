package suites

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
)

// suiteLimit is how long one suite may take.
const suiteLimit = 8 * time.Minute

// suite is one package of tests from a module.
type suite struct {
	name    string
	part    string // name of a run of some of the tests; empty: of all
	only    string // pattern of the tests of part
	module  string // with its version
	pkg     string
	listen  string   // where its tests look for the broker; empty: anywhere
	set     []string // the broker's settings
	env     []string // {addr} is the broker
	omitted map[string]string
	skipped map[string]string
}

// TestSuites runs all suites side by side: they mostly wait.
func TestSuites(t *testing.T) {
	for _, s := range all() {
		t.Run(cmp.Or(s.part, s.name), func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

func (s *suite) run(t *testing.T) {
	if s.listen != "" && taken(s.listen) {
		t.Skipf("its tests look for a broker at %s only, and something else is there", s.listen)
	}
	bin, dir := s.build(t)
	b := harness.Start(t, harness.Config{Listen: s.listen, Set: s.set})
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	args := []string{"-test.v", "-test.run=" + cmp.Or(s.only, "^Test"), "-test.timeout=" + suiteLimit.String()}
	if len(s.omitted) > 0 {
		args = append(args, "-test.skip="+s.pattern())
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	for _, kv := range s.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(kv, "{addr}", b.Addr()))
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	s.judge(t, out, err)
	t.Logf("took %v", time.Since(start).Round(time.Second))
}

func taken(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return true
	}
	l.Close()
	return false
}

// pattern matches the tests that are left out.
func (s *suite) pattern() string {
	var names []string
	for name := range s.omitted {
		parts := strings.Split(name, "/")
		for i, part := range parts {
			parts[i] = "^" + part + "$"
		}
		names = append(names, strings.Join(parts, "/"))
	}
	slices.Sort(names)
	return strings.Join(names, "|")
}

// build compiles the tests once for each version and returns the program and the folder that it runs in.
func (s *suite) build(t *testing.T) (bin, dir string) {
	t.Helper()
	err := harness.Once("suite-"+s.name, func(cache string) error {
		work := filepath.Join(cache, "suites", strings.NewReplacer("/", "-", "@", "-").Replace(s.module))
		bin = filepath.Join(work, s.name+".test")
		commands := [][]string{{"mod", "init", "suite"}, {"get", "-t", s.module}, {"test", "-mod=mod", "-c", "-o", bin, s.pkg}}
		if err := os.MkdirAll(work, 0o755); err != nil {
			return err
		}
		if _, err := os.Stat(bin); err == nil {
			commands = nil
		} else if err := os.RemoveAll(filepath.Join(work, "go.mod")); err != nil {
			return err
		}
		for _, args := range append(commands, []string{"list", "-mod=mod", "-f", "{{.Dir}}", s.pkg}) {
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = work
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
			}
			dir = strings.TrimSpace(stdout.String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bin, dir
}

// judge reads what the suite printed.
func (s *suite) judge(t *testing.T, out []byte, err error) {
	t.Helper()
	passed, skips := 0, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^( *)--- (PASS|FAIL|SKIP): (\S+)`).FindAllSubmatch(out, -1) {
		name, result := string(m[3]), string(m[2])
		switch {
		case result == "FAIL":
			t.Errorf("%s failed", name)
		case result == "PASS" && len(m[1]) == 0:
			passed++
		case result == "SKIP":
			name = regexp.MustCompile(`/[0-9a-f]{8}-[0-9a-f-]{27}$`).ReplaceAllString(name, "") // a random name
			if skips[name] = true; s.skipped[name] == "" {
				t.Errorf("%s skipped itself, and no reason is written down", name)
			}
		}
	}
	if err != nil {
		t.Errorf("%v; output ends\n%s", err, out[max(0, len(out)-6000):])
	}
	for _, name := range sorted(s.skipped) {
		if !skips[name] {
			t.Errorf("%s does not skip itself any more: its reason can go", name)
			continue
		}
		t.Logf("skips itself: %s: %s", name, s.skipped[name])
	}
	for _, name := range sorted(s.omitted) {
		t.Logf("left out: %s: %s", name, s.omitted[name])
	}
	t.Logf("%d tests passed, %d skipped themselves, %d left out", passed, len(skips), len(s.omitted))
}

func sorted(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
