package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"gregor/broker/adopt"
	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/log"
	"gregor/log/logdir"
)

// openStore takes the data directory, opens the metadata tree in it, then the logs, and fills the catalog. Nothing of it is visible to clients yet.
func (b *Broker) openStore(ctx context.Context) error {
	var topics []controller.Topic
	configs := make(map[string]log.Config)
	found, err := b.lookForKafka(ctx)
	if err != nil {
		return err
	}
	clusterID, nodeID, err := b.openShared(ctx)
	if err != nil {
		return err
	}
	dir, err := logdir.OpenSet(logdir.SetOptions{
		Dirs: b.conf.LogDirs,
		Options: logdir.Options{
			FS:                 b.fs,
			BrokerID:           nodeID,
			ClusterID:          clusterID,
			Logger:             b.levels.Logger(logOfStore),
			Now:                b.now,
			Parallel:           b.recoverers(),
			FastBoot:           b.conf.FastBoot,
			FileDeleteDelay:    deleteDelay(b.conf.Defaults.FileDeleteDelayMs),
			CheckpointInterval: b.conf.FlushOffsetCheckpointInterval,
			Config: func(topic string) log.Config {
				if c, ok := configs[topic]; ok {
					return c
				}
				return logConfig(b.settings().Defaults, b.producerExpiryMs())
			},
		},
		Locked: func(d *logdir.Set) (err error) {
			if topics, err = b.openMetadata(ctx, d, found); err != nil {
				return err
			}
			d.SetParallel(b.recoverers())
			return b.logConfigs(topics, configs)
		},
		Expected: func() []logdir.TopicPartition { return b.expected(topics) },
	})
	if err != nil {
		return err
	}
	b.dir = dir
	if err := b.openTopics(ctx, topics); err != nil {
		return err
	}
	b.warnOfUnknown(topics)
	if n := len(dir.Partitions()); n > 0 && !dir.WasClean() {
		b.logger.Info("last stop was not clean: syncing what was recovered before clients are served", "partitions", n)
	}
	// Whoever connects finds the high watermarks where they were.
	return dir.Sync(ctx)
}

// openMetadata opens the tree, fills it with what was found in a directory of Apache Kafka, and takes the controller's seat. The directory is locked.
func (b *Broker) openMetadata(ctx context.Context, d *logdir.Set, found *adopt.Plan) ([]controller.Topic, error) {
	b.nodeID = d.BrokerID()
	if b.steward != nil {
		return b.openSharedMetadata(ctx, d)
	}
	tree, err := meta.OpenLocal(b.metaFile())
	if err != nil {
		return nil, err
	}
	b.tree = tree
	if err := checkMoved(ctx, tree, b.metaFile()); err != nil {
		return nil, err
	}
	if err := b.adoptInto(ctx, tree, found, d.ClusterID()); err != nil {
		return nil, err
	}
	if b.control, err = controller.Start(ctx, tree, b.controllerConfig(d)); err != nil {
		return nil, err
	}
	b.lookAround(b.nodeID)
	topics, err := b.readMetadata(ctx)
	if err != nil {
		return nil, err
	}
	if !d.WasClean() {
		if err := b.control.BumpLeaderEpochs(ctx, topics); err != nil {
			return nil, fmt.Errorf("beginning new leader epochs: %w", err)
		}
	}
	if _, err := b.control.ElectLeaders(ctx, topics, []int32{b.nodeID}); err != nil { // of a tree that comes from a cluster
		return nil, err
	}
	return topics, nil
}

func (b *Broker) controllerConfig(d *logdir.Set) controller.Config {
	return controller.Config{
		BrokerID:       b.nodeID,
		ClusterID:      d.ClusterID(),
		Endpoints:      b.endpoints(),
		Rack:           b.conf.Rack,
		Partitions:     b.conf.NumPartitions,
		Replication:    b.conf.DefaultReplicationFactor,
		CheckConfig:    b.checkTopicConfig,
		Shared:         b.steward != nil,
		MaxReplication: 1,
		KnownID:        b.knownTopicID,
		Now:            b.now,
		Logger:         b.levels.Logger(logOfController),
	}
}

// readMetadata puts into force what the tree says of this broker and its clients, and reads the topics.
func (b *Broker) readMetadata(ctx context.Context) ([]controller.Topic, error) {
	b.clusterID = b.control.ClusterID()
	if err := b.loadDynamic(ctx); err != nil {
		return nil, fmt.Errorf("reading the broker's configuration: %w", err)
	}
	if err := b.loadQuotas(ctx); err != nil {
		return nil, fmt.Errorf("reading the quotas: %w", err)
	}
	if err := b.loadFeatures(ctx); err != nil {
		return nil, err
	}
	topics, err := b.control.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the topics: %w", err)
	}
	return topics, nil
}

func (b *Broker) checkTopicConfig(own map[string]string) error {
	_, err := b.settings().Topic(own)
	return err
}

// logConfigs computes the configuration of every topic's logs. A topic whose keys are not valid any more keeps the default, and says so.
func (b *Broker) logConfigs(topics []controller.Topic, configs map[string]log.Config) error {
	for i := range topics {
		effective, err := b.settings().Topic(topics[i].Config)
		if err != nil {
			b.logger.Error("configuration of a topic is not valid, the broker's defaults apply to it", "topic", topics[i].Name, "error", err)
			topics[i].Config = map[string]string{}
			effective = b.settings().Defaults
		}
		configs[topics[i].Name] = logConfig(effective, b.producerExpiryMs())
	}
	return nil
}

