package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gregor/broker/controller"
	"gregor/broker/kraft"
	"gregor/broker/meta"
)

// kraftFixture has the metadata that Kafka 4.4.0 wrote for the tests of package kraft, and empty logs of its topics a and b.
func kraftFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	for _, dir := range []string{"/k/a-0", "/k/a-1", "/k/a-2", "/k/b-0", "/k/b-1"} {
		f.put(dir+"/00000000000000000000.log", "")
	}
	f.put("/k/meta.properties", "version=1\nnode.id=1\ncluster.id=rPvUg7q5SgC9f4CACs7tTg\ndirectory.id=xchcnpMtUkYILaQP2fty8A\n")
	f.put("/k/.kafka_cleanshutdown", `{"version":0,"brokerEpoch":11}`)
	const from = "../kraft/testdata/kafka-4.4.0-secured"
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f.put("/k/__cluster_metadata-0/"+e.Name(), string(b))
	}
	return f
}

func TestInspectKRaft(t *testing.T) {
	p := kraftFixture(t).inspect(Options{Dirs: []string{"/k"}, Full: true})
	if p.Err() != nil || !p.KRaft || p.MetadataVersion != 33 || len(p.Topics) != 2 || len(p.Topics[0].Partitions) != 3 {
		t.Fatalf("%+v", p)
	}
	if a := p.Topics[0]; a.Source != FromMetadata || len(a.Config) != 1 || a.Config["retention.ms"] != "1000000" {
		t.Errorf("%+v", a)
	}
	lost := strings.Join(p.Lost, "\n")
	for _, text := range []string{"1 ACLs", "1 SCRAM credentials", "broker setting log.cleaner.threads"} {
		if !strings.Contains(lost, text) {
			t.Errorf("%q is not in %q", text, lost)
		}
	}
	if len(p.Lost) != 3 || p.NextProducerID != 1000 {
		t.Errorf("lost %q, next producer id %d", p.Lost, p.NextProducerID)
	}
	if len(p.Quotas) != 1 || p.Quotas[0].Path != "/config/users/u1" || p.Quotas[0].Keys["producer_byte_rate"] != "1024" {
		t.Errorf("quotas %+v", p.Quotas)
	}
}

func TestKRaftFindings(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(f *fixture)
		blocked string
		lost    string
	}{
		"a partition is gone": {func(f *fixture) {
			if err := f.mem.RemoveAll("/k/a-1"); err != nil {
				f.t.Fatal(err)
			}
		}, "topic a: partitions 1 of 3 are not in these directories", ""},
		"an older topic":       {func(f *fixture) { f.put("/k/a-1/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ") }, "older topic of that name", ""},
		"a partition too many": {func(f *fixture) { f.put("/k/a-3/00000000000000000000.log", "") }, "a partition that the metadata does not have", ""},
		"a deleted topic":      {func(f *fixture) { f.put("/k/gone-0/00000000000000000000.log", "") }, "", "its topic is not in the metadata"},
		"the metadata is gone": {func(f *fixture) { f.put("/k/__cluster_metadata-0/00000000000000000042-0000000001.checkpoint", "") }, "has no footer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := kraftFixture(t)
			c.change(f)
			p := f.inspect(Options{Dirs: []string{"/k"}})
			if got := strings.Join(p.Blockers, "\n"); !strings.Contains(got, c.blocked) || c.blocked == "" && got != "" {
				t.Errorf("blockers %q, want %q", got, c.blocked)
			}
			if got := strings.Join(p.Lost, "\n"); !strings.Contains(got, c.lost) {
				t.Errorf("lost %q, want %q", got, c.lost)
			}
		})
	}
}

// TestQuotasThereAndBack: what is adopted into a tree is what the tree gives back.
func TestQuotasThereAndBack(t *testing.T) {
	user, client, ip := "u 1", "c/2", "10.0.0.1"
	want := []kraft.Quota{
		{Entity: map[string]*string{"client-id": &client}, Values: map[string]float64{"consumer_byte_rate": 5}},
		{Entity: map[string]*string{"ip": &ip}, Values: map[string]float64{"connection_creation_rate": 7}},
		{Entity: map[string]*string{"user": &user, "client-id": nil}, Values: map[string]float64{"request_percentage": 12.5}},
		{Entity: map[string]*string{"user": nil}, Values: map[string]float64{"producer_byte_rate": 1 << 40}},
	}
	in := &inspection{plan: &Plan{}}
	in.planQuotas(append(want, kraft.Quota{Entity: map[string]*string{"planet": &user}}))
	if len(in.plan.Quotas) != len(want) || len(in.plan.Lost) != 1 {
		t.Fatalf("%+v", in.plan)
	}
	tree, err := meta.OpenLocal(filepath.Join(t.TempDir(), meta.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := controller.Adopt(t.Context(), tree, 1, in.plan.Adoption()); err != nil {
		t.Fatal(err)
	}
	got, err := quotasOf(t.Context(), tree)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v %v", got, err)
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || sameQuota(g, w)
		}
		if !found {
			t.Errorf("%+v is not in %+v", w, got)
		}
	}
}

func sameQuota(a, b kraft.Quota) bool {
	if len(a.Entity) != len(b.Entity) || len(a.Values) != len(b.Values) {
		return false
	}
	for kind, name := range a.Entity {
		other, ok := b.Entity[kind]
		if !ok || (name == nil) != (other == nil) || name != nil && *name != *other {
			return false
		}
	}
	for key, v := range a.Values {
		if b.Values[key] != v {
			return false
		}
	}
	return true
}
