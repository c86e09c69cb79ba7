package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Keeper is an Apache ZooKeeper, the one in Kafka's jars, that a broker keeps its metadata in.
type Keeper struct {
	Addr string
	dir  string
	cmd  *exec.Cmd
}

// StartKeeper starts one on a fresh directory and waits until it takes sessions.
func StartKeeper(lib, dir string) (*Keeper, error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command("java", "-Xms512m", "-Xmx512m", "-Dzookeeper.admin.enableServer=false", "-cp", filepath.Join(lib, "*"),
		"org.apache.zookeeper.server.ZooKeeperServerMain", port, filepath.Join(dir, "data"))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &Keeper{Addr: addr, dir: dir, cmd: cmd}
	for began := time.Now(); !k.serves(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > startLimit {
			return nil, errors.Join(fmt.Errorf("ZooKeeper is not ready after %v; see %s", startLimit, out.Name()), k.Remove())
		}
	}
	return k, nil
}

// serves asks whether it takes sessions: its port is open before that.
func (k *Keeper) serves() bool {
	c, err := net.DialTimeout("tcp", k.Addr, time.Second)
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

// Remove ends it and deletes the directory.
func (k *Keeper) Remove() error {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
	return os.RemoveAll(k.dir)
}

// On is the kind with its metadata in a ZooKeeper, as broker 1.
func (k *Kind) On(keeper *Keeper) *Kind {
	set := []string{"zookeeper.connect=" + keeper.Addr, "broker.id=1"}
	on := *k
	if k.keepKafka != nil {
		on.prepare = func(_ context.Context, dir, addr string, _ bool) error { return k.keepKafka(dir, addr, set) }
		return &on
	}
	on.command = func(dir, addr string) *exec.Cmd {
		cmd := k.command(dir, addr)
		for _, kv := range set {
			cmd.Args = append(cmd.Args, "--set", kv)
		}
		return cmd
	}
	return &on
}
