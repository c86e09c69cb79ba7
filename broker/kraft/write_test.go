package kraft

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

func wanted(t testing.TB) *Wanted {
	t.Helper()
	levels, ok := Release("4.4")
	if !ok {
		t.Fatal("4.4 is not known")
	}
	dir := [16]byte{15: 9}
	part := func(epoch int32) Partition { return Partition{LeaderEpoch: epoch, Directories: [][16]byte{dir}} }
	return &Wanted{
		Node: 1,
		Topics: []*Topic{
			{Name: "a", ID: [16]byte{1}, Partitions: map[int32]Partition{0: part(7), 1: part(0)}},
			{Name: "b", ID: [16]byte{2}, Partitions: map[int32]Partition{0: part(3)}},
		},
		Configs:        map[string]map[string]string{"a": {"cleanup.policy": "compact"}},
		NextProducerID: 5000, LogDirs: [][16]byte{dir}, Features: levels, NowMs: 1_700_000_000_000,
	}
}

// check compares what is there with what was wanted.
func check(t *testing.T, st *State, w *Wanted) {
	t.Helper()
	m := st.Image
	if len(m.Topics) != len(w.Topics) || m.NextProducerID != max(w.NextProducerID, m.NextProducerID) {
		t.Errorf("topics %v, next producer id %d", m.TopicNames(), m.NextProducerID)
	}
	for _, want := range w.Topics {
		have := m.Topic(want.Name)
		if have == nil || have.ID != want.ID || len(have.Partitions) != len(want.Partitions) {
			t.Fatalf("topic %s is %+v", want.Name, have)
		}
		for n, p := range want.Partitions {
			got := have.Partitions[n]
			if got.LeaderEpoch < p.LeaderEpoch || !slices.Equal(got.ISR, []int32{w.Node}) || !slices.Equal(got.Replicas, []int32{w.Node}) ||
				got.Leader != -1 || !slices.Equal(got.Directories, p.Directories) {
				t.Errorf("%s-%d is %+v", want.Name, n, got)
			}
		}
		if keys := m.Configs[Resource{TopicResource, want.Name}]; !maps.Equal(keys, w.Configs[want.Name]) {
			t.Errorf("keys of %s: %v, want %v", want.Name, keys, w.Configs[want.Name])
		}
	}
}

func TestWriteWithoutMetadataBefore(t *testing.T) {
	mem := crashfs.New()
	if err := mem.MkdirAll("/k"); err != nil {
		t.Fatal(err)
	}
	w := wanted(t)
	res, err := Write(mem, "/k/"+DirName, w)
	if err != nil {
		t.Fatal(err)
	}
	st := mustRead(t, mem, "/k/"+DirName)
	check(t, st, w)
	if !maps.Equal(st.Image.Features, w.Features) || st.Image.Brokers[1].Epoch != res.BrokerEpoch || st.End != int64(res.Records) {
		t.Errorf("features %v, broker %+v, end %d after %+v", st.Image.Features, st.Image.Brokers[1], st.End, res)
	}
	again, err := Write(mem, "/k/"+DirName, w)
	if err != nil || again.Records != 0 || again.BrokerEpoch != res.BrokerEpoch {
		t.Errorf("the second time: %+v %v", again, err)
	}
}

// TestWriteAfterKafka: what Kafka wrote stays, what differs is said.
func TestWriteAfterKafka(t *testing.T) {
	mem := copyIn(t, -1)
	before := mustRead(t, mem, "/d").Image
	w := wanted(t)
	keep := *before.Topic("t1")
	keep.Partitions = maps.Clone(keep.Partitions)
	for n, p := range keep.Partitions {
		p.LeaderEpoch = 4
		keep.Partitions[n] = p
	}
	w.Topics = append(w.Topics, &keep)
	w.Configs["t1"] = map[string]string{"segment.bytes": "2097152", "retention.ms": "1"}
	res, err := Write(mem, "/d", w)
	if err != nil {
		t.Fatal(err)
	}
	st := mustRead(t, mem, "/d")
	check(t, st, w)
	if res.BrokerEpoch != 11 || st.Base != 38 || st.End != 38+int64(res.Records) || st.Image.Features[metadataVersion] != 33 {
		t.Errorf("%+v, base %d, end %d", res, st.Base, st.End)
	}
	if again, err := Write(mem, "/d", w); err != nil || again.Records != 0 {
		t.Errorf("the second time: %+v %v", again, err)
	}
}

// TestWriteAfterTornTail: the tail goes before something follows it.
func TestWriteAfterTornTail(t *testing.T) {
	mem := copyIn(t, 2700)
	w := wanted(t)
	if _, err := Write(mem, "/d", w); err != nil {
		t.Fatal(err)
	}
	check(t, mustRead(t, mem, "/d"), w)
}

// TestWriteManyRecords needs several batches.
func TestWriteManyRecords(t *testing.T) {
	mem := copyIn(t, -1)
	w := wanted(t)
	big := &Topic{Name: "big", ID: [16]byte{3}, Partitions: map[int32]Partition{}}
	for n := range int32(5000) {
		big.Partitions[n] = Partition{LeaderEpoch: n, Directories: [][16]byte{{15: 9}}}
	}
	w.Topics = append(w.Topics, big)
	if _, err := Write(mem, "/d", w); err != nil {
		t.Fatal(err)
	}
	check(t, mustRead(t, mem, "/d"), w)
}

// TestWriteIsAllOrNothing cuts the power after every call that changes something.
func TestWriteIsAllOrNothing(t *testing.T) {
	for _, dir := range []string{"/d", "/k/" + DirName} {
		w := wanted(t)
		for step := 0; ; step++ {
			mem := copyIn(t, 2700).(*crashfs.FS)
			if err := mem.MkdirAll("/k"); err != nil {
				t.Fatal(err)
			}
			if err := mem.SyncAll("/"); err != nil {
				t.Fatal(err)
			}
			faulty := faultfs.New(mem)
			faulty.Add(faultfs.Rule{Match: func(o faultfs.Op) bool { return o.Kind.Changes() }, After: step, Err: errors.New("power is gone")})
			_, err := Write(faulty, dir, w)
			after := mem.CrashClone(rand.New(rand.NewPCG(uint64(step), 1)), crashfs.Random())
			again(t, after, dir, w)
			if err == nil {
				break
			}
		}
	}
}

func again(t *testing.T, fsys vfs.FS, dir string, w *Wanted) {
	t.Helper()
	if _, err := Write(fsys, dir, w); err != nil {
		t.Fatalf("after the crash: %v", err)
	}
	check(t, mustRead(t, fsys, dir), w)
}
