package fetchsession

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// start is when tests begin; they move it by hand.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// request makes a Fetch request by names (v12). Each partition is "topic/partition@offset".
func request(id, epoch int32, parts ...string) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version = 12
	r.SessionID, r.SessionEpoch = id, epoch
	for _, s := range parts {
		t, p := parse(s)
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = t
		topic.Partitions = append(topic.Partitions, p)
		r.Topics = append(r.Topics, topic)
	}
	return r
}

// byID is request for v13: the topic's name becomes the first byte of its id.
func byID(id, epoch int32, parts ...string) *kmsg.FetchRequest {
	r := request(id, epoch, parts...)
	r.Version = 13
	for i := range r.Topics {
		r.Topics[i].TopicID[0] = r.Topics[i].Topic[0]
		r.Topics[i].Topic = ""
	}
	return r
}

func forget(r *kmsg.FetchRequest, topic string, parts ...int32) *kmsg.FetchRequest {
	f := kmsg.NewFetchRequestForgottenTopic()
	f.Partitions = parts
	if r.Version >= 13 {
		f.TopicID[0] = topic[0]
	} else {
		f.Topic = topic
	}
	r.ForgottenTopics = append(r.ForgottenTopics, f)
	return r
}

func parse(s string) (topic string, p kmsg.FetchRequestTopicPartition) {
	p = kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 20
	if _, err := fmt.Sscanf(s, "%1s/%d@%d", &topic, &p.Partition, &p.FetchOffset); err != nil {
		panic(err)
	}
	return topic, p
}

// read shows a context's partitions as parse reads them.
func read(c *Context) []string {
	var out []string
	for i := range c.Len() {
		p := c.Partition(i)
		name := p.Topic
		if name == "" {
			name = string(p.TopicID[:1])
		}
		out = append(out, fmt.Sprintf("%s/%d@%d", name, p.Partition, p.FetchOffset))
	}
	return out
}

// begin is Begin without an error.
func begin(t *testing.T, c *Cache, r *kmsg.FetchRequest, now time.Time) *Context {
	t.Helper()
	ctx, err := c.Begin(r, false, now)
	if err != nil {
		t.Fatalf("session %d epoch %d: %v", r.SessionID, r.SessionEpoch, err)
	}
	return ctx
}

// end answers every partition without news and ends the request.
func end(c *Context) int32 {
	for i := range c.Len() {
		c.Include(i, Answer{})
	}
	id := c.SessionID()
	c.End()
	return id
}

// open makes a session with the given partitions.
func open(t *testing.T, c *Cache, now time.Time, parts ...string) int32 {
	t.Helper()
	id := end(begin(t, c, request(0, 0, parts...), now))
	if id == 0 {
		t.Fatal("no session was made")
	}
	return id
}

func wantError(t *testing.T, c *Cache, r *kmsg.FetchRequest, want *Error) {
	t.Helper()
	ctx, err := c.Begin(r, false, start)
	if !errors.Is(err, want) || ctx != nil {
		t.Fatalf("session %d epoch %d: got %v, want %v", r.SessionID, r.SessionEpoch, err, want)
	}
}
