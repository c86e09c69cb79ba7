package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/meta"
)

func TestStartWritesKafkasNodes(t *testing.T) {
	tree := openTree(t, treeFile(t))
	c := startOn(t, tree)
	if _, err := ParseID(c.ClusterID()); err != nil || c.Epoch() != 1 {
		t.Errorf("cluster id %q, epoch %d", c.ClusterID(), c.Epoch())
	}
	want := map[string]string{
		"/cluster/id":       `{"version":"1","id":"` + c.ClusterID() + `"}`,
		"/controller":       `{"version":2,"brokerid":1,"timestamp":"1700000000123","kraftControllerEpoch":-1}`,
		"/controller_epoch": "1",
		"/brokers/ids/1": `{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:9092"],` +
			`"jmx_port":-1,"port":9092,"host":"127.0.0.1","version":5,"timestamp":"1700000000123"}`,
	}
	for path, data := range want {
		if got := get(t, tree, path); got != data {
			t.Errorf("%s is\n%s, want\n%s", path, got, data)
		}
	}
	for _, path := range roots() {
		if !exists(t, tree, path) {
			t.Errorf("%s is missing", path)
		}
	}
}

func TestRestartKeepsTheClusterAndBeginsAnEpoch(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	first := startOn(t, tree)
	second, _ := reload(t, tree, path)
	if second.ClusterID() != first.ClusterID() || second.Epoch() != 2 {
		t.Errorf("cluster id %q then %q, epoch %d", first.ClusterID(), second.ClusterID(), second.Epoch())
	}
}

func TestGivenClusterID(t *testing.T) {
	path := treeFile(t)
	conf := testConfig()
	conf.ClusterID = FormatID(NewID())
	tree := openTree(t, path)
	if c, err := Start(t.Context(), tree, conf); err != nil || c.ClusterID() != conf.ClusterID {
		t.Fatalf("cluster id %v, %v", c, err)
	}
	tree.Close()
	conf.ClusterID = FormatID(NewID())
	if _, err := Start(t.Context(), openTree(t, path), conf); err == nil || !strings.Contains(err.Error(), conf.ClusterID) {
		t.Errorf("tree of another cluster: %v", err)
	}
}

func TestMissingRootPathsAreMade(t *testing.T) {
	tree := openTree(t, treeFile(t))
	// As an old Kafka, or a start that was cut short, leaves it.
	if err := tree.Multi(t.Context(), meta.CreateOp("/brokers", nil, meta.Persistent), meta.CreateOp("/brokers/topics", nil, meta.Persistent)); err != nil {
		t.Fatal(err)
	}
	startOn(t, tree)
	for _, path := range roots() {
		if !exists(t, tree, path) {
			t.Errorf("%s is missing", path)
		}
	}
}

func TestSecondControllerWaitsForTheSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the time limit comes when all wait, and not before
		tree := openTree(t, treeFile(t))
		first := startOn(t, tree)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := Start(ctx, tree, testConfig()); !errors.Is(err, ErrRegistered) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("second start: %v", err)
		}

		// An older session ends while the new one waits.
		done := make(chan *Controller)
		go func() {
			c, err := Start(t.Context(), tree, testConfig())
			if err != nil {
				t.Error(err)
			}
			done <- c
		}()
		synctest.Wait()
		err := tree.Multi(t.Context(), meta.DeleteOp("/brokers/ids/1", meta.AnyVersion), meta.DeleteOp("/controller", meta.AnyVersion))
		if err != nil {
			t.Fatal(err)
		}
		second := <-done

		// The one that lost its seat changes nothing any more.
		if _, err := first.CreateTopic(t.Context(), "a", 1, 1, nil); !errors.Is(err, ErrNotController) || !errors.Is(err, kerr.NotController) {
			t.Errorf("old controller: %v", err)
		}
		if second.mustCreate(t, "a", 1); len(second.mustLoad(t)) != 1 {
			t.Error("new controller made no topic")
		}
	})
}

func TestDamagedNodesAreErrors(t *testing.T) {
	damage := map[string]string{
		"/cluster/id":       `{"version":"1"}`,
		"/controller_epoch": "x",
	}
	for path, data := range damage {
		file := treeFile(t)
		tree := openTree(t, file)
		startOn(t, tree)
		if err := tree.Multi(t.Context(), meta.SetOp(path, []byte(data), meta.AnyVersion)); err != nil {
			t.Fatal(err)
		}
		tree.Close()
		if _, err := Start(t.Context(), openTree(t, file), testConfig()); err == nil {
			t.Errorf("%s = %s is accepted", path, data)
		}
	}
	nodes := map[string]string{
		"/brokers/topics/a":                    `{"partitions":{"1":[1]}}`,
		"/brokers/topics/a/partitions/0/state": `{`,
		"/config/topics/a":                     `[]`,
	}
	for path, data := range nodes {
		tree := openTree(t, treeFile(t))
		c := startOn(t, tree)
		c.mustCreate(t, "a", 1)
		if err := tree.Multi(t.Context(), meta.SetOp(path, []byte(data), meta.AnyVersion)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(t.Context()); err == nil {
			t.Errorf("%s = %s is accepted", path, data)
		}
	}
}

func TestClosedTree(t *testing.T) {
	tree := openTree(t, treeFile(t))
	c := startOn(t, tree)
	tree.Close()
	if _, err := c.Load(t.Context()); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("load: %v", err)
	}
	if _, _, err := c.AllocateProducerIDs(t.Context()); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("producer ids: %v", err)
	}
	if err := c.DeleteTopics(t.Context(), []string{"a"}); !errors.Is(err, meta.ErrClosed) {
		t.Errorf("delete: %v", err)
	}
}

// roots are some of the paths that Kafka makes at its start, those that other tools look for.
func roots() []string {
	return []string{"/consumers", "/brokers/ids", "/brokers/topics", "/brokers/seqid", "/config/topics", "/config/brokers", "/config/clients", "/config/users",
		"/config/ips", "/config/changes", "/admin/delete_topics", "/isr_change_notification", "/latest_producer_id_block", "/log_dir_event_notification"}
}
