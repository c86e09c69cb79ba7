package peer

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

const clusterID = "Z3JlZ29yLWNvbXBhdC1rYQ" // any 16 bytes in base64

// Kafka is one running Apache Kafka.
type Kafka struct {
	*harness.Broker
	Dir string // its log directory

	daemon *daemon
}

// Start formats dir unless it is formatted and starts Kafka of that version on it in KRaft mode, with settings of the caller's (key=value).
func Start(tb testing.TB, version, dir string, settings ...string) *Kafka {
	tb.Helper()
	addr, controller := harness.FreeAddr(tb), harness.FreeAddr(tb)
	var b bytes.Buffer
	fmt.Fprintf(&b, "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@%s\n", controller)
	fmt.Fprintf(&b, "listeners=PLAINTEXT://%s,CONTROLLER://%s\nadvertised.listeners=PLAINTEXT://%s\n", addr, controller, addr)
	b.WriteString("controller.listener.names=CONTROLLER\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n")
	lib, props := prepare(tb, version, dir, b.String(), settings)
	if _, err := os.Stat(filepath.Join(dir, "meta.properties")); err != nil {
		format := jars.Java(tb.Context(), lib+"/*", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", props)
		if out, err := format.CombinedOutput(); err != nil {
			tb.Fatalf("format for Kafka %s: %v\n%s", version, err, out)
		}
	}
	return run(tb, lib, props, addr, dir)
}

// StartOnZooKeeper starts Kafka of a version up to 3.9 on dir, with a ZooKeeper of its own, as most brokers of those versions ran.
func StartOnZooKeeper(tb testing.TB, version, dir string, settings ...string) *Kafka {
	tb.Helper()
	return StartOn(tb, version, ZooKeeper(tb), dir, settings...)
}

// StartOn starts Kafka of a version up to 3.9 on dir, with the ZooKeeper at an address, which may have a path at its end.
func StartOn(tb testing.TB, version, zk, dir string, settings ...string) *Kafka {
	tb.Helper()
	addr := harness.FreeAddr(tb)
	lib, props := prepare(tb, version, dir, fmt.Sprintf("broker.id=1\nlisteners=PLAINTEXT://%s\nzookeeper.connect=%s\n", addr, zk), settings)
	return run(tb, lib, props, addr, dir)
}

// prepare fetches the version and writes its settings; it returns the folder with its jars and the file.
func prepare(tb testing.TB, version, dir, base string, settings []string) (lib, props string) {
	tb.Helper()
	lib, err := jars.Tools(version).Ensure(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(base)
	b.WriteString("offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n")
	fmt.Fprintf(&b, "log.dirs=%s\n", dir)
	for _, kv := range settings {
		b.WriteString(kv + "\n")
	}
	props = filepath.Join(tb.TempDir(), "server.properties")
	if err := os.WriteFile(props, b.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
	return lib, props
}

func run(tb testing.TB, lib, props, addr, dir string) *Kafka {
	tb.Helper()
	d := startDaemon(tb, "Apache Kafka", addr, jars.Java(tb.Context(), lib+"/*", "kafka.Kafka", props))
	return &Kafka{Broker: harness.At(addr), Dir: dir, daemon: d}
}

// ZooKeeper runs one until the test ends and returns its address.
func ZooKeeper(tb testing.TB) string {
	tb.Helper()
	lib, err := jars.Tools("3.9.1").Ensure(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	addr, dir := harness.FreeAddr(tb), tb.TempDir()
	host, port, _ := bytes.Cut([]byte(addr), []byte(":"))
	props := filepath.Join(dir, "zookeeper.properties")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\nadmin.enableServer=false\n", filepath.Join(dir, "data"), port, host)
	if err := os.WriteFile(props, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	startDaemon(tb, "ZooKeeper", addr, jars.Java(tb.Context(), lib+"/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", props))
	for deadline := time.Now().Add(startLimit); !serves(addr); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("ZooKeeper does not serve on %s", addr)
		}
	}
	return addr
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

// Stop ends Kafka by SIGTERM, its clean way, and waits for it. It does nothing the second time.
func (k *Kafka) Stop(tb testing.TB) {
	tb.Helper()
	k.daemon.stop(tb)
}

// Output is the end of what Kafka printed.
func (k *Kafka) Output() string { return k.daemon.output() }

// Kill ends Kafka by SIGKILL.
func (k *Kafka) Kill(tb testing.TB) {
	tb.Helper()
	_ = k.daemon.cmd.Process.Kill()
	<-k.daemon.done
}
