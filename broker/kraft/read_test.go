package kraft

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
)

// golden is what Apache Kafka 4.4.0 left after: format, start, topic t1 of three partitions with two keys, t2 made and deleted, t3 made by an
// idempotent producer, clean stop. DumpLogSegments says the same as the tests below.
const golden = "testdata/kafka-4.4.0"

// copyIn puts the golden files into a file system in memory, cut to size where that is not negative.
func copyIn(t testing.TB, cut int64) vfs.FS {
	t.Helper()
	mem := crashfs.New()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(golden, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if cut >= 0 && filepath.Ext(e.Name()) == ".log" {
			b = b[:cut]
		}
		put(t, mem, "/d/"+e.Name(), b)
	}
	return mem
}

func put(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	if err := writeFile(fsys, name, b); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, fsys vfs.FS, dir string) *State {
	t.Helper()
	st, err := Read(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestReadsWhatKafkaWrote(t *testing.T) {
	st := mustRead(t, copyIn(t, -1), "/d")
	m := st.Image
	if st.End != 38 || st.Epoch != 1 || st.Torn != 0 || st.Base != 0 {
		t.Errorf("end %d, epoch %d, torn %d, base %d", st.End, st.Epoch, st.Torn, st.Base)
	}
	if names := m.TopicNames(); len(names) != 2 || names[0] != "t1" || names[1] != "t3" {
		t.Errorf("topics %v", names)
	}
	t1 := m.Topic("t1")
	if len(t1.Partitions) != 3 || m.Topic("t2") != nil {
		t.Errorf("t1 is %+v, t2 is %+v", t1, m.Topic("t2"))
	}
	p := t1.Partitions[2]
	if p.Leader != -1 || p.LeaderEpoch != 1 || len(p.Replicas) != 1 || p.Replicas[0] != 1 || len(p.ISR) != 0 || len(p.Directories) != 1 {
		t.Errorf("t1-2 is %+v", p)
	}
	if keys := m.Configs[Resource{TopicResource, "t1"}]; len(keys) != 2 || keys["cleanup.policy"] != "compact" || keys["segment.bytes"] != "1048576" {
		t.Errorf("keys of t1: %v", keys)
	}
	if m.NextProducerID != 1000 || m.Features[metadataVersion] != 33 || m.Features["transaction.version"] != 2 || m.Brokers[1].Epoch != 11 {
		t.Errorf("next producer id %d, features %v, brokers %v", m.NextProducerID, m.Features, m.Brokers)
	}
	if len(m.Brokers[1].LogDirs) != 1 || m.Brokers[1].LogDirs[0] != p.Directories[0] {
		t.Errorf("broker %+v, directory of t1-2 %v", m.Brokers[1], p.Directories)
	}
}

// TestCutAnywhere: whatever is left of the log's end, what is whole counts and the rest is torn.
func TestCutAnywhere(t *testing.T) {
	size := int64(2733)
	last := int64(0)
	for cut := range size {
		st := mustRead(t, copyIn(t, cut), "/d")
		if st.End < last || st.Torn < 0 || st.Torn > cut {
			t.Fatalf("cut to %d bytes: end %d after %d, torn %d", cut, st.End, last, st.Torn)
		}
		last = st.End
	}
	if last != 37 {
		t.Errorf("one byte short: end %d", last)
	}
}

func TestDamageIsNamed(t *testing.T) {
	mem := copyIn(t, -1)
	whole, err := snapshotOf(features(wanted(t)), 1)
	if err != nil {
		t.Fatal(err)
	}
	const name = "/d/00000000000000000038-0000000001.checkpoint"
	put(t, mem, name, whole)
	if st := mustRead(t, mem, "/d"); len(st.Image.TopicNames()) != 0 || st.Image.Features[metadataVersion] != 33 || st.End != 38 {
		t.Errorf("snapshot at the log's end: %+v", st)
	}
	put(t, mem, name, whole[:len(whole)-75]) // its footer is gone
	var damage *DamageError
	if _, err := Read(mem, "/d"); !errors.As(err, &damage) || filepath.Ext(damage.File) != ".checkpoint" {
		t.Errorf("snapshot without footer: %v", err)
	}
	mem = copyIn(t, -1)
	b, err := os.ReadFile(filepath.Join(golden, segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	put(t, mem, "/d/"+segmentName(0), b)
	put(t, mem, "/d/"+segmentName(38), nil) // so that it is not the newest
	if _, err := Read(mem, "/d"); !errors.As(err, &damage) || damage.Pos != 91 {
		t.Errorf("damage in an older segment: %v", err)
	}
	mem = copyIn(t, -1)
	put(t, mem, "/d/"+segmentName(40), nil)
	if _, err := Read(mem, "/d"); !errors.As(err, &damage) {
		t.Errorf("a hole: %v", err)
	}
	if _, err := Read(mem, "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
