package broker

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func op(key string, kind kmsg.IncrementalAlterConfigOp, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op = key, kind
	if kind != kmsg.IncrementalAlterConfigOpDelete {
		c.Value = &value
	}
	return c
}

// Operations, for short.
func set(key, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return op(key, kmsg.IncrementalAlterConfigOpSet, value)
}
func remove(key string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return op(key, kmsg.IncrementalAlterConfigOpDelete, "")
}
func add(key, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return op(key, kmsg.IncrementalAlterConfigOpAppend, value)
}
func subtract(key, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return op(key, kmsg.IncrementalAlterConfigOpSubtract, value)
}

func incrementRequest(kind kmsg.ConfigResourceType, name string, ops ...kmsg.IncrementalAlterConfigsRequestResourceConfig) *kmsg.IncrementalAlterConfigsRequest {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	in := kmsg.NewIncrementalAlterConfigsRequestResource()
	in.ResourceType, in.ResourceName, in.Configs = kind, name, ops
	r.Resources = append(r.Resources, in)
	return r
}

// increment changes one resource and shows error and message.
func (c *client) increment(kind kmsg.ConfigResourceType, name string, only bool, ops ...kmsg.IncrementalAlterConfigsRequestResourceConfig) string {
	c.t.Helper()
	r := incrementRequest(kind, name, ops...)
	r.ValidateOnly = only
	got := ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0]
	return fmt.Sprintf("%d %s", got.ErrorCode, text(got.ErrorMessage))
}

func alterRequest(kind kmsg.ConfigResourceType, name string, keysAndValues ...string) *kmsg.AlterConfigsRequest {
	r := kmsg.NewPtrAlterConfigsRequest()
	in := kmsg.NewAlterConfigsRequestResource()
	in.ResourceType, in.ResourceName = kind, name
	for i := 0; i < len(keysAndValues); i += 2 {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = keysAndValues[i], &keysAndValues[i+1]
		in.Configs = append(in.Configs, c)
	}
	r.Resources = append(r.Resources, in)
	return r
}

// alter replaces the keys of one resource and shows error and message.
func (c *client) alter(kind kmsg.ConfigResourceType, name string, only bool, keysAndValues ...string) string {
	c.t.Helper()
	r := alterRequest(kind, name, keysAndValues...)
	r.ValidateOnly = only
	got := ask[*kmsg.AlterConfigsResponse](c, 2, r).Resources[0]
	return fmt.Sprintf("%d %s", got.ErrorCode, text(got.ErrorMessage))
}

const altered = "0 <null>"

// step is a change of topic "a" and its own keys afterwards.
type step struct {
	ops  []kmsg.IncrementalAlterConfigsRequestResourceConfig
	want string
	own  map[string]string
}

func TestIncrementalAlterConfigs(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	type keys = map[string]string
	type ops = []kmsg.IncrementalAlterConfigsRequestResourceConfig
	same := keys{"retention.ms": "1000", "cleanup.policy": "delete"}
	unset := set("retention.ms", "")
	unset.Value = nil
	steps := []step{
		{ops{set("retention.ms", "1000"), set("cleanup.policy", "compact")}, altered, keys{"retention.ms": "1000", "cleanup.policy": "compact"}},
		{ops{add("cleanup.policy", "delete")}, altered, keys{"retention.ms": "1000", "cleanup.policy": "compact,delete"}},
		{ops{add("cleanup.policy", "delete")}, altered, keys{"retention.ms": "1000", "cleanup.policy": "compact,delete"}},
		{ops{subtract("cleanup.policy", "compact,nothere")}, altered, same},
		{ops{remove("flush.ms")}, altered, same},
		{ops{remove("nope")}, altered, same},
		{nil, altered, same},
		{ops{add("retention.ms", "5")}, "40 Can't APPEND to key retention.ms because its type is not LIST.", same},
		{ops{subtract("nope", "5")}, "40 Can't SUBTRACT to key nope because its type is not LIST.", same},
		{ops{set("nope", "5")}, "40 Unknown topic config name: nope", same},
		{ops{set("flush.ms", "5"), set("retention.ms", "x")}, "40 Invalid value x for configuration retention.ms: Not a number of type LONG", same},
		{ops{set("retention.ms", "1"), set("retention.ms", "2")}, "42 Error due to duplicate config keys", same},
		{ops{unset}, "42 Null value not supported for : retention.ms", same},
		{ops{op("retention.ms", 9, "1")}, "42 Unknown operation type 9 for retention.ms", same},
		{ops{set("leader.replication.throttled.replicas", strings.Repeat("x", 32768))},
			"40 The value of leader.replication.throttled.replicas is longer than 32767 bytes.", same},
		{ops{set("min.compaction.lag.ms", "100"), set("max.compaction.lag.ms", "10")},
			"40 conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)", same},
		{ops{remove("cleanup.policy"), remove("retention.ms")}, altered, keys{}},
		{ops{add("cleanup.policy", "compact")}, altered, keys{"cleanup.policy": "delete,compact"}},
	}
	for i, s := range steps {
		if got := c.increment(ofTopic, "a", false, s.ops...); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
		if got := b.topics.name("a").ownKeys(); !maps.Equal(got, s.own) {
			t.Errorf("step %d: own keys are %v, want %v", i, got, s.own)
		}
	}
	if effective := b.topics.name("a").config.Load(); !effective.CleanupPolicy.Compact || !effective.CleanupPolicy.Delete {
		t.Errorf("topic works with %+v", effective)
	}
}

