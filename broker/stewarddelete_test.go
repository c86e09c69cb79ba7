package broker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gregor/broker/meta"
)

// localShared is a broker's own tree as one that others change too.
type localShared struct{ meta.Tree }

// Expired never happens.
func (localShared) Expired() <-chan struct{} { return nil }

// seated has the test be the steward of a broker that is the controller. Its goroutine does not run: the test looks.
func (b *testBroker) seated() *steward {
	b.t.Helper()
	s := newSteward(b.Broker, localShared{b.tree})
	b.t.Cleanup(s.close)
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := s.takeSeat(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// mark marks a topic for deletion, as tools do.
func (b *testBroker) mark(name string) {
	b.t.Helper()
	if err := b.tree.Multi(b.t.Context(), meta.CreateOp(meta.DeleteTopicPath(name), nil, meta.Persistent)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBroker) exists(path string) bool {
	b.t.Helper()
	_, _, err := b.tree.Get(b.t.Context(), path)
	if err != nil && !isNoNode(err) {
		b.t.Fatal(err)
	}
	return err == nil
}

// TestNewControllerFindsMarkedTopic takes the seat while a topic that is served here is marked: it is deleted if delete.topic.enable says so, or else
// served on.
func TestNewControllerFindsMarkedTopic(t *testing.T) {
	for _, enabled := range []string{"true", "false"} {
		t.Run("delete.topic.enable="+enabled, func(t *testing.T) {
			dir := t.TempDir()
			b := startShared(t, Config{}, dir, "delete.topic.enable", enabled)
			b.dial().create("a", 2)
			b.mark("a")
			s := b.seated()
			if err := s.followDeletions(t.Context()); err != nil {
				t.Fatal(err)
			}
			kept := enabled == "false"
			if b.exists(meta.DeleteTopicPath("a")) {
				t.Error("it is marked still")
			}
			if b.exists(meta.TopicPath("a")) != kept {
				t.Errorf("in the tree: %v", !kept)
			}
			if (b.topics.name("a") != nil) != kept {
				t.Errorf("in the catalog: %v", !kept)
			}
			if _, err := os.Stat(filepath.Join(dir, "a-1")); (err == nil) != kept {
				t.Errorf("its directory: %v", err)
			}
		})
	}
}

// TestDeletionSparesOlderTopic: a directory that belongs to an older topic of the name was not taken for the topic's, and does not go with it.
func TestDeletionSparesOlderTopic(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	b.dial().create("a", 2)
	b.stopClean()
	older := filepath.Join(dir, "a-0")
	if err := os.WriteFile(filepath.Join(older, "partition.metadata"), []byte("version: 0\ntopic_id: kALPolkCTO2ScoCqTgFPoQ"), 0o644); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, dir)
	if err := b.deleteTopics(t.Context(), []*topic{b.topics.name("a")}); err != nil {
		t.Fatal(err)
	}
	if b.exists(meta.TopicPath("a")) {
		t.Error("the topic is in the tree still")
	}
	if _, err := os.Stat(filepath.Join(older, "partition.metadata")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the topic's own directory: %v", err)
	}
}

// TestLeaderOfLostAnswer: a change of leaders that was made although its answer was lost is made known by the next look.
func TestLeaderOfLostAnswer(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	b.dial().create("a", 1)
	s := b.seated()
	topics, err := b.control.LoadTopics(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.control.ElectLeaders(t.Context(), topics, nil); err != nil {
		t.Fatal(err)
	}
	b.view.Store(&view{self: b.nodeID, controller: b.nodeID}) // as before this broker was seen
	if _, err := b.control.ElectLeaders(t.Context(), topics, []int32{b.nodeID}); err != nil {
		t.Fatal(err)
	}
	if err := s.followBrokers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.topics.name("a").partition(0).epoch(), topics[0].Partitions[0].LeaderEpoch; got != want {
		t.Errorf("leader epoch %d is known, the tree has %d", got, want)
	}
}

// deafTree sets no watch until the context ends.
type deafTree struct{ sharedTree }

func (deafTree) Watch(ctx context.Context, _ string) (<-chan meta.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestWatchIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if _, err := (patientTree{deafTree{}}).Watch(t.Context(), "/a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != treePatience {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
	})
}

// hearingTree sets its watches at once.
type hearingTree struct{ sharedTree }

func (hearingTree) Watch(ctx context.Context, _ string) (<-chan meta.Event, error) {
	events := make(chan meta.Event)
	context.AfterFunc(ctx, func() { close(events) })
	return events, nil
}

// TestWatchOutlivesPatience: a watch that was set in time ends with its context only.
func TestWatchOutlivesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		events, err := (patientTree{hearingTree{}}).Watch(ctx, "/a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * treePatience)
		select {
		case <-events:
			t.Fatal("it ended")
		default:
		}
		cancel()
		<-events
	})
}

// TestUnregisteredControllerStands: a controller whose session ended unnoticed, as after it stood still, finds everybody alive but itself. It must not
// make leaderless what it leads.
func TestUnregisteredControllerStands(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	b.dial().create("a", 1)
	s := b.seated()
	if err := b.tree.Multi(t.Context(), meta.DeleteOp(meta.BrokerPath(b.nodeID), meta.AnyVersion)); err != nil {
		t.Fatal(err)
	}
	if err := s.followBrokers(t.Context()); !errors.Is(err, errNotRegistered) {
		t.Errorf("followed with %v", err)
	}
	if p := b.topics.name("a").partition(0); !p.lead.Load().led || !b.view.Load().lives(b.nodeID) {
		t.Error("its own partition has no leader")
	}
}
