package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long a broker may take. Generous: they catch a hang, they measure nothing.
const (
	startLimit = 60 * time.Second
	stopLimit  = 30 * time.Second
)

// Config says how to start one broker. The zero value is a broker on a free port of 127.0.0.1 with a fresh directory.
type Config struct {
	Dir    string   // data directory; empty: a new temporary one
	Listen string   // host:port; empty: a free port of 127.0.0.1 below the ephemeral range
	Set    []string // key=value, each handed over by --set
}

// Broker is one gregor that outlives its processes: it keeps directory, address and log over Kill and Up.
type Broker struct {
	bin      string
	cfg      Config
	logPath  string
	external bool
	scratch  bool // what is made in it goes away with it, nothing needs to be deleted

	mu   sync.Mutex // guards addr and proc
	addr string
	proc *process
}

// Shared returns the broker that GREGOR_COMPAT_BOOTSTRAP names, or starts one with cfg. Tests that need nothing but a
// socket use it.
func Shared(tb testing.TB, cfg Config) *Broker {
	tb.Helper()
	if addr := os.Getenv("GREGOR_COMPAT_BOOTSTRAP"); addr != "" {
		tb.Logf("broker: %s (from GREGOR_COMPAT_BOOTSTRAP)", addr)
		return &Broker{addr: addr, external: true}
	}
	return Start(tb, cfg)
}

// At is a broker that the caller runs and throws away, such as an Apache Kafka of the test's own.
func At(addr string) *Broker { return &Broker{addr: addr, external: true, scratch: true} }

// Start starts a broker and waits until it listens. The test's end stops it and demands exit code 0.
func Start(tb testing.TB, cfg Config) *Broker {
	tb.Helper()
	if os.Getenv("GREGOR_COMPAT_BOOTSTRAP") != "" && os.Getenv("GREGOR_COMPAT_BINARY") == "" {
		tb.Skip("needs the broker's process or files, and GREGOR_COMPAT_BOOTSTRAP gives only a socket")
	}
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(tb.TempDir(), "data")
		if strings.Contains(cfg.Dir, ",") {
			tb.Fatalf("the data directory %q would be several for the broker: no commas in the names of tests", cfg.Dir)
		}
	}
	if cfg.Listen == "" {
		cfg.Listen = freeAddr(tb)
	}
	b := &Broker{bin: Binary(tb), cfg: cfg, logPath: filepath.Join(tb.TempDir(), "broker.log")}
	b.Up(tb)
	tb.Cleanup(func() {
		b.Stop(tb)
		if strings.Contains(b.Log(), "WARNING: DATA RACE") {
			tb.Error("the race detector reported a data race in the broker")
		}
		if tb.Failed() {
			tb.Logf("end of the broker's log:\n%s", tail(b.Log(), 6000))
		}
	})
	return b
}

// Up starts the process again on the same directory and port.
func (b *Broker) Up(tb testing.TB) {
	tb.Helper()
	logFile, err := os.OpenFile(b.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer logFile.Close()
	p, err := launch(b.bin, b.cfg, logFile)
	if err != nil {
		tb.Fatal(err)
	}
	addr, err := p.ready(startLimit)
	if err != nil {
		p.kill()
		tb.Fatalf("%v; its log:\n%s", err, tail(b.Log(), 4000))
	}
	b.mu.Lock()
	b.addr, b.proc = addr, p
	b.mu.Unlock()
}

// Kill ends the process by SIGKILL, as the kernel or a power button would. It does nothing when none runs.
func (b *Broker) Kill(tb testing.TB) {
	tb.Helper()
	if p := b.take(); p != nil {
		p.kill()
	}
}

// Stop ends the process by SIGTERM and demands exit code 0. It does nothing when none runs.
func (b *Broker) Stop(tb testing.TB) {
	tb.Helper()
	p := b.take()
	if p == nil {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Errorf("SIGTERM: %v (the broker ended by itself: %v)", err, p.cmd.ProcessState)
		return
	}
	select {
	case <-p.done:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			tb.Errorf("SIGTERM: the broker ended with %v, want exit code 0", p.cmd.ProcessState)
		}
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // a Go program prints its goroutines
		time.Sleep(500 * time.Millisecond)
		p.kill()
		tb.Errorf("SIGTERM: the broker did not end within %v", stopLimit)
	}
}

// Addr is the host:port where clients reach the broker.
func (b *Broker) Addr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addr
}

// Dir is the data directory.
func (b *Broker) Dir() string { return b.cfg.Dir }

// External tells that the broker was not started here: it has no process and no files that a test could look at.
func (b *Broker) External() bool { return b.external }

// PID is the running process's id, 0 when there is none.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		return 0
	}
	return b.proc.cmd.Process.Pid
}

// Alive tells whether the process runs.
func (b *Broker) Alive() bool {
	b.mu.Lock()
	p := b.proc
	b.mu.Unlock()
	if p == nil {
		return b.external
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Log returns what all processes of this broker wrote to standard error so far.
func (b *Broker) Log() string {
	text, err := os.ReadFile(b.logPath)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(text)
}

func (b *Broker) take() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.proc
	b.proc = nil
	return p
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// Run starts the broker with cfg and waits for it to end by itself, for starts that must be refused. It returns exit
// code and everything printed; a broker that is still there after limit is killed and fails the test.
func Run(tb testing.TB, cfg Config, limit time.Duration) (code int, output string) {
	tb.Helper()
	if cfg.Listen == "" {
		cfg.Listen = freeAddr(tb)
	}
	return RunArgs(tb, Binary(tb), cfg.args(), limit)
}

// RunArgs is Run with a command line of the caller's own.
func RunArgs(tb testing.TB, bin string, args []string, limit time.Duration) (code int, output string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "refused.log")
	out, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, environment()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	inTime := timer.Stop()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if !inTime {
		tb.Errorf("gregor %s: still running after %v, should have refused to start; it printed:\n%s", strings.Join(args, " "), limit, tail(string(text), 3000))
	}
	return cmd.ProcessState.ExitCode(), string(text)
}
