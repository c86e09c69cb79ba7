package peer

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

const (
	startLimit = 90 * time.Second
	stopLimit  = 60 * time.Second
	clusterID  = "Z3JlZ29yLWNvbXBhdC1rYQ" // any 16 bytes in base64
)

// Kafka is one running Apache Kafka.
type Kafka struct {
	*harness.Broker
	Dir string // its log directory

	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// Start formats dir unless it is formatted and starts Kafka of that version on it.
func Start(tb testing.TB, version, dir string) *Kafka {
	tb.Helper()
	lib, err := jars.Tools(version).Ensure(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	addr, controller := harness.FreeAddr(tb), harness.FreeAddr(tb)
	work := tb.TempDir()
	props := filepath.Join(work, "server.properties")
	if err := os.WriteFile(props, []byte(properties(addr, controller, dir)), 0o644); err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "meta.properties")); err != nil {
		format := jars.Java(tb.Context(), lib+"/*", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", props)
		if out, err := format.CombinedOutput(); err != nil {
			tb.Fatalf("format for Kafka %s: %v\n%s", version, err, out)
		}
	}
	k := &Kafka{Broker: harness.At(addr), Dir: dir, done: make(chan struct{}), log: filepath.Join(work, "kafka.log")}
	k.run(tb, jars.Java(tb.Context(), lib+"/*", "kafka.Kafka", props))
	return k
}

func properties(addr, controller, dir string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@%s\n", controller)
	fmt.Fprintf(&b, "listeners=PLAINTEXT://%s,CONTROLLER://%s\nadvertised.listeners=PLAINTEXT://%s\n", addr, controller, addr)
	b.WriteString("controller.listener.names=CONTROLLER\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n")
	b.WriteString("offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n")
	fmt.Fprintf(&b, "log.dirs=%s\n", dir)
	return b.String()
}

func (k *Kafka) run(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	out, err := os.Create(k.log)
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	k.cmd = cmd
	go func() {
		_ = cmd.Wait()
		close(k.done)
	}()
	tb.Cleanup(func() { k.Stop(tb) })
	for deadline := time.Now().Add(startLimit); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", k.Addr(), time.Second)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-k.done:
			deadline = time.Time{}
		default:
		}
		if time.Now().After(deadline) {
			tb.Fatalf("Apache Kafka does not listen on %s: %v\n%s", k.Addr(), err, k.Output())
		}
	}
}

// Stop ends Kafka by SIGTERM, its clean way, and waits for it. It does nothing the second time.
func (k *Kafka) Stop(tb testing.TB) {
	tb.Helper()
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-k.done:
	case <-time.After(stopLimit):
		_ = k.cmd.Process.Kill()
		tb.Errorf("Apache Kafka did not end within %v", stopLimit)
	}
}

// Output is the end of what Kafka printed.
func (k *Kafka) Output() string {
	text, err := os.ReadFile(k.log)
	if err != nil {
		return err.Error()
	}
	s := strings.ToValidUTF8(string(text), "?")
	return s[max(0, len(s)-4000):]
}
