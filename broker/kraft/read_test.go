package kraft

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
)

// golden is what Apache Kafka 4.4.0 left after: format, start, topic t1 of three partitions with two keys, t2 made and deleted, t3 made by an
// idempotent producer, clean stop. DumpLogSegments says the same as the tests below.
const golden = "testdata/kafka-4.4.0"

// secured is what Kafka 4.4.0 left after: topics a (then grown to three partitions), b and gone (then deleted), two ACLs of which one was
// removed, a SCRAM credential, two quotas, a broker setting, a producer. Its last snapshot is of the moment before the stop.
const secured = "testdata/kafka-4.4.0-secured"

// TestSnapshotIsAsGoodAsTheLog reads both and compares.
func TestSnapshotIsAsGoodAsTheLog(t *testing.T) {
	const snapshotName = "00000000000000000042-0000000001.checkpoint"
	both := copyFrom(t, secured, -1)
	withSnapshot := mustRead(t, both, "/d")
	if err := both.Remove("/d/" + snapshotName); err != nil {
		t.Fatal(err)
	}
	alone := mustRead(t, both, "/d")
	withSnapshot.Image.unknown, alone.Image.unknown = nil, nil // a snapshot has no empty records
	if !reflect.DeepEqual(withSnapshot, alone) {
		t.Errorf("with snapshot:\n%+v\nlog alone:\n%+v", withSnapshot.Image, alone.Image)
	}
	m := alone.Image
	if names := m.TopicNames(); !slices.Equal(names, []string{"a", "b"}) || len(m.Topic("a").Partitions) != 3 {
		t.Errorf("topics %v", names)
	}
	if m.ACLs() != 1 || m.Credentials() != 1 || m.Tokens() != 0 {
		t.Errorf("%d ACLs, %d credentials, %d tokens", m.ACLs(), m.Credentials(), m.Tokens())
	}
	if q := m.Quotas(); len(q) != 1 || *q[0].Entity["user"] != "u1" || q[0].Values["producer_byte_rate"] != 1024 || q[0].Values["consumer_byte_rate"] != 5 {
		t.Errorf("quotas %+v", q)
	}
	if m.Configs[Resource{BrokerResource, ""}]["log.cleaner.threads"] != "2" || m.Configs[Resource{TopicResource, "gone"}] != nil {
		t.Errorf("configurations %v", m.Configs)
	}
}

// TestWriteKeepsWhatIsNotOurs: what is said of ACLs and quotas is not touched.
func TestWriteKeepsWhatIsNotOurs(t *testing.T) {
	mem := copyFrom(t, secured, -1)
	w := wanted(t)
	if _, err := Write(mem, "/d", w); err != nil {
		t.Fatal(err)
	}
	st := mustRead(t, mem, "/d")
	check(t, st, w)
	if m := st.Image; m.ACLs() != 1 || len(m.Quotas()) != 1 || m.Credentials() != 1 {
		t.Errorf("%d ACLs, quotas %v, %d credentials", m.ACLs(), m.Quotas(), m.Credentials())
	}
	client := "c"
	w.Quotas = []Quota{{map[string]*string{"user": nil, "client-id": &client}, map[string]float64{"request_percentage": 12.5}}}
	if _, err := Write(mem, "/d", w); err != nil {
		t.Fatal(err)
	}
	if q := mustRead(t, mem, "/d").Image.Quotas(); !reflect.DeepEqual(q, w.Quotas) {
		t.Errorf("quotas %+v", q)
	}
	if again, err := Write(mem, "/d", w); err != nil || again.Records != 0 {
		t.Errorf("the second time: %+v %v", again, err)
	}
}

// copyIn puts the golden files into a file system in memory, cut to size where that is not negative.
func copyIn(t testing.TB, cut int64) vfs.FS {
	t.Helper()
	return copyFrom(t, golden, cut)
}

func copyFrom(t testing.TB, from string, cut int64) vfs.FS {
	t.Helper()
	mem := crashfs.New()
	if err := mem.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
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
