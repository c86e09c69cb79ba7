package groups

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
	"gregor/compat/jars"
)

// commandLimit is how long one of Kafka's commands may take.
const commandLimit = 60 * time.Second

// shell runs Kafka's command line classes of one version in one JVM.
type shell struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	groups string // class of kafka-consumer-groups
}

func newShell(t *testing.T, version string) *shell {
	t.Helper()
	classPath, err := jars.Tools(version).Compile(t.Context(), filepath.Join(harness.CompatDir(t), "java", "Commands.java"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shell{t: t, cmd: jars.Java(ctx, classPath, "Commands"), groups: "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"}
	if version < "3" {
		s.groups = "kafka.admin.ConsumerGroupCommand"
	}
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

// run runs a class and returns the lines it printed, with single spaces, without empty ones and without those of loggers and
// stack traces.
func (s *shell) run(class string, args ...string) []string {
	s.t.Helper()
	if _, err := io.WriteString(s.stdin, strings.Join(append([]string{class}, args...), "\t")+"\n"); err != nil {
		s.t.Fatal(err)
	}
	timer := time.AfterFunc(commandLimit, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	var lines []string
	trace := regexp.MustCompile(`^(at |Caused by: |java\.util\.concurrent\.ExecutionException: )`)
	for {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s %q: %v after\n%s", class, args, err, strings.Join(lines, "\n"))
		}
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "=END=":
			return lines
		case line == "" || strings.HasPrefix(line, "SLF4J") || strings.HasPrefix(line, "log4j:") || strings.Contains(line, "StatusLogger") || trace.MatchString(line):
		default:
			lines = append(lines, line)
		}
	}
}
