package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kinds of resources, for short.
const (
	ofTopic  = kmsg.ConfigResourceTypeTopic
	ofBroker = kmsg.ConfigResourceTypeBroker
)

func describeRequest(kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	r := kmsg.NewPtrDescribeConfigsRequest()
	in := kmsg.NewDescribeConfigsRequestResource()
	in.ResourceType, in.ResourceName, in.ConfigNames = kind, name, keys
	r.Resources = append(r.Resources, in)
	return r
}

// config shows a key as "value source [synonyms]", "" when it is not in the answer.
func (c *client) config(kind kmsg.ConfigResourceType, name, key string) string {
	c.t.Helper()
	r := describeRequest(kind, name, key)
	r.IncludeSynonyms = true
	resp := ask[*kmsg.DescribeConfigsResponse](c, 4, r).Resources[0]
	if resp.ErrorCode != 0 {
		c.t.Fatalf("describing %s: error %d %s", name, resp.ErrorCode, text(resp.ErrorMessage))
	}
	if len(resp.Configs) == 0 {
		return ""
	}
	got := resp.Configs[0]
	out := fmt.Sprintf("%s %d", text(got.Value), got.Source)
	for _, s := range got.ConfigSynonyms {
		out += fmt.Sprintf(" %s=%s/%d", s.Name, text(s.Value), s.Source)
	}
	return out
}

func TestDescribeTopicConfigsAtEveryVersion(t *testing.T) {
	c := startBroker(t, t.TempDir(), "log.index.interval.bytes", "8192").dial()
	c.create("a", 1, "cleanup.policy", "compact")
	for v := int16(0); v <= 4; v++ {
		r := describeRequest(ofTopic, "a")
		r.IncludeSynonyms, r.IncludeDocumentation = true, true
		got := ask[*kmsg.DescribeConfigsResponse](c, v, r).Resources[0]
		if got.ErrorCode != 0 || text(got.ErrorMessage) != "" || got.ResourceName != "a" || got.ResourceType != ofTopic || len(got.Configs) < 30 {
			t.Fatalf("v%d: %d %s, %d keys", v, got.ErrorCode, text(got.ErrorMessage), len(got.Configs))
		}
		sources := map[string]kmsg.ConfigSource{"cleanup.policy": 1, "index.interval.bytes": 4, "flush.ms": 5}
		for i := range got.Configs {
			e := &got.Configs[i]
			source, watched := sources[e.Name]
			if !watched {
				continue
			}
			delete(sources, e.Name)
			if v == 0 && e.IsDefault != (source == 5) || v >= 1 && e.Source != source || e.ReadOnly || e.IsSensitive {
				t.Errorf("v%d: %+v", v, e)
			}
			if (e.ConfigType != 0) != (v >= 3) || (e.Documentation != nil) != (v >= 3) {
				t.Errorf("v%d: %s has type %d and documentation %s", v, e.Name, e.ConfigType, text(e.Documentation))
			}
			if v >= 1 && e.Name == "cleanup.policy" && (len(e.ConfigSynonyms) != 2 || e.ConfigSynonyms[1].Name != "log.cleanup.policy" || text(e.Value) != "compact") {
				t.Errorf("v%d: %s has value %s and synonyms %+v", v, e.Name, text(e.Value), e.ConfigSynonyms)
			}
		}
		if len(sources) > 0 {
			t.Errorf("v%d: %v are missing", v, sources)
		}
	}
}

func TestDescribeConfigsNamed(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	id := fmt.Sprint(b.nodeID)
	count := func(kind kmsg.ConfigResourceType, name string, keys []string) int {
		return len(ask[*kmsg.DescribeConfigsResponse](c, 4, describeRequest(kind, name, keys...)).Resources[0].Configs)
	}
	if got := count(ofTopic, "a", []string{"flush.ms", "nope", "segment.bytes"}); got != 2 {
		t.Errorf("%d topic keys of two known ones", got)
	}
	all := count(ofBroker, id, nil)
	if empty := count(ofBroker, id, []string{}); empty != all || all < 40 {
		t.Errorf("%d broker keys without names, %d with an empty list", all, empty)
	}
	for _, key := range []string{"num.partitions", "default.replication.factor", "auto.create.topics.enable", "min.insync.replicas", "log.retention.hours",
		"message.max.bytes", "delete.topic.enable", "offsets.retention.minutes", "advertised.listeners", "authorizer.class.name", "log.dirs", "listeners"} {
		if c.config(ofBroker, id, key) == "" {
			t.Errorf("broker key %s is not there", key)
		}
	}
	if got := c.config(ofBroker, id, "broker.id"); !strings.HasPrefix(got, id+" ") {
		t.Errorf("broker.id is %q, want %s", got, id)
	}
	got := ask[*kmsg.DescribeConfigsResponse](c, 4, describeRequest(ofBroker, id, "num.partitions")).Resources[0].Configs[0]
	if !got.ReadOnly || len(got.ConfigSynonyms) != 0 || got.Documentation != nil {
		t.Errorf("%+v", got)
	}
}

