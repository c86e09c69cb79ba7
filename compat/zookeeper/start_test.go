package zookeeper

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// TestStart: which starts are refused, and what the others wait for.
func TestStart(t *testing.T) {
	keeper := peer.StartZooKeeper(t)
	t.Run("with it", func(t *testing.T) { // most of these wait
		for name, test := range map[string]func(*testing.T, string){
			"id taken": idTaken, "own session": ownSession, "generated id": generatedID, "another cluster": anotherCluster, "forgetful": forgetful, "ready line": readyLine,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, keeper.Addr+"/"+strings.Fields(name)[0])
			})
		}
	})
	t.Run("no ZooKeeper", func(t *testing.T) { noZooKeeper(t, keeper) })
}

// refused starts a broker that must end by itself with an error that has all these texts.
func refused(t *testing.T, limit time.Duration, cfg harness.Config, texts ...string) {
	t.Helper()
	began := time.Now()
	code, output := harness.Run(t, cfg, limit)
	lines := strings.Split(strings.TrimSpace(output), "\n")
	t.Logf("exit code %d after %v: %s", code, time.Since(began).Round(100*time.Millisecond), lines[len(lines)-1])
	for _, text := range texts {
		if code == 0 || !strings.Contains(lines[len(lines)-1], text) {
			t.Errorf("the message does not say %q", text)
		}
	}
}

func idTaken(t *testing.T, zk string) {
	b := harness.Start(t, harness.Config{Set: onZooKeeper(zk, 7)})
	refused(t, 40*time.Second, harness.Config{Dir: t.TempDir(), Set: onZooKeeper(zk, 7)}, "broker 7", b.Addr(), "another session holds /brokers/ids/7")
	kafka := peer.StartOn(t, "3.9.1", zk, t.TempDir(), "broker.id=3")
	refused(t, 40*time.Second, harness.Config{Dir: t.TempDir(), Set: onZooKeeper(zk, 3)}, "broker 3", kafka.Addr())
	if !b.Alive() {
		t.Error("the broker that has the id has ended")
	}
}

func ownSession(t *testing.T, zk string) {
	b := harness.Start(t, harness.Config{Set: onZooKeeper(zk, 7)})
	b.Create(t, 2, nil, "kept")
	b.Kill(t)
	began := time.Now()
	b.Up(t)
	t.Logf("a restart after kill -9 took %v with zookeeper.session.timeout.ms=6000", time.Since(began).Round(100*time.Millisecond))
	if !strings.Contains(b.Log(), "waiting for the end of an older session") {
		t.Error("the log does not say what the start waited for")
	}
	began = time.Now()
	b.Stop(t)
	b.Up(t)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a clean restart took %v: it waited for the session that it should have ended", took)
	}
}

func generatedID(t *testing.T, zk string) {
	fresh := func(more ...string) harness.Config {
		var set []string
		for _, kv := range onZooKeeper(zk, 0, more...) {
			if kv != "broker.id=0" {
				set = append(set, kv)
			}
		}
		return harness.Config{Dir: t.TempDir(), Set: set}
	}
	id := func(b *harness.Broker) string {
		text, err := os.ReadFile(filepath.Join(b.Dir(), "meta.properties"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "broker.id=")
		return strings.TrimSpace(rest)
	}
	first := harness.Start(t, fresh())
	if got := id(first); got != "1001" {
		t.Errorf("the first broker without an id has %s, want 1001", got)
	}
	kafka := peer.StartOn(t, "3.9.1", zk, t.TempDir(), "broker.id=-1")
	if text, err := os.ReadFile(filepath.Join(kafka.Dir, "meta.properties")); err != nil || !strings.Contains(string(text), "broker.id=1002") {
		t.Errorf("Kafka as the second has %s, %v; want 1002", text, err)
	}
	if got := id(harness.Start(t, fresh("reserved.broker.max.id=2000"))); got != "2003" {
		t.Errorf("the third broker, with 2000 reserved, has %s, want 2003", got)
	}
	first.Stop(t)
	first.Up(t)
	if got := id(first); got != "1001" {
		t.Errorf("after a restart the first broker has %s, want 1001", got)
	}
	refused(t, 20*time.Second, fresh("broker.id.generation.enable=false"), "broker.id is not set", "broker.id.generation.enable=false")
	refused(t, 20*time.Second, harness.Config{Dir: t.TempDir(), Set: onZooKeeper(zk, 1001)}, "broker.id=1001", "reserved.broker.max.id=1000")
}

func readyLine(t *testing.T, zk string) {
	metadataLine(t, "DIR/gregor-meta.db")
	metadataLine(t, "ZooKeeper at "+zk, "--set", "zookeeper.connect="+zk)
}

func anotherCluster(t *testing.T, addr string) {
	b := harness.Start(t, harness.Config{Set: onZooKeeper(addr+"/one", 1)})
	b.Stop(t)
	harness.Start(t, harness.Config{Set: onZooKeeper(addr+"/two", 1)}).Stop(t)
	refused(t, 20*time.Second, harness.Config{Dir: b.Dir(), Set: onZooKeeper(addr+"/two", 1)}, "meta.properties says cluster", "use another directory")
	refused(t, 20*time.Second, harness.Config{Dir: b.Dir(), Set: onZooKeeper(addr+"/one", 2)}, "meta.properties says broker 1, configured is broker.id=2")
}

// forgetful is a ZooKeeper that has lost its data, or a wrong path: the topics on the disk are not taken for none.
func forgetful(t *testing.T, zk string) {
	b := harness.Start(t, harness.Config{Set: onZooKeeper(zk, 7)})
	b.Create(t, 2, nil, "kept")
	b.Stop(t)
	refused(t, 40*time.Second, harness.Config{Dir: b.Dir(), Set: onZooKeeper(zk+"/other", 7)}, "has no cluster", b.Dir(), "use empty log directories")
	b.Up(t)
}

func noZooKeeper(t *testing.T, keeper *peer.Keeper) {
	refused(t, 20*time.Second, harness.Config{Dir: t.TempDir(), Set: onZooKeeper(harness.FreeAddr(t), 1, "zookeeper.connection.timeout.ms=3000")},
		"ZooKeeper does not answer at", "within 3s", "zookeeper.connection.timeout.ms")
	keeper.Pause(t)
	refused(t, 20*time.Second, harness.Config{Dir: t.TempDir(), Set: onZooKeeper(keeper.Addr, 1, "zookeeper.connection.timeout.ms=3000")},
		"ZooKeeper does not answer at "+keeper.Addr, "within 3s")
	time.AfterFunc(2*time.Second, func() { keeper.Resume(t) })
	began := time.Now()
	b := harness.Start(t, harness.Config{Set: onZooKeeper(keeper.Addr+"/late", 1)})
	t.Logf("with ZooKeeper back after 2 s the start took %v", time.Since(began).Round(100*time.Millisecond))
	if !strings.Contains(b.Log(), "waiting for ZooKeeper") {
		t.Error("the log does not say what the start waited for")
	}
}

// metadataLine checks that the line which says that the broker is ready says where its metadata is.
func metadataLine(t *testing.T, want string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), append([]string{"serve", "--data-dir", dir, "--listen", harness.FreeAddr(t)}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if want = strings.ReplaceAll(want, "DIR", dir); err != nil || !strings.Contains(line, "metadata in "+want+";") {
		t.Errorf("ready line %q, %v; want metadata in %s", line, err, want)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
