package logdir

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"gregor/log/vfs/crashfs"
)

func TestLook(t *testing.T) {
	mem := crashfs.New()
	for _, d := range []string{"a-0", "a-1", "b-0.0123456789abcdef0123456789abcdef-delete", "c-0.0123456789abcdef0123456789abcdef-future", "x", metadataDir} {
		if err := mem.MkdirAll("/d/" + d); err != nil {
			t.Fatal(err)
		}
	}
	id := [16]byte{1, 2, 3}
	for name, text := range map[string]string{
		metaFile:                           "#\n#Tue Dec 01 02:13:09 UTC 2026\nnode.id=7\ndirectory.id=xchcnpMtUkYILaQP2fty8A\nversion=1\ncluster.id=rPvUg7q5SgC9f4CACs7tTg\n",
		markerFile:                         `{"version":0,"brokerEpoch":11}`,
		cleanerCheckpoint:                  "0\n1\na 0 5\n",
		"a-0/" + topicIDFile:               string(formatTopicID(id)),
		"recovery-point-offset-checkpoint": "0\n1\na 0 9\n",
		"log-start-offset-checkpoint":      "nonsense",
	} {
		if err := writeNew(mem, "/d/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Look(mem, "/d")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Identity{Version: 1, BrokerID: 7, ClusterID: "rPvUg7q5SgC9f4CACs7tTg", DirectoryID: "xchcnpMtUkYILaQP2fty8A"}); s.Identity != want {
		t.Errorf("identity %+v", s.Identity)
	}
	if !s.Clean || s.BrokerEpoch != 11 || len(s.Ignored) != 1 {
		t.Errorf("clean %v, epoch %d, ignored %v", s.Clean, s.BrokerEpoch, s.Ignored)
	}
	a0 := TopicPartition{Topic: "a"}
	if s.Cleaned[a0] != 5 || s.RecoveryPoints[a0] != 9 || len(s.Partitions) != 2 || s.Partitions[0].TopicID != id {
		t.Errorf("%+v", s)
	}
	kinds := map[string]int{}
	for _, o := range s.Others {
		kinds[o.Kind]++
	}
	if !reflect.DeepEqual(kinds, map[string]int{"delete": 1, "future": 1, "foreign": 1, "metadata": 1}) {
		t.Errorf("others %v", s.Others)
	}
}

func TestLookWithoutIdentity(t *testing.T) {
	mem := crashfs.New()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	s, err := Look(mem, "/d")
	if err != nil || s.Identity.Version != -1 || s.Clean || s.BrokerEpoch != -1 || s.Partitions != nil {
		t.Errorf("%+v %v", s, err)
	}
	if err := writeNew(mem, "/d/"+metaFile, []byte("version=9")); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(mem, "/d"); err == nil {
		t.Error("meta.properties of version 9 is accepted")
	}
}

func TestWriteIdentityBothVersions(t *testing.T) {
	mem := crashfs.New()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []Identity{
		{Version: 1, BrokerID: 3, ClusterID: "rPvUg7q5SgC9f4CACs7tTg", DirectoryID: "xchcnpMtUkYILaQP2fty8A"},
		{Version: 0, BrokerID: 3, ClusterID: "rPvUg7q5SgC9f4CACs7tTg"},
	} {
		if err := WriteIdentity(mem, "/d", id, time.UnixMilli(0)); err != nil {
			t.Fatal(err)
		}
		if err := WriteMarker(mem, "/d", 5); err != nil {
			t.Fatal(err)
		}
		s, err := Look(mem, "/d")
		if err != nil || s.Identity != id || s.BrokerEpoch != 5 {
			t.Errorf("%+v %v, want %+v", s, err, id)
		}
	}
}

func TestLookIsKeptOut(t *testing.T) {
	mem := crashfs.New()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := LockForLook(mem, "/d"); err != nil {
		t.Fatal(err)
	}
	if entries, err := mem.List("/d"); err != nil || len(entries) != 0 {
		t.Errorf("looking made %v, %v", entries, err)
	}
	lock, err := Lock(mem, "/d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockForLook(mem, "/d"); !errors.Is(err, ErrInUse) {
		t.Errorf("second lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}