// One bad resource leaves the others alone.
func TestDescribeConfigsErrors(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("good", 1)
	resources := []struct {
		kind kmsg.ConfigResourceType
		name string
		code int16
		text string
	}{
		{ofTopic, "nothere", 3, ""},
		{ofTopic, "a b", 17, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{ofBroker, "77", 42, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received 77", b.nodeID)},
		{ofBroker, "abc", 42, "Broker id must be an integer, but it is: abc"},
		{99, "x", 42, kerr.InvalidRequest.Description},
		{kmsg.ConfigResourceTypeBrokerLogger, fmt.Sprint(b.nodeID), 0, ""},
		{ofBroker, "", 0, ""},
		{ofTopic, "good", 0, ""},
		{ofTopic, "good", 42, "Each resource must appear at most once."},
	}
	for v := int16(0); v <= 4; v++ {
		r := kmsg.NewPtrDescribeConfigsRequest()
		for _, res := range resources {
			r.Resources = append(r.Resources, describeRequest(res.kind, res.name).Resources...)
		}
		resp := ask[*kmsg.DescribeConfigsResponse](c, v, r)
		for i, want := range resources {
			if got := resp.Resources[i]; got.ErrorCode != want.code || text(got.ErrorMessage) != want.text || got.ResourceName != want.name || got.ResourceType != want.kind {
				t.Errorf("v%d: %d %q %+v, want %+v", v, got.ErrorCode, text(got.ErrorMessage), got, want)
			}
		}
	}
}

func TestBrokerKeysChangeAtRunTime(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "log.retention.bytes", "1000000")
	c := b.dial()
	id := fmt.Sprint(b.nodeID)
	c.create("a", 1)
	c.create("own", 1, "retention.ms", "1")
	set := func(name, key, value string) {
		t.Helper()
		if got := c.increment(ofBroker, name, false, op(key, kmsg.IncrementalAlterConfigOpSet, value)); got != "0 <null>" {
			t.Fatalf("setting %s for %q: %s", key, name, got)
		}
	}
	set("", "log.retention.ms", "200")
	set(id, "log.segment.bytes", "2000000")
	set(id, "log.retention.bytes", "5")
	want := func(kind kmsg.ConfigResourceType, name, key, want string) {
		t.Helper()
		if got := c.config(kind, name, key); !strings.HasPrefix(got, want) {
			t.Errorf("%s of %q is %q, want %q", key, name, got, want)
		}
	}
	check := func() {
		t.Helper()
		want(ofBroker, "", "log.retention.ms", "200 3 log.retention.ms=200/3")
		want(ofBroker, "", "log.segment.bytes", "")
		want(ofBroker, id, "log.retention.ms", "200 3 log.retention.ms=200/3")
		want(ofBroker, id, "log.segment.bytes", "2000000 2 log.segment.bytes=2000000/2 log.segment.bytes=1073741824/5")
		want(ofBroker, id, "log.retention.bytes", "5 2 log.retention.bytes=5/2 log.retention.bytes=1000000/4")
		want(ofTopic, "a", "retention.ms", "200 3 log.retention.ms=200/3")
		want(ofTopic, "own", "retention.ms", "1 1 retention.ms=1/1")
		for name, want := range map[string]int64{"a": 200, "own": 1} {
			effective := b.topics.name(name).config.Load()
			if effective.RetentionMs != want || effective.SegmentBytes != 2000000 || effective.RetentionBytes != 5 {
				t.Errorf("topic %s works with %+v", name, effective)
			}
		}
	}
	check()
	b.stopClean()
	b = startBroker(t, dir, "log.retention.bytes", "1000000")
	c = b.dial()
	check()

	if got := c.increment(ofBroker, id, false, op("log.retention.bytes", kmsg.IncrementalAlterConfigOpDelete, "")); got != "0 <null>" {
		t.Errorf("deleting: %s", got)
	}
	want(ofBroker, id, "log.retention.bytes", "1000000 4")
	if got := c.alter(ofBroker, "", false); got != "0 <null>" {
		t.Errorf("clearing: %s", got)
	}
	want(ofTopic, "a", "retention.ms", "604800000 5")
	if got := b.topics.name("a").config.Load().RetentionMs; got != 604800000 {
		t.Errorf("retention.ms is still %d", got)
	}
}
