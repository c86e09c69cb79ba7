package harness

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// process is one life of a broker. done closes when it has ended and was waited for.
type process struct {
	cmd  *exec.Cmd
	line chan string // gets host:port from the ready line, once
	done chan struct{}
}

func (c Config) args() []string {
	args := []string{"serve", "--data-dir", c.Dir, "--listen", c.Listen}
	for _, kv := range c.Set {
		args = append(args, "--set", kv)
	}
	return args
}

func launch(bin string, cfg Config, log *os.File) (*process, error) {
	cmd := exec.Command(bin, cfg.args()...)
	cmd.Stderr = log
	cmd.Env = environment()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	p := &process{cmd: cmd, line: make(chan string, 1), done: make(chan struct{})}
	go func() {
		p.watch(stdout)
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// environment is the test's without what steers the tests: the broker takes GREGOR_ variables for settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GREGOR_COMPAT_") || strings.HasPrefix(kv, "GREGOR_RACE=")
	})
}

// watch looks for the ready line, then reads standard output to its end so that the broker never blocks on it.
func (p *process) watch(stdout io.Reader) {
	listening := regexp.MustCompile(`listening on (\S+:\d+)`)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case p.line <- m[1]:
			default:
			}
		}
	}
}

func (p *process) ready(limit time.Duration) (string, error) {
	select {
	case addr := <-p.line:
		return addr, nil
	case <-p.done:
		return "", fmt.Errorf("the broker ended before it listened: %v", p.cmd.ProcessState)
	case <-time.After(limit):
		return "", fmt.Errorf("no line with `listening on HOST:PORT` on standard output within %v", limit)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
