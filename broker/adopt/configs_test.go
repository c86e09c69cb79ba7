package adopt

import (
	"maps"
	"strings"
	"testing"
)

func TestReadConfigs(t *testing.T) {
	c, err := ReadConfigs(strings.NewReader(`# by hand
a cleanup.policy=compact
a retention.ms=-1
b
Dynamic configs for topic c are:
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}
  segment.bytes=100 sensitive=false synonyms={}
Dynamic configs for topic d are:
* retention.ms=5
Topic: e	TopicId: kALPolkCTO2ScoCqTgFPoQ	PartitionCount: 3	ReplicationFactor: 1	Configs: cleanup.policy=compact,delete,segment.bytes=5
	Topic: e	Partition: 0	Leader: 1	Replicas: 1	Isr: 1
Topic: f	PartitionCount: 1	ReplicationFactor: 1	Configs: 
`))
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]map[string]string{
		"a": {"cleanup.policy": "compact", "retention.ms": "-1"}, "b": {}, "d": {},
		"c": {"cleanup.policy": "compact,delete", "segment.bytes": "100"}, "other": {"retention.ms": "5"},
		"e": {"cleanup.policy": "compact,delete", "segment.bytes": "5"}, "f": {},
	} {
		if got, ok := c.of(topic); !ok || !maps.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", topic, got, ok, want)
		}
	}
	if e := c.Described["e"]; e.Partitions != 3 || e.ID[0] != 0x90 || c.Described["f"] != (Described{Partitions: 1}) {
		t.Errorf("described: %v", c.Described)
	}
	if _, ok := (Configs{}).of("a"); ok {
		t.Error("nothing is known without a file")
	}
	for _, bad := range []string{"a b", "Topic: a\tPartitionCount: x", "Topic: a\tTopicId: x\tPartitionCount: 1", "a =1", "a b c=1", strings.Repeat("x", maxConfigLine+1)} {
		if _, err := ReadConfigs(strings.NewReader(bad)); err == nil {
			t.Errorf("%.20q is accepted", bad)
		}
	}
}

func FuzzReadConfigs(f *testing.F) {
	f.Add("Topic: e\tTopicId: kALPolkCTO2ScoCqTgFPoQ\tPartitionCount: 3\tConfigs: a=b,c,d=e\na b=c\n* d=e\nDynamic configs for topic c are:\n  x=y sensitive=false synonyms={}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadConfigs(strings.NewReader(text))
		if err != nil {
			return
		}
		for topic, keys := range c.Topics {
			for key := range keys {
				if key == "" || topic == "" {
					t.Errorf("%q: topic %q, key %q", text, topic, key)
				}
			}
		}
	})
}
