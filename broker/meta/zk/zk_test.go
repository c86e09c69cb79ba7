package zk

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gregor/broker/meta"
	"gregor/broker/meta/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serverEnv names a running ZooKeeper, host:port, for the tests that need one; compat/zookeeper starts one and runs them.
const serverEnv = "GREGOR_TEST_ZOOKEEPER"

func server(t *testing.T) string {
	t.Helper()
	addr := os.Getenv(serverEnv)
	if addr == "" {
		t.Skipf("%s names no ZooKeeper; compat/zookeeper starts one and runs this test", serverEnv)
	}
	return addr
}

func open(t *testing.T, connect string) *Tree {
	t.Helper()
	tree, err := Open(t.Context(), Options{Connect: connect, SessionTimeout: 6 * time.Second, ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// TestContract runs what every Tree passes, each below a chroot of its own that does not exist before.
func TestContract(t *testing.T) {
	addr := server(t)
	var n atomic.Int64
	treetest.Run(t, func(t *testing.T) meta.Tree {
		return open(t, fmt.Sprintf("%s/contract/%d-%d", addr, os.Getpid(), n.Add(1)))
	})
}

// TestReconnectionIsAnEvent: whoever watches looks again after each, since the library may have lost what happened before it.
func TestReconnectionIsAnEvent(t *testing.T) {
	tree := open(t, fmt.Sprintf("%s/reconnect-%d", server(t), os.Getpid()))
	events, err := tree.Watch(t.Context(), "/nothing/changes")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tree.dialer.mu.Lock()
		_ = tree.dialer.now.Close()
		tree.dialer.mu.Unlock()
		select {
		case e := <-events:
			if e.Path != "/nothing/changes" {
				t.Errorf("event of %s", e.Path)
			}
		case <-time.After(time.Minute):
			t.Fatal("no event")
		}
	}
}

func TestParseConnect(t *testing.T) {
	for text, want := range map[string]string{
		"a:1": "[a:1] ", "a:1, b:2": "[a:1 b:2] ", "a:1,b:2/x/y": "[a:1 b:2] /x/y", "a:1/": "[a:1] ", "[::1]:2181/k": "[[::1]:2181] /k",
	} {
		at, err := parseConnect(text)
		if got := fmt.Sprint(at.servers, " ", at.chroot); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/x", " , ", "a:1//x/b//c"} {
		if at, err := parseConnect(text); err == nil {
			t.Errorf("%q is taken as %+v", text, at)
		}
	}
}

// TestNobodyThere: the error names the servers and the keys, and comes in time.
func TestNobodyThere(t *testing.T) {
	_, err := Open(t.Context(), Options{Connect: "127.0.0.1:1/x", SessionTimeout: time.Second, ConnectTimeout: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "zookeeper.connection.timeout.ms") {
		t.Errorf("error is %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Connect: "a:1"}, {Connect: "a:1", SessionTimeout: 1, ConnectTimeout: 1, SetACL: true}, {SessionTimeout: 1, ConnectTimeout: 1},
	} {
		if tree, err := Open(t.Context(), o); err == nil {
			t.Errorf("%+v: no error, %v", o, tree.Close())
		}
	}
}
