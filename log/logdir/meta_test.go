package logdir

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gregor/log/vfs/crashfs"
)

func TestParseMeta(t *testing.T) {
	cases := []struct {
		name, text string
		want       identity
		ok         bool
	}{
		{"version 0", "#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=x_Y-1\nversion=0\nbroker.id=7\n", identity{7, "x_Y-1"}, true},
		{"version 1", "version=1\nnode.id=3\ncluster.id=abc\ndirectory.id=ZzZzZzZzZzZzZzZzZzZzZw\n", identity{3, "abc"}, true},
		{"other separators", "! c\n version : 0\r\nbroker.id = 1\ncluster.id : a\\=\\=\n", identity{1, "a=="}, true},
		{"no ids", "version=0\n", identity{-1, ""}, true},
		{"ids of the other version", "version=1\nbroker.id=7\n", identity{-1, ""}, true},
		{"empty", "", identity{}, false},
		{"no version", "broker.id=7\n", identity{}, false},
		{"unknown version", "version=2\n", identity{}, false},
		{"no number", "version=0\nbroker.id=x\n", identity{}, false},
		{"negative", "version=0\nbroker.id=-2\n", identity{}, false},
		{"zeros", "\x00\x00\x00", identity{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseMeta([]byte(c.text))
			if (err == nil) != c.ok || c.ok && got != c.want {
				t.Errorf("got %+v, %v; want %+v, ok %v", got, err, c.want, c.ok)
			}
		})
	}
}

func TestMetaRoundTrip(t *testing.T) {
	want := identity{5, "abc-DEF_123"}
	text := want.format(time.Date(2024, 3, 9, 1, 2, 3, 0, time.UTC))
	if w := "#\n#Sat Mar 09 01:02:03 UTC 2024\ncluster.id=abc-DEF_123\nversion=0\nbroker.id=5\n"; string(text) != w {
		t.Errorf("got %q, want %q", text, w)
	}
	got, err := parseMeta(text)
	must(t, err)
	if got != want {
		t.Errorf("got %+v", got)
	}
}

func FuzzParseMeta(f *testing.F) {
	f.Add([]byte("#\n#x\ncluster.id=x\nversion=0\nbroker.id=7\n"))
	f.Add([]byte("version=1\nnode.id=3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseMeta(b); err == nil && id.BrokerID < -1 {
			t.Errorf("broker id %d", id.BrokerID)
		}
	})
}

func TestIdentity(t *testing.T) {
	cases := []struct {
		name, file string
		broker     int32
		cluster    string
		want       identity
		changed    bool
		wantErr    []string // in the message
	}{
		{"new, configured", "", 4, "abc", identity{4, "abc"}, true, nil},
		{"same", "version=0\nbroker.id=4\ncluster.id=abc\n", 4, "abc", identity{4, "abc"}, false, nil},
		{"of Kafka with KRaft", "version=1\nnode.id=4\ncluster.id=abc\ndirectory.id=d\n", 4, "abc", identity{4, "abc"}, false, nil},
		{"taken from the file", "version=0\nbroker.id=4\ncluster.id=abc\n", -1, "", identity{4, "abc"}, false, nil},
		{"cluster added", "version=0\nbroker.id=4\n", -1, "abc", identity{4, "abc"}, true, nil},
		{"another broker", "version=0\nbroker.id=4\ncluster.id=abc\n", 5, "abc", identity{}, false, []string{"4", "5", metaFile}},
		{"another cluster", "version=0\nbroker.id=4\ncluster.id=abc\n", 4, "def", identity{}, false, []string{"abc", "def", metaFile}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := crashfs.New()
			must(t, fsys.MkdirAll(testDir))
			if c.file != "" {
				writeFile(t, fsys, filepath.Join(testDir, metaFile), c.file)
			}
			o := fakeOptions(fsys)
			o.BrokerID, o.ClusterID = c.broker, c.cluster
			d, err := Open(o)
			if c.wantErr != nil {
				wantIs(t, err, ErrIdentity)
				for _, part := range c.wantErr {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not name %s", err, part)
					}
				}
				return
			}
			must(t, err)
			if d.BrokerID() != c.want.BrokerID || d.ClusterID() != c.want.ClusterID {
				t.Errorf("identity is %+v, want %+v", d.id, c.want)
			}
			must(t, d.Close())
			if got := readFile(t, fsys, filepath.Join(testDir, metaFile)); c.changed == (got == c.file) {
				t.Errorf("the file is %q", got)
			}
		})
	}
}

func TestNewClusterID(t *testing.T) {
	fsys := crashfs.New()
	o := fakeOptions(fsys)
	o.BrokerID, o.ClusterID = -1, ""
	d := mustOpen(t, o)
	id := d.ClusterID()
	if len(id) != 22 || id[0] == '-' || d.BrokerID() != 0 {
		t.Errorf("cluster %q, broker %d", id, d.BrokerID())
	}
	must(t, d.Close())
	if d = mustOpen(t, o); d.ClusterID() != id {
		t.Errorf("cluster was %s and is %s", id, d.ClusterID())
	}
	must(t, d.Close())
}