func TestAlterConfigsReplaces(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	c.create("a", 1, "retention.ms", "1", "flush.ms", "2")
	wrong := alterRequest(ofTopic, "a", "flush.ms", "")
	wrong.Resources[0].Configs[0].Value = nil
	if got := ask[*kmsg.AlterConfigsResponse](c, 2, wrong).Resources[0]; got.ErrorCode != 42 || text(got.ErrorMessage) != "Null value not supported for : flush.ms" {
		t.Errorf("null value: %d %s", got.ErrorCode, text(got.ErrorMessage))
	}
	for _, tt := range [][]string{
		{"42 Error due to duplicate config keys", "flush.ms", "1", "flush.ms", "2"},
		{"40 Invalid value x for configuration flush.ms: Not a number of type LONG", "flush.ms", "x"},
		{"40 Unknown topic config name: nope", "nope", "x"},
	} {
		if got := c.alter(ofTopic, "a", false, tt[1:]...); got != tt[0] {
			t.Errorf("got %q, want %q", got, tt[0])
		}
	}
	if got := b.topics.name("a").ownKeys(); len(got) != 2 {
		t.Errorf("refused changes left %v", got)
	}
	for v := int16(0); v <= 2; v++ {
		value := fmt.Sprint(100 + v)
		got := ask[*kmsg.AlterConfigsResponse](c, v, alterRequest(ofTopic, "a", "flush.ms", value)).Resources[0]
		if got.ErrorCode != 0 || got.ErrorMessage != nil || got.ResourceName != "a" || got.ResourceType != ofTopic {
			t.Errorf("v%d: %+v", v, got)
		}
		if own := b.topics.name("a").ownKeys(); !maps.Equal(own, map[string]string{"flush.ms": value}) {
			t.Errorf("v%d: own keys are %v", v, own)
		}
	}
	b.stopClean()
	b = startBroker(t, dir)
	if got := b.topics.name("a"); !maps.Equal(got.ownKeys(), map[string]string{"flush.ms": "102"}) || got.config.Load().FlushMs != 102 {
		t.Errorf("after a restart: %v, %+v", got.ownKeys(), got.config.Load())
	}
	if got := b.dial().alter(ofTopic, "a", false); got != altered || len(b.topics.name("a").ownKeys()) != 0 {
		t.Errorf("clearing: %s, left %v", got, b.topics.name("a").ownKeys())
	}
}

func TestAlterValidateOnly(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	for kind, key := range map[kmsg.ConfigResourceType]string{ofTopic: "retention.ms", ofBroker: "log.retention.ms"} {
		name := map[kmsg.ConfigResourceType]string{ofTopic: "a", ofBroker: fmt.Sprint(b.nodeID)}[kind]
		if got := c.increment(kind, name, true, set(key, "7")); got != altered {
			t.Errorf("%s: %s", key, got)
		}
		if got := c.alter(kind, name, true, key, "7"); got != altered {
			t.Errorf("%s: %s", key, got)
		}
		if got := c.increment(kind, name, true, set(key, "x")); got == altered {
			t.Errorf("%s=x is fine", key)
		}
		if got := c.config(kind, name, key); strings.HasPrefix(got, "7 ") {
			t.Errorf("%s was changed", key)
		}
	}
}

