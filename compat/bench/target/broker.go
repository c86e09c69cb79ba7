package target

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"gregor/compat/bench/raw"
)

const (
	startLimit = 180 * time.Second // Kafka with 1,000 partitions after a kill is slow
	stopLimit  = 120 * time.Second
)

// Kind makes brokers of one sort. Its fields do not change once made.
type Kind struct {
	Name    string
	prepare func(ctx context.Context, dir, addr string, pausable bool) error // fresh directory to startable; not measured
	command func(dir, addr string) *exec.Cmd
	// keepKafka prepares a Kafka for a ZooKeeper; nil for gregor, which needs no preparation.
	keepKafka func(dir, addr string, set []string) error
}

// Broker is one data directory and address, and the process that serves them while it runs.
type Broker struct {
	Kind *Kind
	Dir  string // holds the data below "data" and the process's output in "out"
	Addr string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped
}

// New prepares a fresh directory; nothing runs yet. A broker that will be paused must be made pausable, and one whose
// restarts are timed must not: Kafka waits for its session to end before it takes a killed broker back.
func (k *Kind) New(ctx context.Context, dir string, pausable bool) (*Broker, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if err := k.prepare(ctx, dir, addr, pausable); err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	return &Broker{Kind: k, Dir: dir, Addr: addr}, nil
}

// Exec starts the process and returns at once; start is the moment before the exec.
func (b *Broker) Exec() (start time.Time, err error) {
	out, err := os.OpenFile(filepath.Join(b.Dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return time.Time{}, err
	}
	defer out.Close()
	cmd := b.Kind.command(b.Dir, b.Addr)
	cmd.Stdout, cmd.Stderr = out, out
	start = time.Now()
	if err := cmd.Start(); err != nil {
		return start, fmt.Errorf("start %s: %w", b.Kind.Name, err)
	}
	b.cmd, b.done = cmd, make(chan struct{})
	go func(done chan<- struct{}) {
		defer close(done)
		_ = cmd.Wait() // a broker that ends early shows in Ready
	}(b.done)
	return start, nil
}

// Ready asks until check succeeds on a connection and returns when it did. It asks often at first, so that a quick
// broker is timed to a fraction of a millisecond, and seldom later.
func (b *Broker) Ready(start time.Time, check func(*raw.Conn) error) (time.Duration, error) {
	for {
		err := b.Do(check)
		took := time.Since(start)
		if err == nil {
			return took, nil
		}
		select {
		case <-b.done:
			return 0, fmt.Errorf("%s ended while starting; see %s\n%s", b.Kind.Name, filepath.Join(b.Dir, "out"), b.tail())
		default:
		}
		if took > startLimit {
			return 0, fmt.Errorf("%s is not ready after %v: %w\n%s", b.Kind.Name, startLimit, err, b.tail())
		}
		time.Sleep(min(max(took/100, 100*time.Microsecond), 10*time.Millisecond))
	}
}

// Do runs f with a connection to the broker.
func (b *Broker) Do(f func(*raw.Conn) error) error {
	c, err := raw.Dial(b.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// Start is Exec and Ready.
func (b *Broker) Start() error {
	start, err := b.Exec()
	if err != nil {
		return err
	}
	_, err = b.Ready(start, (*raw.Conn).Ready)
	return err
}

// PID is the running process's id.
func (b *Broker) PID() int { return b.cmd.Process.Pid }

// Pause stops the process from running at all until Resume, so that brokers that are not measured cost nothing.
func (b *Broker) Pause() error { return b.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (b *Broker) Resume() error { return b.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process by SIGKILL.
func (b *Broker) Kill() {
	_ = b.cmd.Process.Kill()
	<-b.done
}

// Stop ends the process by SIGTERM, and by SIGKILL when that takes too long.
func (b *Broker) Stop() error {
	_ = b.Resume()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-b.done:
		return nil
	case <-time.After(stopLimit):
		b.Kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM", b.Kind.Name, stopLimit)
	}
}

// Remove ends the process if it still runs and deletes the directory.
func (b *Broker) Remove() error {
	if b.cmd != nil {
		b.Kill()
	}
	return os.RemoveAll(b.Dir)
}

// Segment is the path of the first segment file of a partition; the directory layout is the same for both brokers.
func (b *Broker) Segment(topic string, partition int) string {
	return filepath.Join(b.Dir, "data", fmt.Sprintf("%s-%d", topic, partition), fmt.Sprintf("%020d.log", 0))
}

func (b *Broker) tail() string {
	text, err := os.ReadFile(filepath.Join(b.Dir, "out"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

// freeAddr is a port that nobody listens on, below those that the kernel gives to client sockets, with the next one
// free as well (Kafka's controller needs it).
func freeAddr() (string, error) {
	for range 200 {
		port := 20000 + 2*rand.IntN(6000)
		if free(port) && free(port+1) {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no free port between 20000 and 32000 on 127.0.0.1")
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
