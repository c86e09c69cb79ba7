package controller

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"gregor/broker/meta"
)

// openTree opens a tree in a file, which may be reopened after its Close.
func openTree(t testing.TB, path string) meta.Tree {
	t.Helper()
	tree, err := meta.OpenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func treeFile(t testing.TB) string { return filepath.Join(t.TempDir(), meta.FileName) }

func testConfig() Config {
	return Config{
		BrokerID:   1,
		Endpoints:  []Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}},
		Partitions: 3,
		Now:        func() time.Time { return time.UnixMilli(1700000000123) },
		CheckConfig: func(own map[string]string) error {
			if _, ok := own["nope"]; ok {
				return errors.New("Unknown topic config name: nope")
			}
			return nil
		},
	}
}

// startOn starts a controller on a tree.
func startOn(t testing.TB, tree meta.Tree) *Controller {
	t.Helper()
	c, err := Start(t.Context(), tree, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start makes a controller on a tree of its own.
func start(t testing.TB) *Controller {
	t.Helper()
	return startOn(t, openTree(t, treeFile(t)))
}

// reload closes the controller's tree, opens its file again and starts there, as a new process does.
func reload(t testing.TB, tree meta.Tree, path string) (*Controller, meta.Tree) {
	t.Helper()
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	tree = openTree(t, path)
	return startOn(t, tree), tree
}

func (c *Controller) mustLoad(t testing.TB) []Topic {
	t.Helper()
	topics, err := c.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return topics
}

func (c *Controller) mustCreate(t testing.TB, name string, partitions int32) Topic {
	t.Helper()
	topic, err := c.CreateTopic(t.Context(), name, partitions, -1, map[string]string{"retention.ms": "5"})
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// get reads a node as text.
func get(t testing.TB, tree meta.Tree, path string) string {
	t.Helper()
	data, _, err := tree.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exists(t testing.TB, tree meta.Tree, path string) bool {
	t.Helper()
	_, _, err := tree.Get(t.Context(), path)
	if err != nil && !errors.Is(err, meta.ErrNoNode) {
		t.Fatal(err)
	}
	return err == nil
}
