package broker

import (
	"sort"
	"sync"
	"sync/atomic"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/log"
)

// catalog is the topics of this broker, by name and by id.
type catalog struct {
	mu     sync.RWMutex
	byName map[string]*topic
	byID   map[[16]byte]*topic
}

func newCatalog() *catalog {
	return &catalog{byName: make(map[string]*topic), byID: make(map[[16]byte]*topic)}
}

// name returns the topic of that name, nil when there is none.
func (c *catalog) name(name string) *topic {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[name]
}

// id returns the topic with that id, nil when there is none.
func (c *catalog) id(id [16]byte) *topic {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id]
}

// all returns every topic, sorted by name.
func (c *catalog) all() []*topic {
	c.mu.RLock()
	topics := make([]*topic, 0, len(c.byName))
	for _, t := range c.byName {
		topics = append(topics, t)
	}
	c.mu.RUnlock()
	sort.Slice(topics, func(i, j int) bool { return topics[i].name < topics[j].name })
	return topics
}

func (c *catalog) add(t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[t.name] = t
	if t.id != [16]byte{} {
		c.byID[t.id] = t
	}
}

func (c *catalog) remove(t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, t.name)
	delete(c.byID, t.id)
}

// topic is one topic and its partitions on this broker.
type topic struct {
	name     string
	id       [16]byte // zero when the controller is older than topic ids (Kafka 2.8)
	internal bool
	// deleted is set before the topic's logs are closed for good.
	deleted atomic.Bool
	// config is the effective configuration; it is replaced as a whole.
	config atomic.Pointer[config.Topic]
	// partitions is replaced as a whole when partitions are added; the index is the partition's number.
	partitions atomic.Pointer[[]*partition]

	// grown is the topic in the tree while that has partitions that could not be opened here yet; guarded by Broker.admin.
	grown *controller.Topic

	mu        sync.Mutex
	overrides map[string]string // the topic's own keys; guarded by mu, replaced and never changed in place
}

// partition returns partition n, nil when the topic does not have it.
func (t *topic) partition(n int32) *partition {
	parts := *t.partitions.Load()
	if n < 0 || int(n) >= len(parts) {
		return nil
	}
	return parts[n]
}

// ownKeys returns the topic's own configuration keys. The map must not be changed.
func (t *topic) ownKeys() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overrides
}

// configure sets the topic's own keys and what follows from them.
func (t *topic) configure(overrides map[string]string, effective config.Topic) {
	t.mu.Lock()
	t.overrides = overrides
	t.mu.Unlock()
	t.config.Store(&effective)
	for _, p := range *t.partitions.Load() {
		if p.log != nil {
			p.log.SetConfig(logConfig(effective, p.producerExpiryMs()))
		}
	}
}

// logConfig is what the store needs of a topic's configuration.
func logConfig(t config.Topic, producerExpiryMs int64) log.Config {
	if t.CleanupPolicy.Compact {
		// A segment that is not full must not keep its records from compaction for longer.
		t.SegmentMs = min(t.SegmentMs, t.MaxCompactionLagMs)
	}
	return log.Config{
		SegmentBytes:       int64(t.SegmentBytes),
		SegmentMs:          t.SegmentMs,
		SegmentJitterMs:    t.SegmentJitterMs,
		IndexIntervalBytes: int(t.IndexIntervalBytes),
		SegmentIndexBytes:  int(t.SegmentIndexBytes),
		FlushMessages:      t.FlushMessages,
		FlushMs:            t.FlushMs,
		Preallocate:        t.Preallocate,
		ProducerExpiryMs:   producerExpiryMs,
		Compacted:          t.CleanupPolicy.Compact,
		FileDeleteDelayMs:  t.FileDeleteDelayMs,
	}
}
