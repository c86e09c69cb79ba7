package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// autoCreate makes a topic that a client asked for by name, if that is allowed.
func (b *Broker) autoCreate(ctx context.Context, name string, allowed bool) error {
	if err := controller.CheckName(name); err != nil {
		return err
	}
	if !allowed || !b.conf.AutoCreateTopics {
		return kerr.UnknownTopicOrPartition
	}
	if !b.control.Seated() {
		return b.autoCreateElsewhere(ctx, name)
	}
	switch name {
	case offsetsTopic:
		return b.groups.ensure(ctx)
	case txnTopic:
		return b.txns.ensure(ctx)
	}
	res, err := b.createTopics(ctx, []controller.NewTopic{{Name: name, Partitions: -1, Replication: -1}}, false)
	if err != nil {
		return err
	}
	if kafkaError(res[0].Err) == kerr.TopicAlreadyExists {
		return nil // someone else was quicker
	}
	return res[0].Err
}

// createTopics makes topics: in the tree, as directories, and in the catalog. Results are in the order of the request.
func (b *Broker) createTopics(ctx context.Context, topics []controller.NewTopic, validateOnly bool) ([]controller.CreateResult, error) {
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.checkSeat(); err != nil {
		return nil, err
	}
	if err := b.finishDeletions(ctx); err != nil {
		return nil, err
	}
	res, err := b.control.CreateTopics(ctx, topics, validateOnly)
	if err != nil || validateOnly {
		return res, err
	}
	var made []controller.Topic
	for i := range res {
		if res[i].Err == nil {
			made = append(made, res[i].Topic)
		}
	}
	if err := b.addTopics(made); err != nil {
		err = errors.Join(err, b.uncreate(ctx, made))
		if b.topicAlarm.due() {
			b.logger.Error("topics could not be made", "topics", len(made), "error", err)
		}
		return nil, err
	}
	b.steward.made(made)
	return res, nil
}

// uncreate takes topics out of the tree again whose directories could not be made.
func (b *Broker) uncreate(ctx context.Context, topics []controller.Topic) error {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	if err := b.control.DeleteTopics(ctx, names); err != nil {
		return err
	}
	return b.control.CompleteDelete(ctx, names...)
}

// createPartitions makes a topic larger. Once the tree has the partitions they stay: when their directories cannot be made, the next request for the
// topic or the next start makes them.
func (b *Broker) createPartitions(ctx context.Context, name string, count int32, assignment [][]int32, validateOnly bool) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	t := b.topics.name(name)
	if t == nil {
		return refuse(kerr.UnknownTopicOrPartition, "") // clients have a text of their own
	}
	if err := b.openGrown(t); err != nil {
		return err
	}
	grown, err := b.control.CreatePartitions(ctx, name, count, assignment, validateOnly)
	if err != nil || validateOnly {
		return err
	}
	t.grown = &grown
	if err := b.openGrown(t); err != nil {
		return err
	}
	b.steward.made([]controller.Topic{grown})
	return nil
}

// openGrown opens the partitions that the tree has and the catalog does not, if there are any. Needs admin.
func (b *Broker) openGrown(t *topic) error {
	if t.grown == nil {
		return nil
	}
	old := *t.partitions.Load()
	added := []replicas{{topic: t, tree: t.grown, first: len(old)}}
	if err := b.openReplicas(added); err != nil {
		return err
	}
	all := append(old[:len(old):len(old)], added[0].parts...)
	t.partitions.Store(&all)
	t.grown = nil
	return nil
}

// alterTopic changes a topic's own keys. Change is given a copy of the present ones and returns the new set.
func (b *Broker) alterTopic(ctx context.Context, name string, validateOnly bool, change func(map[string]string) (map[string]string, error)) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	t := b.topics.name(name)
	if t == nil {
		return fmt.Errorf("topic %q does not exist: %w", name, kerr.UnknownTopicOrPartition)
	}
	own := make(map[string]string)
	for k, v := range t.ownKeys() {
		own[k] = v
	}
	own, err := change(own)
	if err != nil {
		return err
	}
	effective, err := b.settings().Topic(own)
	if err != nil {
		return fmt.Errorf("%w: %w", err, kerr.InvalidConfig)
	}
	if validateOnly {
		return nil
	}
	if err := b.control.AlterTopicConfig(ctx, name, own); err != nil {
		return err
	}
	t.configure(own, effective)
	b.configChanged()
	b.retentionChanged()
	return nil
}

// addTopics opens the partitions of topics that the tree has and puts them into the catalog.
func (b *Broker) addTopics(topics []controller.Topic) error {
	all := make([]replicas, len(topics))
	for i := range topics {
		t, err := b.newTopic(&topics[i])
		if err != nil {
			return err
		}
		all[i] = replicas{topic: t, tree: &topics[i]}
	}
	if err := b.openReplicas(all); err != nil {
		return err
	}
	for i := range all {
		all[i].topic.partitions.Store(&all[i].parts)
		b.topics.add(all[i].topic)
		b.groups.topicAdded(all[i].topic)
		b.txns.topicAdded(all[i].topic)
	}
	b.configChanged()
	return nil
}

// newTopic makes the catalog's entry for a topic, without partitions yet.
func (b *Broker) newTopic(c *controller.Topic) (*topic, error) {
	effective, err := b.settings().Topic(c.Config)
	if err != nil {
		return nil, fmt.Errorf("configuration of topic %s: %w", c.Name, err)
	}
	t := &topic{name: c.Name, id: c.ID, internal: controller.IsInternal(c.Name), overrides: c.Config}
	t.config.Store(&effective)
	t.partitions.Store(&[]*partition{})
	return t, nil
}
