package config

import (
	"sort"
	"sync"
)

// key is the definition of one configuration key.
type key struct {
	name string
	typ  Type
	// def is the default as text. null means that there is none, so that the key has no value unless given.
	def  string
	null bool
	rule rule
	// dynamic broker keys can be changed while Kafka runs; the others are shown as read-only. Topic keys are always dynamic.
	dynamic bool
	doc     string
	// idle says what happens instead, for a key that is accepted and shown but has no effect.
	idle string
	// moot is a value that asks for what happens anyway, so that nothing need be said.
	moot string
	// from are the broker keys that a topic key takes its default from, the first that has a value counts.
	from []link
	// refused says why the broker does not start with the key.
	refused string
	// hidden keys are shown only when the topic has them, or when they were given for the broker or are asked for by name.
	hidden bool
}

// link is a broker key that gives a default, in units of the given number of the topic key's.
type link struct {
	name string
	unit int64
}

// allIdle gives keys of one table the same reason for having no effect.
func allIdle(reason string, keys []key) []key {
	for i := range keys {
		keys[i].idle = reason
	}
	return keys
}

// catalog is a table of keys.
type catalog struct {
	byName map[string]*key
	names  []string // sorted
}

func newCatalog(lists ...[]key) catalog {
	c := catalog{byName: map[string]*key{}}
	for _, list := range lists {
		for i := range list {
			if c.byName[list[i].name] != nil {
				continue // of two tables the first counts: accepted.txt may lag behind
			}
			c.byName[list[i].name] = &list[i]
			c.names = append(c.names, list[i].name)
		}
	}
	sort.Strings(c.names)
	return c
}

// The tables are made once and never changed.
var (
	topicCatalog = sync.OnceValue(func() catalog {
		return newCatalog(topicLogKeys(), topicCleanKeys(), topicMessageKeys(), topicReplicaKeys(), topicRemoteKeys(), topicLegacyKeys(), topicOwnKeys())
	})
	brokerCatalog = sync.OnceValue(func() catalog {
		return newCatalog(serverKeys(), topicDefaultKeys(), socketKeys(), logKeys(), rollKeys(), cleanerKeys(), cleanerWorkKeys(), messageKeys(), internalTopicKeys(), groupKeys(), transactionKeys(), idleKeys(), zookeeperKeys(), acceptedKeys())
	})
	clientMetricsCatalog = sync.OnceValue(func() catalog { return newCatalog(clientMetricsKeys()) })
	groupCatalog         = sync.OnceValue(func() catalog { return newCatalog(groupOwnKeys()) })
)

// fallbacks returns the broker keys that stand in for each other, in the order in which DescribeConfigs lists them.
func fallbacks(name string) []string {
	switch name {
	case "log.roll.ms", "log.roll.hours":
		return []string{"log.roll.ms", "log.roll.hours"}
	case "log.roll.jitter.ms", "log.roll.jitter.hours":
		return []string{"log.roll.jitter.ms", "log.roll.jitter.hours"}
	case "log.flush.interval.ms":
		return []string{"log.flush.interval.ms", "log.flush.scheduler.interval.ms"}
	case "log.retention.ms", "log.retention.minutes", "log.retention.hours":
		return []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"}
	}
	return []string{name}
}
