package txn

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"
)

// client is one kind of copier.
type client struct {
	name    string
	command func(ctx context.Context, j job) *exec.Cmd
}

// onlyVariable names the clients to run, with commas between; empty: all.
const onlyVariable = "GREGOR_COMPAT_TXN_CLIENTS"

// clients are all kinds. Java's first, for they start slowest.
func clients(t *testing.T) []client {
	t.Helper()
	all := everyClient(t)
	if only := os.Getenv(onlyVariable); only != "" {
		all = slices.DeleteFunc(all, func(c client) bool { return !slices.Contains(strings.Split(only, ","), c.name) })
	}
	return all
}

func everyClient(t *testing.T) []client {
	t.Helper()
	var all []client
	for _, version := range jars.TxnVersions() {
		all = append(all, javaClient(t, version))
	}
	python, err := deps.Confluent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	node, modules, err := deps.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(all, goClient("franz-go"), goClient("sarama"), scriptClient("librdkafka", python, "copier_confluent.py"),
		scriptClient("kafkajs", node, "copier_kafkajs.js", "NODE_PATH="+modules))
}

func javaClient(t *testing.T, version string) client {
	t.Helper()
	classPath, err := jars.Clients(version).Compile(t.Context(), filepath.Join(harness.CompatDir(t), "java", "TxnCopier.java"))
	if err != nil {
		t.Fatal(err)
	}
	return client{"java-" + version, func(ctx context.Context, j job) *exec.Cmd { return jars.Java(ctx, classPath, "TxnCopier", j.args()...) }}
}

func goClient(name string) client {
	return client{name, func(ctx context.Context, j job) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], j.args()...)
		cmd.Env = append(os.Environ(), copierVariable+"="+name)
		return cmd
	}}
}

func scriptClient(name, interpreter, script string, env ...string) client {
	return client{name, func(ctx context.Context, j job) *exec.Cmd {
		cmd := exec.CommandContext(ctx, interpreter, append([]string{filepath.Join("testdata", script)}, j.args()...)...)
		cmd.Env = append(os.Environ(), env...)
		return cmd
	}}
}

// copier is one running copier.
type copier struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // to be read when done is closed
	done   chan struct{}
	ready  chan struct{} // closed when its transactional id is its own

	mu        sync.Mutex // guards what follows
	committed int
	aborted   int
	failure   string
}

func start(t *testing.T, c client, j job) *copier {
	t.Helper()
	p := &copier{cmd: c.command(context.Background(), j), done: make(chan struct{}), ready: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.read(stdout)
		_ = p.cmd.Wait() // how it ended is seen by who waits
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *copier) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		switch word {
		case "ready":
			close(p.ready)
		case "committed":
			p.committed++
		case "aborted":
			p.aborted++
		case "failed":
			p.failure = rest
		}
		p.mu.Unlock()
	}
}

func (p *copier) counts() (committed, aborted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed, p.aborted
}

// kill ends the process by SIGKILL, stopped or not.
func (p *copier) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// pause stops the process until resume.
func (p *copier) pause(t *testing.T)  { p.signal(t, syscall.SIGSTOP) }
func (p *copier) resume(t *testing.T) { p.signal(t, syscall.SIGCONT) }

func (p *copier) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// ended says how it ended, if it did within limit.
func (p *copier) ended(limit time.Duration) (failure string, ok bool) {
	select {
	case <-p.done:
	case <-time.After(limit):
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	failure = p.failure
	if failure == "" {
		text := p.stderr.String()
		failure = p.cmd.ProcessState.String() + " " + text[max(0, len(text)-500):]
	}
	return failure, true
}
