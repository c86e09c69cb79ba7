package broker

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// dialTo connects to an address.
func (b *testBroker) dialTo(addr string) *client {
	b.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return &client{t: b.t, conn: conn, id: "test"}
}

// brokers are the addresses that Metadata gives.
func (c *client) brokers() string {
	c.t.Helper()
	var all []string
	for _, b := range ask[*kmsg.MetadataResponse](c, 12, kmsg.NewPtrMetadataRequest()).Brokers {
		all = append(all, fmt.Sprintf("%s:%d", b.Host, b.Port))
	}
	return strings.Join(all, ",")
}

// TestListenersAtRunTime: a listener comes and goes while clients of the others do not notice, and the change survives a restart.
func TestListenersAtRunTime(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	const first = "PLAINTEXT://127.0.0.1:0"
	if got := c.increment(ofBroker, "0", false, set("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"), set("listeners", first+",INSIDE://127.0.0.1:0")); got != altered {
		t.Fatal(got)
	}
	addrs := b.Addrs()
	if len(addrs) != 2 || addrs[0] != b.Addr() {
		t.Fatalf("listens on %v", addrs)
	}
	inside := b.dialTo(addrs[1])
	if got := inside.brokers(); got != addrs[1] {
		t.Errorf("a client inside is told %s, want %s", got, addrs[1])
	}
	if got := c.brokers(); got != addrs[0] {
		t.Errorf("a client of the first listener is told %s, want %s", got, addrs[0])
	}
	if got := inside.increment(ofBroker, "0", false, set("advertised.listeners", "INSIDE://inside.example:19092")); got != altered {
		t.Error(got)
	}
	if got := inside.brokers(); got != "inside.example:19092" || c.brokers() != addrs[0] {
		t.Errorf("advertised is %s and %s", got, c.brokers())
	}
	if got := c.increment(ofBroker, "0", false, remove("advertised.listeners"), set("listeners", first)); got != altered {
		t.Error(got)
	}
	if n, err := inside.conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection of a listener that is gone gets %d bytes", n)
	}
	if got := b.Addrs(); len(got) != 1 || got[0] != addrs[0] || c.brokers() != addrs[0] {
		t.Errorf("listens on %v", got)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if got := c.increment(ofBroker, "0", false, set("listeners", first+",INSIDE://"+taken.Addr().String())); !strings.HasPrefix(got, "42 wire: listener INSIDE cannot bind") {
		t.Error(got)
	}
	if got := c.increment(ofBroker, "0", false, set("listeners", first+",INSIDE://127.0.0.1:0")); got != altered {
		t.Error(got)
	}
	b.stopClean()
	if got := startBroker(t, dir).Addrs(); len(got) != 2 {
		t.Errorf("after a restart: listens on %v", got)
	}
}

// TestUnusableListenersGiveWay: listeners that were set at run time and are another's after a restart do not keep the broker from starting.
func TestUnusableListenersGiveWay(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := taken.Addr().String()
	taken.Close()
	if got := b.dial().increment(ofBroker, "0", false, set("listeners", "PLAINTEXT://"+addr)); got != altered {
		t.Fatal(got)
	}
	if got := b.Addr(); got != addr {
		t.Errorf("listens on %s, want %s", got, addr)
	}
	b.stopClean()
	if taken, err = net.Listen("tcp", addr); err != nil {
		t.Skip("the port was taken by somebody else meanwhile: ", err)
	}
	defer taken.Close()
	again := startBroker(t, dir)
	if got := again.Addr(); got == addr || got == "" {
		t.Errorf("listens on %s", got)
	}
	if got := again.dial().brokers(); got != again.Addr() {
		t.Errorf("a client is told %s, want %s", got, again.Addr())
	}
}

// TestConnectionLimitsAtRunTime: limits are in force for the next connection.
func TestConnectionLimitsAtRunTime(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	if got := c.increment(ofBroker, "", false, set("max.connections.per.ip", "1"), set("max.connection.creation.rate", "1000")); got != altered {
		t.Fatal(got)
	}
	if n, err := b.dialTo(b.Addr()).conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a second connection gets %d bytes", n)
	}
	if got := c.increment(ofBroker, "", false, set("max.connections.per.ip", "0"), set("max.connections.per.ip.overrides", "127.0.0.1:2,localhost:2")); got != altered {
		t.Fatal(got)
	}
	second := b.dialTo(b.Addr())
	if got := second.brokers(); got != b.Addr() {
		t.Error(got)
	}
	if n, err := b.dialTo(b.Addr()).conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a third connection gets %d bytes", n)
	}
}

// TestProducerExpiryAtRunTime: it reaches the logs that are there and those that are made later.
func TestProducerExpiryAtRunTime(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	if got := c.increment(ofBroker, "", false, set("producer.id.expiration.ms", "5000"), set("num.recovery.threads.per.data.dir", "50")); got != altered {
		t.Fatal(got)
	}
	c.create("b", 1)
	for _, topic := range []string{"a", "b"} {
		p := (*b.topics.name(topic).partitions.Load())[0]
		if got := p.producerExpiryMs(); got != 5000 {
			t.Errorf("%s: %d", topic, got)
		}
	}
	if got := b.recoverers(); got != 50 {
		t.Errorf("%d logs are closed at a time", got)
	}
}

// TestKeysWithoutEffect: Kafka's keys that do nothing here, and keys that nobody knows, are kept and shown, what may be a password without its value.
func TestKeysWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	if got := c.increment(ofBroker, "0", false, set("num.io.threads", "9"), set("my.plugin.key", "secret"), set("listener.name.plaintext.max.connections", "10")); got != altered {
		t.Fatal(got)
	}
	if got := c.increment(ofBroker, "", false, set("my.plugin.key", "other"), set("leader.replication.throttled.rate", "1000")); got != altered {
		t.Fatal(got)
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	const want = "leader.replication.throttled.rate=1000 3 [leader.replication.throttled.rate=1000 3]\n" +
		"listener.name.plaintext.max.connections=10 2 [listener.name.plaintext.max.connections=10 2] [max.connections=2147483647 5]\n" +
		"my.plugin.key=<null> 2 [my.plugin.key=<null> 2] [my.plugin.key=<null> 3]\n" +
		"num.io.threads=9 2 [num.io.threads=9 2] [num.io.threads=8 5]"
	if got := c.shown(ofBroker, "0", "num.io.threads", "my.plugin.key", "listener.name.plaintext.max.connections", "leader.replication.throttled.rate"); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := c.shown(ofBroker, ""); got != "leader.replication.throttled.rate=1000 3 [leader.replication.throttled.rate=1000 3]\nmy.plugin.key=<null> 3 [my.plugin.key=<null> 3]" {
		t.Errorf("got\n%s", got)
	}
}
