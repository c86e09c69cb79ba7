package jars

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
)

// commandLimit is how long one of Kafka's commands may take.
const commandLimit = 60 * time.Second

// Shell runs Kafka's command line classes of one version, one after the other, in one JVM that ends with the test.
type Shell struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader

	// Causes makes Run keep the line that says why a command failed, which comes with a stack trace.
	Causes bool
}

// NewShell starts the JVM.
func NewShell(t *testing.T, version string) *Shell {
	t.Helper()
	classPath, err := Tools(version).Compile(t.Context(), filepath.Join(harness.CompatDir(t), "java", "Commands.java"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Shell{t: t, cmd: Java(ctx, classPath, "Commands")}
	s.stdin, err = s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(out)
	t.Cleanup(func() {
		s.stdin.Close()
		cancel()
		_ = s.cmd.Wait()
	})
	return s
}

// Run runs a class and returns the lines it printed, with single spaces, without empty ones and without those of loggers and
// stack traces.
func (s *Shell) Run(class string, args ...string) []string {
	s.t.Helper()
	if _, err := io.WriteString(s.stdin, strings.Join(append([]string{class}, args...), "\t")+"\n"); err != nil {
		s.t.Fatal(err)
	}
	timer := time.AfterFunc(commandLimit, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	var lines []string
	noise := regexp.MustCompile(`^(at |Caused by: |SLF4J|log4j:|the end$)|StatusLogger|Commands\$Ended|^\.\.\. \d+ more`)
	const cause = "java.util.concurrent.ExecutionException: "
	for {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s %q: %v after\n%s", class, args, err, strings.Join(lines, "\n"))
		}
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "=END=":
			return lines
		case line == "" || noise.MatchString(line) || !s.Causes && strings.HasPrefix(line, cause):
		default:
			lines = append(lines, line)
		}
	}
}
