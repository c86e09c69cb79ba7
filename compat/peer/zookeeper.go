package peer

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// Keeper is a ZooKeeper, the one in Kafka's jars, that keeps its address and its data when it is ended and started again.
type Keeper struct {
	Addr string

	lib, props string
	daemon     *daemon
}

// ZooKeeper runs one until the test ends and returns its address.
func ZooKeeper(tb testing.TB) string {
	tb.Helper()
	return StartZooKeeper(tb).Addr
}

// StartZooKeeper runs one until the test ends, with more settings if they are given.
func StartZooKeeper(tb testing.TB, settings ...string) *Keeper {
	tb.Helper()
	lib, err := jars.Tools("3.9.1").Ensure(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	z := &Keeper{Addr: harness.FreeAddr(tb), lib: lib, props: filepath.Join(dir, "zookeeper.properties")}
	host, port, _ := strings.Cut(z.Addr, ":")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\nadmin.enableServer=false\n", filepath.Join(dir, "data"), port, host)
	text += strings.Join(settings, "\n")
	if err := os.WriteFile(z.props, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	z.Up(tb)
	return z
}

// Up starts it again and waits until it takes sessions.
func (z *Keeper) Up(tb testing.TB) {
	tb.Helper()
	z.daemon = startDaemon(tb, "ZooKeeper", z.Addr, jars.Java(tb.Context(), z.lib+"/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", z.props))
	for deadline := time.Now().Add(startLimit); !serves(z.Addr); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("ZooKeeper does not serve on %s", z.Addr)
		}
	}
}

// Kill ends it by SIGKILL.
func (z *Keeper) Kill(tb testing.TB) {
	tb.Helper()
	_ = z.daemon.cmd.Process.Kill()
	<-z.daemon.done
}

// Pause stops the process until Resume, which must follow before the test ends.
func (z *Keeper) Pause(tb testing.TB) {
	tb.Helper()
	z.daemon.signal(tb, syscall.SIGSTOP)
}

// Resume lets it go on. It may be called from any goroutine.
func (z *Keeper) Resume(tb testing.TB) {
	tb.Helper()
	z.daemon.signal(tb, syscall.SIGCONT)
}

func (d *daemon) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		tb.Errorf("%v to %s: %v", s, d.name, err)
	}
}

// ZooKeeperShell gives commands to Kafka's zookeeper-shell and returns what it printed.
func ZooKeeperShell(tb testing.TB, zk, commands string) string {
	tb.Helper()
	lib, err := jars.Tools("3.9.1").Ensure(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	cmd := jars.Java(tb.Context(), lib+"/*", "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", "-server", zk)
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("zookeeper-shell: %v\n%s", err, out)
	}
	return string(out)
}

// serves asks ZooKeeper if it takes sessions: its port is open before that.
func serves(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("srvr")); err != nil {
		return false
	}
	text, _ := io.ReadAll(c)
	return bytes.Contains(text, []byte("Mode: "))
}