func TestAlterRefusals(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	id := fmt.Sprint(b.nodeID)
	tests := []struct {
		kind      kmsg.ConfigResourceType
		name, key string
		value     string
		want      string
	}{
		{ofTopic, "nothere", "flush.ms", "1", "3 The topic 'nothere' does not exist."},
		{ofTopic, "", "flush.ms", "1", "42 Default topic resources are not allowed."},
		{ofTopic, "a b", "flush.ms", "1", "17 Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{ofBroker, id, "num.partitions", "2", "42 Cannot update these configs dynamically: [num.partitions]"},
		{ofBroker, "", "node.id", "2", "42 Cannot update these configs dynamically: [node.id]"},
		{ofBroker, id, "max.connections", "0", "42 Invalid value 0 for configuration max.connections: "},
		{ofBroker, "", "listeners", "PLAINTEXT://127.0.0.1:0", "42 Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
		{ofBroker, id, "listeners", "OTHER://127.0.0.1:0", "42 Invalid value OTHER://127.0.0.1:0 for configuration listeners: listener OTHER has no security protocol"},
		{ofBroker, id, "ssl.keystore.location", "/x", "42 These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{ofBroker, id, "listener.name.plaintext.ssl.key.password", "x", "42 These configs are not supported, because TLS and authentication are not built yet: "},
		{ofBroker, id, "listener.name.plaintext.scram-sha-256.sasl.jaas.config", "x", "42 These configs are not supported, because TLS and authentication are not built yet: "},
		{ofBroker, id, "max.connections.per.ip.overrides", "127.0.0.1", "42 Invalid value 127.0.0.1 for configuration max.connections.per.ip.overrides: "},
		{ofBroker, id, "max.connections.per.ip", "0", "42 Invalid value 0 for configuration max.connections.per.ip: can be set to zero only if max.connections.per.ip.overrides property is set."},
		{ofBroker, id, "log.retention.ms", "x", "42 Invalid value x for configuration log.retention.ms: "},
		{ofBroker, "77", "log.retention.ms", "1", "42 Unexpected broker id, expected " + id + ", but received 77"},
		{ofBroker, "abc", "log.retention.ms", "1", "42 Node id must be an integer, but it is: abc"},
		{99, "x", "y", "z", "42 Unknown resource type 99"},
	}
	for _, tt := range tests {
		if got := c.increment(tt.kind, tt.name, false, set(tt.key, tt.value)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("incremental: got %q, want %q", got, tt.want)
		}
		if got := c.alter(tt.kind, tt.name, false, tt.key, tt.value); !strings.HasPrefix(got, tt.want) {
			t.Errorf("replacing: got %q, want %q", got, tt.want)
		}
	}
	// A resource that is there twice is refused, and the one beside it is not.
	r := incrementRequest(ofTopic, "a", set("flush.ms", "1"))
	r.Resources = append(r.Resources, r.Resources[0], incrementRequest(ofBroker, id, set("log.retention.ms", "9")).Resources[0])
	for v := int16(0); v <= 1; v++ {
		resp := ask[*kmsg.IncrementalAlterConfigsResponse](c, v, r)
		codes := []int16{resp.Resources[0].ErrorCode, resp.Resources[1].ErrorCode, resp.Resources[2].ErrorCode}
		if fmt.Sprint(codes) != "[42 42 0]" || text(resp.Resources[0].ErrorMessage) != "Each resource must appear at most once." {
			t.Errorf("v%d: errors %v", v, codes)
		}
	}
}

func TestEditList(t *testing.T) {
	for _, tt := range []struct {
		list, items string
		add         bool
		want        string
	}{
		{"", "a", true, "a"},
		{"a", "b,a, c ,,b", true, "a,b,c"},
		{"a,b,c", "c,a", false, "b"},
		{"a", "a", false, ""},
		{"a,b", "", true, "a,b"},
		{"a", "x", false, "a"},
	} {
		if got := editList(&tt.list, tt.items, tt.add); got != tt.want {
			t.Errorf("%q and %q, add %v: got %q, want %q", tt.list, tt.items, tt.add, got, tt.want)
		}
	}
	if got := editList(nil, "a", true); got != "a" {
		t.Errorf("no list: %q", got)
	}
}
