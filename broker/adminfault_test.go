package broker

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
)

// faultyBroker is one whose file system fails as its rules say.
func faultyBroker(t *testing.T, settings ...string) (*testBroker, *faultfs.FS) {
	t.Helper()
	faults := faultfs.New(vfs.OS())
	b := newBroker(t, Config{FS: faults}, t.TempDir(), settings...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	return b, faults
}

// counts says which calls fail. A failed sync is final for its partition and has tests of its own.
func counts(o faultfs.Op) bool {
	switch o.Kind {
	case faultfs.Create, faultfs.MkdirAll, faultfs.Write, faultfs.Rename, faultfs.Remove, faultfs.RemoveAll, faultfs.Open, faultfs.Truncate:
		return true
	}
	return false
}

// Each call of the file system below a topic's creation fails once, in turn. Either the topic is there and works, or the answer says why not,
// nothing of it is left, and the same request works right after.
func TestCreateTopicsWithFaults(t *testing.T) {
	b, faults := faultyBroker(t, "auto.create.topics.enable", "false")
	c := b.dial()
	for n := 0; ; n++ {
		name := fmt.Sprint("t", n)
		remove := faults.Add(faultfs.Rule{After: n, Times: 1, Err: syscall.ENOSPC, Match: counts})
		faults.Record()
		got := ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(newTopic(name, 2, 1))).Topics[0]
		remove()
		made := 0
		for _, o := range faults.Transcript() {
			if counts(o) {
				made++
			}
		}
		switch got.ErrorCode {
		case 0:
		case kerr.KafkaStorageError.Code:
			if m := c.described(name); m.ErrorCode != kerr.UnknownTopicOrPartition.Code {
				t.Errorf("call %d: refused topic is described with error %d", n, m.ErrorCode)
			}
			got = ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(newTopic(name, 2, 1))).Topics[0]
			if got.ErrorCode != 0 {
				t.Errorf("call %d: creating again: %d %s", n, got.ErrorCode, text(got.ErrorMessage))
			}
		default:
			t.Errorf("call %d: error %d %s", n, got.ErrorCode, text(got.ErrorMessage))
		}
		for p := range int32(2) {
			if got := c.produce(name, p, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 {
				t.Errorf("call %d: produce to partition %d: error %d", n, p, got.ErrorCode)
			}
		}
		if made <= n {
			t.Logf("%d calls", n)
			return
		}
	}
}

// A directory that cannot be renamed keeps its name taken, and nothing else: the topic is gone for clients, other topics come and go, and the name is free
// when the directory is.
func TestDeleteTopicsWithFaults(t *testing.T) {
	b, faults := faultyBroker(t, "auto.create.topics.enable", "false")
	c := b.dial()
	for _, name := range []string{"stuck", "free"} {
		c.create(name, 2)
	}
	heal := faults.Add(faultfs.Rule{Kind: faultfs.Rename, Path: "stuck-1", Err: syscall.EIO})
	for _, got := range ask[*kmsg.DeleteTopicsResponse](c, 6, deleteRequest("stuck", "free")).Topics {
		if got.ErrorCode != 0 {
			t.Errorf("deleting %s: %d %s", text(got.Topic), got.ErrorCode, text(got.ErrorMessage))
		}
	}
	if got := c.list(); len(got) != 0 {
		t.Errorf("topics are %v", got)
	}
	c.create("free", 2)
	got := ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(newTopic("stuck", 1, 1))).Topics[0]
	if got.ErrorCode != kerr.TopicAlreadyExists.Code {
		t.Errorf("creating it while a directory is left: error %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	heal()
	c.create("stuck", 2)
	for p := range int32(2) {
		if got := c.produce("stuck", p, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 || got.BaseOffset != 0 {
			t.Errorf("produce to partition %d: error %d, offset %d", p, got.ErrorCode, got.BaseOffset)
		}
	}
}

// Partitions whose directories could not be made are there when they can be, at the latest with the next request for the topic.
func TestCreatePartitionsWithFaults(t *testing.T) {
	b, faults := faultyBroker(t)
	c := b.dial()
	c.create("a", 1)
	full := faults.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Path: "a-2", Err: syscall.ENOSPC})
	if got := ask[*kmsg.CreatePartitionsResponse](c, 3, growRequest("a", 3)).Topics[0]; got.ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("on a full disk: error %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	if n := len(c.described("a").Partitions); n != 1 {
		t.Errorf("%d partitions are described, want the one that works", n)
	}
	full()
	if got := ask[*kmsg.CreatePartitionsResponse](c, 3, growRequest("a", 4)).Topics[0]; got.ErrorCode != 0 {
		t.Errorf("with room again: error %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	for p := range int32(4) {
		if got := c.produce("a", p, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 {
			t.Errorf("produce to partition %d: error %d", p, got.ErrorCode)
		}
	}
}
