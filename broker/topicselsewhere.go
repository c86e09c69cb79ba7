package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// Topics that are made because they are needed. The controller makes them: this broker, or another that is asked to.

// makeTopic makes a topic here or elsewhere. That it is there already is no error.
func (b *Broker) makeTopic(ctx context.Context, t controller.NewTopic) error {
	how := b.askController
	if b.control.Seated() {
		how = func(ctx context.Context, topics []controller.NewTopic) ([]controller.CreateResult, error) {
			return b.createTopics(ctx, topics, false)
		}
	}
	res, err := how(ctx, []controller.NewTopic{t})
	if err == nil && kafkaError(res[0].Err) != kerr.TopicAlreadyExists {
		err = res[0].Err
	}
	return err
}

// autoCreateElsewhere has the controller make a topic that a client asked for by name. The client is told that there is none, as by Kafka: it asks
// again, and finds it when the controller has told of it.
func (b *Broker) autoCreateElsewhere(ctx context.Context, name string) error {
	t := controller.NewTopic{Name: name, Partitions: -1, Replication: -1}
	switch name {
	case offsetsTopic:
		t = b.groups.newTopic()
	case txnTopic:
		t = b.txns.newTopic()
	}
	if err := b.makeTopic(ctx, t); err != nil && b.topicAlarm.due() {
		b.logger.Warn("the controller did not make a topic", "topic", name, "error", err)
	}
	return kerr.UnknownTopicOrPartition
}

// askController has another broker, which is the controller, make topics. Results are in their order.
func (b *Broker) askController(_ context.Context, topics []controller.NewTopic) ([]controller.CreateResult, error) {
	return nil, fmt.Errorf("broker %d is the controller and has to make %s: %w", b.view.Load().controller, topics[0].Name, kerr.CoordinatorNotAvailable)
}
