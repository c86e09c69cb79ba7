package broker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// list asks Metadata for the names of all topics.
func (c *client) list() []string {
	c.t.Helper()
	r := kmsg.NewPtrMetadataRequest()
	r.Topics = nil
	var names []string
	for _, t := range ask[*kmsg.MetadataResponse](c, 12, r).Topics {
		names = append(names, *t.Topic)
	}
	slices.Sort(names)
	return names
}

// What one answer says the next one sees: create many, write to them in reverse order, list, delete all, list, and all over again.
func TestAdminAnswersAreCoherent(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	var names []string
	var topics []kmsg.CreateTopicsRequestTopic
	for i := range 100 {
		names = append(names, fmt.Sprintf("t%03d", i))
		topics = append(topics, newTopic(names[i], 1, 1))
	}
	for round := range 3 {
		for _, got := range ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(topics...)).Topics {
			if got.ErrorCode != 0 {
				t.Fatalf("round %d: creating %s: %d %s", round, got.Topic, got.ErrorCode, text(got.ErrorMessage))
			}
		}
		for _, name := range slices.Backward(names) {
			if got := c.produce(name, 0, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 || got.BaseOffset != 0 {
				t.Fatalf("round %d: produce to %s: error %d, offset %d", round, name, got.ErrorCode, got.BaseOffset)
			}
		}
		if got := c.list(); !slices.Equal(got, names) {
			t.Fatalf("round %d: list is %v", round, got)
		}
		r := deleteRequest()
		r.TopicNames = names
		for _, got := range ask[*kmsg.DeleteTopicsResponse](c, 5, r).Topics {
			if got.ErrorCode != 0 {
				t.Fatalf("round %d: deleting %s: %d %s", round, text(got.Topic), got.ErrorCode, text(got.ErrorMessage))
			}
		}
		if got := c.list(); len(got) != 0 {
			t.Fatalf("round %d: after the deletion there are %v", round, got)
		}
	}
}

// Several clients change the same topics at once. Each answer is one that Kafka could give, and in the end tree, catalog and directories agree.
func TestAdminConcurrently(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, "auto.create.topics.enable", "false")
	fine := map[int16]bool{0: true, kerr.TopicAlreadyExists.Code: true, kerr.UnknownTopicOrPartition.Code: true, kerr.InvalidPartitions.Code: true,
		kerr.NotLeaderForPartition.Code: true}
	var wg sync.WaitGroup
	for g := range 4 {
		c := b.dial()
		wg.Go(func() {
			check := func(what string, code int16) {
				if !fine[code] {
					t.Errorf("%s: error %d", what, code)
				}
			}
			for i := range 40 {
				name := fmt.Sprint("t", i%3)
				switch (i + g) % 5 {
				case 0, 1:
					check("create", ask[*kmsg.CreateTopicsResponse](c, 7, createRequest(newTopic(name, 2, 1))).Topics[0].ErrorCode)
				case 2:
					check("delete", ask[*kmsg.DeleteTopicsResponse](c, 6, deleteRequest(name)).Topics[0].ErrorCode)
				case 3:
					check("grow", ask[*kmsg.CreatePartitionsResponse](c, 3, growRequest(name, int32(3+i))).Topics[0].ErrorCode)
				case 4:
					r := incrementRequest(ofTopic, name, set("retention.ms", fmt.Sprint(i)))
					check("alter", ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0].ErrorCode)
					check("produce", c.produce(name, 0, batchOf(t, 0, record{"k", "v", 1})).ErrorCode)
					check("list", ask[*kmsg.ListOffsetsResponse](c, 7, listRequest(name, timeLatest, 0)).Topics[0].Partitions[0].ErrorCode)
				}
			}
		})
	}
	wg.Wait()
	want := b.shape()
	b.stopClean()
	if got := startBroker(t, dir).shape(); got != want {
		t.Errorf("after a restart:\n%s, want\n%s", got, want)
	}
}

// shape shows the topics with their ids, numbers of partitions that work, and keys.
func (b *testBroker) shape() string {
	var out strings.Builder
	for _, t := range b.topics.all() {
		working := 0
		for _, p := range *t.partitions.Load() {
			if p.offline() == nil {
				working++
			}
		}
		fmt.Fprintf(&out, "%s %x %d %d %v\n", t.name, t.id, len(*t.partitions.Load()), working, t.ownKeys())
	}
	return out.String()
}

// A deletion that was marked and not finished is finished by the next start.
func TestInterruptedDeletion(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	old := c.create("gone", 2)
	c.create("kept", 1)
	c.produce("gone", 1, batchOf(t, 0, record{"k", "old", 1}))
	if err := b.control.DeleteTopics(t.Context(), []string{"gone"}); err != nil {
		t.Fatal(err)
	}
	b.stopClean()
	b = startBroker(t, dir, "auto.create.topics.enable", "false")
	c = b.dial()
	if got := c.list(); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("topics are %v", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "gone-") && !strings.HasSuffix(e.Name(), "-delete") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if again := c.create("gone", 2); again.TopicID == old.TopicID {
		t.Error("the new topic has the old id")
	}
	if got := c.fetch("gone", 1, 0, 0); got.ErrorCode != 0 || got.HighWatermark != 0 {
		t.Errorf("the new topic begins with error %d, %d records", got.ErrorCode, got.HighWatermark)
	}
}

// A topic that was looked up, deleted and made again by someone else before the deletion began is another topic, and stays.
func TestDeletionOfATopicThatIsGoneAlready(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.create("a", 1)
	stale := b.topics.name("a")
	if got := ask[*kmsg.DeleteTopicsResponse](c, 6, deleteRequest("a")).Topics[0].ErrorCode; got != 0 {
		t.Fatalf("delete: error %d", got)
	}
	c.create("a", 1)
	if err := b.deleteTopics(t.Context(), []*topic{stale}); err != nil {
		t.Error(err)
	}
	if got := c.produce("a", 0, batchOf(t, 0, record{"k", "v", 1})); got.ErrorCode != 0 {
		t.Errorf("the new topic is gone: error %d", got.ErrorCode)
	}
}

// Every version of every key that is advertised is answered at that version, also when it asks for nothing.
func TestEveryAdvertisedVersionIsAnswered(t *testing.T) {
	b := startBroker(t, t.TempDir())
	for _, a := range b.apis {
		for v := a.min; v <= a.max; v++ {
			r := kmsg.RequestForKey(a.key)
			if av, ok := r.(*kmsg.ApiVersionsRequest); ok {
				av.ClientSoftwareName, av.ClientSoftwareVersion = "test", "1"
			}
			if p, ok := r.(*kmsg.ProduceRequest); ok {
				p.Acks = -1
			}
			c := b.dial()
			if got := ask[kmsg.Response](c, v, r); got.Key() != a.key {
				t.Errorf("key %d v%d is answered with key %d", a.key, v, got.Key())
			}
			c.conn.Close()
		}
	}
}
