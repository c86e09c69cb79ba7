package groups

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// member is one running member.
type member struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr lockedBuffer
	done   chan struct{}
	client client

	mu       sync.Mutex // guards what follows
	last     time.Time  // when it processed its newest record
	assigned []string   // partitions of each assignment
	revoked  []string
	failures []string
}

// lockedBuffer keeps the end of what a process printed.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() > 1<<20 {
		b.buf.Reset()
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) end() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.buf.String()
	return s[max(0, len(s)-1500):]
}

// startMember runs a member; note gets its record and committed lines.
func startMember(t *testing.T, c client, name string, id identity, note func(m *member, word string, partition int32, offset int64, value string)) (*member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{name: name, cmd: c.member(ctx, id), done: make(chan struct{}), client: c}
	m.cmd.Stderr = &m.stderr
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	m.stdin = stdin
	if err := m.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(m.done)
		defer cancel()
		m.read(stdout, note)
		_ = m.cmd.Wait()
	}()
	t.Cleanup(m.kill)
	return m, nil
}

func (m *member) read(stdout io.Reader, note func(m *member, word string, partition int32, offset int64, value string)) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "record", "committed":
			var p int32
			var o int64
			var value string
			if n, _ := fmt.Sscan(rest, &p, &o, &value); n < 2 {
				m.tell(&m.failures, "bad line "+lines.Text())
				continue
			}
			if word == "record" {
				m.mu.Lock()
				m.last = time.Now()
				m.mu.Unlock()
			}
			note(m, word, p, o, value)
		case "assigned":
			m.tell(&m.assigned, rest)
		case "revoked":
			m.tell(&m.revoked, rest)
		default:
			m.tell(&m.failures, lines.Text())
		}
	}
}

func (m *member) tell(list *[]string, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*list = append(*list, text)
}

func (m *member) assignments() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.assigned)
}

func (m *member) revocations() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.revoked...)
}

func (m *member) processedSince(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.After(at)
}

// ended tells that it runs no more.
func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// failed reports if it said a failure that contains text, without case.
func (m *member) failed(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.failures, func(f string) bool { return strings.Contains(strings.ToLower(f), text) })
}

// kill ends it by SIGKILL, as the kernel would.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.done
}

// leave lets it leave the group and end.
func (m *member) leave(limit time.Duration) error {
	m.stdin.Close()
	if m.client.name == "kcat" {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-m.done:
	case <-time.After(limit):
		m.kill()
		return fmt.Errorf("member %s did not end within %v: %s", m.name, limit, m)
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("member %s ended with %v: %s", m.name, m.cmd.ProcessState, m)
	}
	return nil
}

// String is what is known of it, for messages.
func (m *member) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	failures := m.failures[max(0, len(m.failures)-5):]
	return fmt.Sprintf("%s assigned %q revoked %q last record %v failures %q stderr %q", m.name, m.assigned, m.revoked, m.last.Format("15:04:05.000"), failures, m.stderr.end())
}
