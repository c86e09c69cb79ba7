package peer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
