package adopt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/log/batch"
	"gregor/log/logdir"
	"gregor/log/producer"
	"gregor/log/vfs/crashfs"
)

// fixture is a directory of a broker with ZooKeeper in memory: topic t of two partitions, of which Kafka compacted the second, and its offsets.
type fixture struct {
	t   *testing.T
	mem *crashfs.FS
}

const metaProperties = "version=0\nbroker.id=3\ncluster.id=rPvUg7q5SgC9f4CACs7tTg\n"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t, crashfs.New()}
	f.put("/a/meta.properties", metaProperties)
	f.put("/a/.kafka_cleanshutdown", "")
	f.put("/a/cleaner-offset-checkpoint", "0\n1\nt 1 2\n")
	f.put("/a/recovery-point-offset-checkpoint", "0\n2\nt 0 3\nt 1 3\n")
	for n := range 2 {
		dir := fmt.Sprint("/a/t-", n)
		f.put(dir+"/00000000000000000000.log", f.batch(0, 7, 3))
		f.put(dir+"/partition.metadata", "version: 0\ntopic_id: kALPolkCTO2ScoCqTgFPoQ")
		f.put(dir+"/leader-epoch-checkpoint", "0\n2\n0 0\n5 1\n")
	}
	return f
}

func (f *fixture) put(name, content string) {
	f.t.Helper()
	if err := f.mem.MkdirAll(name[:strings.LastIndexByte(name, '/')]); err != nil {
		f.t.Fatal(err)
	}
	if err := f.mem.RemoveAll(name); err != nil {
		f.t.Fatal(err)
	}
	file, err := f.mem.Create(name)
	if err == nil {
		_, err = file.WriteAt([]byte(content), 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// batch is n records from an offset on, of an idempotent producer.
func (f *fixture) batch(offset, producerID int64, n int) string {
	f.t.Helper()
	var b batch.Builder
	b.Reset(batch.Options{BaseOffset: offset, LeaderEpoch: 5, Producer: &batch.Producer{ID: producerID}})
	for i := range n {
		b.Append(1000, fmt.Append(nil, i), []byte("value"))
	}
	out, err := b.Finish(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(out)
}

func (f *fixture) inspect(o Options) *Plan {
	f.t.Helper()
	if o.Dirs == nil {
		o.Dirs = []string{"/a"}
	}
	o.FS = f.mem
	p, err := Inspect(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func TestInspectZooKeeper(t *testing.T) {
	p := newFixture(t).inspect(Options{Full: true})
	if p.Err() != nil || p.ClusterID != "rPvUg7q5SgC9f4CACs7tTg" || p.NodeID != 3 || len(p.Topics) != 1 || p.KRaft {
		t.Fatalf("%+v", p)
	}
	top := p.Topics[0]
	if controller.FormatID(top.ID) != "kALPolkCTO2ScoCqTgFPoQ" || top.NewID || len(top.Partitions) != 2 {
		t.Errorf("%+v", top)
	}
	if part := top.Partitions[1]; part.LeaderEpoch != 5 || part.End != 3 || part.Formats != [3]int{0, 0, 1} || part.Segments != 1 {
		t.Errorf("%+v", part)
	}
	if top.Source != FromCaution || top.Config["cleanup.policy"] != "compact" || top.Config["retention.ms"] != "-1" {
		t.Errorf("%s %v", top.Source, top.Config)
	}
	if p.NextProducerID != producerBlock+producerReserve {
		t.Errorf("next producer id %d", p.NextProducerID)
	}
	a := p.Adoption()
	if len(a.Topics) != 1 || a.Topics[0].Partitions[0].LeaderEpoch != 6 || a.NextProducerID != p.NextProducerID || a.ClusterID != p.ClusterID {
		t.Errorf("%+v", a)
	}
	var text strings.Builder
	if err := p.Print(&text); err != nil || !strings.Contains(text.String(), "t, id kALPolkCTO2ScoCqTgFPoQ: 2 partitions") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestFindings: each change to the directory is noticed.
func TestFindings(t *testing.T) {
	const id = "version: 0\ntopic_id: "
	cases := map[string]struct {
		change func(f *fixture)
		opts   Options
		// what the plan must say, and where
		blocked, lost, note string
	}{
		"two clusters": {
			change:  func(f *fixture) { f.put("/b/meta.properties", "version=0\nbroker.id=3\ncluster.id=other\n") },
			opts:    Options{Dirs: []string{"/a", "/b"}},
			blocked: "belongs to cluster other",
		},
		"two brokers": {
			change:  func(f *fixture) { f.put("/b/meta.properties", strings.Replace(metaProperties, "3", "4", 1)) },
			opts:    Options{Dirs: []string{"/a", "/b"}},
			blocked: "belongs to broker 4",
		},
		"twice": {
			change: func(f *fixture) {
				f.put("/b/meta.properties", metaProperties)
				f.put("/b/t-0/00000000000000000000.log", "")
			},
			opts:    Options{Dirs: []string{"/a", "/b"}},
			blocked: "/a/t-0 and /b/t-0 are the same partition",
		},
		"KRaft without metadata": {
			change:  func(f *fixture) { f.put("/a/meta.properties", "version=1\nnode.id=3\ncluster.id=x\n") },
			blocked: "name the one of metadata.log.dir",
		},
		"a partition is elsewhere": {
			change:  func(f *fixture) { f.put("/a/t-3/00000000000000000000.log", "") },
			blocked: "topic t: partitions 2 of 4 are not in these directories",
		},
		"a partition is elsewhere, allowed": {
			change: func(f *fixture) { f.put("/a/t-3/00000000000000000000.log", "") },
			opts:   Options{AllowMissing: true},
			lost:   "topic t: partitions 2 of 4 are not here and will be made empty",
		},
		"an absurd number": {
			change:  func(f *fixture) { f.put("/a/t-2147483646/00000000000000000000.log", "") },
			blocked: "no topic has 2147483647 partitions",
		},
		"another id":       {change: func(f *fixture) { f.put("/a/t-1/partition.metadata", id+"AAAAAAAAAAAAAAAAAAAABQ") }, blocked: "older topic of that name"},
		"an id is damaged": {change: func(f *fixture) { f.put("/a/t-1/partition.metadata", "what") }, blocked: "partition.metadata cannot be read"},
		"damage below the recovery point": {
			change: func(f *fixture) {
				f.put("/a/t-1/00000000000000000000.log", strings.Replace(f.batch(0, 7, 3), "value", "other", 1))
			},
			opts:    Options{Full: true},
			blocked: "is damaged at byte 0",
		},
		"a torn tail": {
			change: func(f *fixture) {
				whole := f.batch(0, 7, 3)
				f.put("/a/t-1/00000000000000000000.log", whole+whole[:30])
				if err := f.mem.Remove("/a/.kafka_cleanshutdown"); err != nil {
					f.t.Fatal(err)
				}
			},
			opts: Options{Full: true},
			note: "will be cut off",
		},
		"an offset goes back": {
			change:  func(f *fixture) { f.put("/a/t-1/00000000000000000000.log", f.batch(5, 7, 3)+f.batch(5, 7, 3)) },
			opts:    Options{Full: true},
			blocked: "offset 7 is below 8",
		},
		"future":  {change: func(f *fixture) { f.put("/a/t-0.0123456789abcdef0123456789abcdef-future/x", "") }, lost: "a move between log directories"},
		"stray":   {change: func(f *fixture) { f.put("/a/t-0.0123456789abcdef0123456789abcdef-stray/x", "") }, lost: "put it aside"},
		"delete":  {change: func(f *fixture) { f.put("/a/t-0.0123456789abcdef0123456789abcdef-delete/x", "") }, note: "will be deleted"},
		"foreign": {change: func(f *fixture) { f.put("/a/lost+found/x", "") }, note: "is no partition"},
		"no log":  {change: func(f *fixture) { f.put("/a/x-0/y", "") }, note: "has no log in it"},
		"unclean": {change: func(f *fixture) {
			if err := f.mem.Remove("/a/.kafka_cleanshutdown"); err != nil {
				f.t.Fatal(err)
			}
		}, note: "was not stopped cleanly"},
		"an unfinished compaction": {change: func(f *fixture) { f.put("/a/t-0/00000000000000000000.log.swap", "") }, note: "compaction that was not finished"},
		"tiered": {
			change: func(*fixture) {},
			opts:   Options{Configs: Configs{Topics: map[string]map[string]string{"t": {"remote.storage.enable": "true"}}}},
			lost:   "topic t is tiered",
		},
		"log start below the first segment": {
			change: func(f *fixture) {
				f.put("/a/log-start-offset-checkpoint", "0\n1\nt 0 0\n")
				f.put("/a/t-0/00000000000000000010.log", f.batch(10, 7, 3))
				if err := f.mem.Remove("/a/t-0/00000000000000000000.log"); err != nil {
					f.t.Fatal(err)
				}
			},
			note: "begins at offset 10, its log start was 0",
		},
		"a key that is not accepted": {
			change: func(*fixture) {},
			opts: Options{
				Configs: Configs{Topics: map[string]map[string]string{"t": {"bad": "1", "good": "2"}}},
				CheckConfig: func(keys map[string]string) error {
					if _, ok := keys["bad"]; ok {
						return errors.New("no such key")
					}
					return nil
				},
			},
			lost: "topic t: bad=1 (no such key)",
		},
		"the file is older": {
			change:  func(*fixture) {},
			opts:    Options{Configs: Configs{Described: map[string]Described{"t": {Partitions: 1}}}},
			blocked: "the file says that topic t has 1 partitions",
		},
		"the file has another id": {
			change:  func(*fixture) {},
			opts:    Options{Configs: Configs{Described: map[string]Described{"t": {ID: [16]byte{9}, Partitions: 2}}}},
			blocked: "the file has",
		},
		"the file has a topic more": {
			change: func(*fixture) {},
			opts:   Options{Configs: Configs{Topics: map[string]map[string]string{"u": {}}}},
			note:   "names topic u",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c.change(f)
			p := f.inspect(c.opts)
			for _, l := range []struct {
				what, want string
				in         []string
			}{{"blockers", c.blocked, p.Blockers}, {"lost", c.lost, p.Lost}, {"notes", c.note, p.Notes}} {
				if l.want != "" && !strings.Contains(strings.Join(l.in, "\n"), l.want) {
					t.Errorf("%s are %q, want %q", l.what, l.in, l.want)
				}
			}
			if c.blocked == "" && p.Err() != nil {
				t.Errorf("blocked: %v", p.Err())
			}
		})
	}
}

func TestInUse(t *testing.T) {
	f := newFixture(t)
	lock, err := logdir.Lock(f.mem, "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := Inspect(t.Context(), Options{FS: f.mem, Dirs: []string{"/a"}}); !errors.Is(err, logdir.ErrInUse) {
		t.Errorf("%v", err)
	}
	if _, err := Inspect(t.Context(), Options{FS: f.mem, Dirs: []string{"/none"}}); err == nil {
		t.Error("a directory that does not exist is accepted")
	}
}

func TestEmpty(t *testing.T) {
	f := newFixture(t)
	f.put("/b/x", "")
	f.put("/k/__cluster_metadata-0/x", "")
	for dir, want := range map[string]bool{"/none": true, "/b": true, "/a": false, "/k": false} {
		if got, err := Empty(Options{FS: f.mem, Dirs: []string{dir}}); err != nil || got != want {
			t.Errorf("%s: %v %v", dir, got, err)
		}
	}
}

// TestProducerIDsFromEverywhere: snapshots, batches and transactions.
func TestProducerIDsFromEverywhere(t *testing.T) {
	f := newFixture(t)
	f.put("/a/t-0/00000000000000000003.snapshot", string(producer.EncodeEntries(nil, []producer.Entry{{ProducerID: 41_999, LastSequence: -1, LastOffset: -1}})))
	if p := f.inspect(Options{}); p.NextProducerID != 42_000+producerReserve {
		t.Errorf("snapshot: %d", p.NextProducerID)
	}
	f.put("/a/__transaction_state-0/00000000000000000000.log", f.transaction("x", 77_000, 1))
	p := f.inspect(Options{})
	if p.NextProducerID != 78_000+producerReserve || p.Transactions != (Transactions{IDs: 1, Open: 1}) {
		t.Errorf("transaction: %d %+v", p.NextProducerID, p.Transactions)
	}
	f.put("/a/t-1/00000000000000000000.log", f.batch(0, 99_000, 1))
	if p := f.inspect(Options{Full: true}); p.NextProducerID != 100_000+producerReserve {
		t.Errorf("batch: %d", p.NextProducerID)
	}
}

// transaction is a record of __transaction_state.
func (f *fixture) transaction(id string, producerID int64, state int8) string {
	f.t.Helper()
	key := kmsg.TxnMetadataKey{TransactionalID: id}
	value := kmsg.NewTxnMetadataValue()
	value.ProducerID, value.State = producerID, kmsg.TransactionState(state)
	var b batch.Builder
	b.Reset(batch.Options{})
	b.Append(1000, key.AppendTo(nil), value.AppendTo(nil))
	out, err := b.Finish(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(out)
}
