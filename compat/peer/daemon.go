package peer

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 90 * time.Second
	stopLimit  = 60 * time.Second
)

// daemon is a process that listens.
type daemon struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// startDaemon starts a process and waits until it listens on addr. The test's end stops it.
func startDaemon(tb testing.TB, name, addr string, cmd *exec.Cmd) *daemon {
	tb.Helper()
	d := &daemon{name: name, cmd: cmd, done: make(chan struct{}), log: filepath.Join(tb.TempDir(), "log")}
	out, err := os.Create(d.log)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(d.done)
	}()
	tb.Cleanup(func() { d.stop(tb) })
	for deadline := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
			return d
		}
		select {
		case <-d.done:
			deadline = time.Time{}
		default:
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s does not listen on %s: %v\n%s", name, addr, err, d.output())
		}
	}
}

// stop ends it by SIGTERM and waits. It does nothing the second time.
func (d *daemon) stop(tb testing.TB) {
	tb.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(stopLimit):
		_ = d.cmd.Process.Kill()
		tb.Errorf("%s did not end within %v", d.name, stopLimit)
	}
}

// output is the end of what it printed.
func (d *daemon) output() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	s := strings.ToValidUTF8(string(text), "?")
	return s[max(0, len(s)-4000):]
}