// recoverers is how many logs are opened, and closed, at a time. Kafka's default leaves cores idle.
func (b *Broker) recoverers() int {
	return max(int(b.settings().RecoveryThreads), 2*runtime.GOMAXPROCS(0))
}

func (b *Broker) producerExpiryMs() int64 { return b.settings().ProducerIDExpiration.Milliseconds() }

// openTopics fills the catalog from the tree and finishes deletions that a stop interrupted.
func (b *Broker) openTopics(ctx context.Context, topics []controller.Topic) error {
	var known []controller.Topic
	for i := range topics {
		if t := &topics[i]; t.Deleting && b.steward != nil {
			continue // until the controller says so
		} else if t.Deleting {
			b.leaving = append(b.leaving, leaving{name: t.Name, id: t.ID, partitions: len(t.Partitions)})
		} else {
			known = append(known, *t)
		}
	}
	if err := b.finishDeletions(ctx); err != nil {
		return err
	}
	b.lostReplicas = b.dir.Offline()
	b.warnOfMissing(known)
	err := b.addTopics(known)
	b.lostReplicas = nil
	return err
}

// warnOfMissing names partitions that are about to begin empty although their topics are known: a crash ended their creation, or their data is elsewhere.
func (b *Broker) warnOfMissing(known []controller.Topic) {
	if b.lostReplicas != nil {
		return
	}
	var missing []logdir.TopicPartition
	for _, id := range b.expected(known) {
		if _, ok := b.dir.Get(id); !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		b.logger.Warn("partitions are in no log directory and begin empty; if log.dirs lacks a directory, stop and add it", "partitions", len(missing),
			"first", missing[0].String(), "log.dirs", b.conf.LogDirs)
	}
}

// warnOfUnknown names partitions on the disk whose topics nobody knows: they are kept, and nobody sees them.
func (b *Broker) warnOfUnknown(topics []controller.Topic) {
	known := make(map[string]bool, len(topics))
	for i := range topics {
		known[topics[i].Name] = true
	}
	var unknown []string
	for _, p := range b.dir.Partitions() {
		if !known[p.ID().Topic] {
			unknown = append(unknown, p.ID().String())
		}
	}
	if len(unknown) > 0 {
		b.logger.Warn("partitions in the log directories belong to no topic of the metadata; they stay on the disk and are not served", "partitions", len(unknown),
			"first", unknown[0], "metadata", b.Metadata())
	}
}

// expected are the replicas of this broker that have been made.
func (b *Broker) expected(topics []controller.Topic) (all []logdir.TopicPartition) {
	for i := range topics {
		if t := &topics[i]; !t.Deleting {
			for n := range t.Partitions {
				if slices.Contains(t.Partitions[n].Replicas, b.nodeID) {
					all = append(all, logdir.TopicPartition{Topic: t.Name, Partition: int32(n)})
				}
			}
		}
	}
	return all
}

// replicas are the partitions of a topic that are to be found or made, from number first on.
type replicas struct {
	topic *topic
	tree  *controller.Topic
	first int
	parts []*partition
}

// openReplicas makes the partitions of several topics, with their logs where this broker has a replica.
func (b *Broker) openReplicas(all []replicas) error {
	var here []*partition
	for i := range all {
		r := &all[i]
		for n := r.first; n < len(r.tree.Partitions); n++ {
			told := &r.tree.Partitions[n]
			p := b.newPartition(r.topic, int32(n), b.leadershipOf(told))
			r.parts = append(r.parts, p)
			if slices.Contains(told.Replicas, b.nodeID) {
				here = append(here, p)
			}
		}
	}
	return b.openLogs(here)
}

// openLogs finds or makes the logs of partitions, with one sync for all that are made. What is missing is made: after a crash between
// the tree and the directory that is how a creation ends. But with a directory out of use, what is missing at the start is taken to be there.
func (b *Broker) openLogs(parts []*partition) error {
	var missing []logdir.Spec
	var homeless []*partition
	for _, p := range parts {
		found, ok := b.dir.Get(p.at())
		switch {
		case ok:
			b.adopt(p, found)
		case b.lostReplicas != nil:
			p.err = b.lostReplicas
		default:
			missing = append(missing, logdir.Spec{TopicPartition: p.at(), TopicID: p.topic.id})
			homeless = append(homeless, p)
		}
	}
	made, err := b.dir.Create(missing...)
	if err != nil {
		return fmt.Errorf("making %d partitions: %w", len(missing), err)
	}
	for i := range made {
		b.adopt(homeless[i], made[i])
	}
	return nil
}

// adopt gives a partition its log. A directory of another topic's id is an older topic of the same name: its data must not be taken for this one's.
func (b *Broker) adopt(p *partition, found *logdir.Partition) {
	var none [16]byte
	switch id := found.TopicID(); {
	case found.Err() != nil:
		p.err = found.Err()
	case !sameID(id, p.topic.id):
		p.err = fmt.Errorf("directory %s belongs to topic id %s, the topic has %s; move it away: %w", found.Dir(), controller.FormatID(id), controller.FormatID(p.topic.id),
			errOtherTopic)
		b.logger.Error("partition is offline", "topic", p.topic.name, "partition", p.num, "error", p.err)
	default:
		if id == none && p.topic.id != none { // a crash during the creation, or a directory from before Kafka had topic ids
			if err := b.dir.SetTopicID(found, p.topic.id); err != nil {
				b.logger.Warn("topic id cannot be written", "dir", found.Dir(), "error", err)
			}
		}
		p.log = found.Log()
		p.log.SetConfig(logConfig(*p.topic.config.Load(), p.producerExpiryMs()))
	}
}

// errOtherTopic is a directory that belongs to another topic of the same name.
var errOtherTopic = errors.New("another topic of the same name")
