package broker

import (
	"os"
	"slices"
	"testing"

	"gregor/broker/config"
)

func staticLayer(values ...string) config.Layer {
	l := config.Layer{Origin: "test", Values: map[string]string{}}
	for i := 0; i < len(values); i += 2 {
		l.Values[values[i]] = values[i+1]
	}
	return l
}

// TestReload: topics follow the broker's keys at once unless they have their own, or what was set at run time is stronger.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "log.segment.bytes", "2000000")
	c := b.dial()
	c.createTopic("follows")
	c.createTopic("own")
	if code := setTopicKey(c, "own", "segment.bytes", "5000000"); code != 0 {
		t.Fatalf("error %d", code)
	}
	base := []string{"log.dirs", dir, "listeners", "PLAINTEXT://127.0.0.1:0"}
	r, err := b.Reload(t.Context(), staticLayer(append(base, "log.segment.bytes", "3000000", "max.connections", "7", "num.partitions", "9", "zzz", "1")...))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Applied, []string{"log.segment.bytes", "max.connections"}) || !slices.Equal(r.Restart, []string{"num.partitions"}) || !slices.Equal(r.Unknown, []string{"zzz"}) {
		t.Errorf("%+v", r)
	}
	for topic, want := range map[string]int32{"follows": 3000000, "own": 5000000} {
		if got := b.topics.name(topic).config.Load().SegmentBytes; got != want {
			t.Errorf("segment.bytes of %s is %d, want %d", topic, got, want)
		}
	}
	if s := b.settings(); s.MaxConnections != 7 || s.NumPartitions != 1 {
		t.Errorf("max.connections is %d, num.partitions %d before a restart", s.MaxConnections, s.NumPartitions)
	}
	if _, err := b.Reload(t.Context(), staticLayer("log.segment.bytes", "big")); err == nil {
		t.Error("a wrong value is taken")
	}
	if r, err = b.Reload(t.Context(), staticLayer(base...)); err != nil || !slices.Equal(r.Applied, []string{"log.segment.bytes", "max.connections"}) {
		t.Errorf("taken out: %+v, %v", r, err)
	}
	if got := b.topics.name("follows").config.Load().SegmentBytes; got != 1<<30 {
		t.Errorf("segment.bytes is %d, want the default", got)
	}
}

func TestProcessOf(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	if pid, err := ProcessOf(dir); err != nil || pid != os.Getpid() {
		t.Errorf("process %d, %v", pid, err)
	}
	b.stopClean()
	if pid, err := ProcessOf(dir); err == nil {
		t.Errorf("process %d of a broker that stopped", pid)
	}
}

// TestReloadListeners: a listener that was added to the file is there after a reload, one that is gone is not, and a port that is taken changes nothing.
func TestReloadListeners(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	with := func(listeners string) []string {
		return []string{"log.dirs", dir, "listeners", listeners, "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"}
	}
	const first = "PLAINTEXT://127.0.0.1:0"
	r, err := b.Reload(t.Context(), staticLayer(with(first+",INSIDE://127.0.0.1:0")...))
	if err != nil || !slices.Equal(r.Applied, []string{"listener.security.protocol.map", "listeners"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	addrs := b.Addrs()
	if len(addrs) != 2 || b.dialTo(addrs[1]).brokers() != addrs[1] {
		t.Fatalf("listens on %v", addrs)
	}
	if _, err := b.Reload(t.Context(), staticLayer(with(first+",INSIDE://"+b.Addr())...)); err == nil {
		t.Error("a port that is taken is fine")
	}
	if got := b.Addrs(); !slices.Equal(got, addrs) {
		t.Errorf("listens on %v, want %v", got, addrs)
	}
	if _, err := b.Reload(t.Context(), staticLayer(with(first)...)); err != nil {
		t.Fatal(err)
	}
	if got := b.Addrs(); !slices.Equal(got, addrs[:1]) {
		t.Errorf("listens on %v, want %v", got, addrs[:1])
	}
}
