package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/peers"
)

// What only another broker can do: it is asked. Topics that are made because they are needed are made by the controller.

// asker sends requests to other live brokers at the highest version that both know. It is a *peers.Pool.
type asker interface {
	Request(ctx context.Context, id int32, req kmsg.Request) (kmsg.Response, error)
	Close() error
}

// newAsker makes the connections to the other brokers of the view, when they are needed.
func (b *Broker) newAsker() asker {
	return peers.NewPool(peers.Dialer{ClientID: "gregor"}, func(id int32) (peers.Broker, bool) {
		v := b.view.Load()
		i, lives := v.find(id)
		if !lives || id == v.self {
			return peers.Broker{}, false
		}
		n := &v.brokers[i].node
		return peers.Broker{ID: id, Epoch: v.brokers[i].epoch, Endpoints: n.Endpoints, Rack: n.Rack}, true
	})
}

// askTimeout is how long clients may have to wait for another broker's answer.
const askTimeout = 10 * time.Second

// makeTopic makes a topic here or elsewhere. That it is there already is no error.
func (b *Broker) makeTopic(ctx context.Context, t controller.NewTopic) error {
	if !b.control.Seated() {
		return b.askController(ctx, t)
	}
	res, err := b.createTopics(ctx, []controller.NewTopic{t}, false)
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
	if err := b.askController(ctx, t); err != nil && b.topicAlarm.due() {
		b.logger.Warn("the controller did not make a topic", "topic", name, "error", err)
	}
	return kerr.UnknownTopicOrPartition
}

// askController has another broker, which is the controller, make a topic. That it is there already is no error.
func (b *Broker) askController(ctx context.Context, t controller.NewTopic) error {
	id := b.view.Load().controller
	if id < 0 || id == b.nodeID {
		return fmt.Errorf("no controller is known to make topic %s: %w", t.Name, kerr.CoordinatorNotAvailable)
	}
	if t.Replication > 1 {
		t.Replication = 1 // this broker may become a replica, and does not follow
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	kresp, err := b.others.Request(ctx, id, createTopicRequest(t))
	if err != nil {
		return fmt.Errorf("asking the controller to make topic %s: %w: %w", t.Name, err, kerr.CoordinatorNotAvailable)
	}
	resp, ok := kresp.(*kmsg.CreateTopicsResponse)
	if !ok || len(resp.Topics) != 1 {
		return fmt.Errorf("controller %d does not answer for topic %s: %w", id, t.Name, kerr.CoordinatorNotAvailable)
	}
	switch refused := kerr.TypedErrorForCode(resp.Topics[0].ErrorCode); refused {
	case nil, kerr.TopicAlreadyExists:
		return nil
	default:
		return fmt.Errorf("controller %d refuses to make topic %s (%s): %w", id, t.Name, refused.Message, kerr.CoordinatorNotAvailable)
	}
}

func createTopicRequest(t controller.NewTopic) *kmsg.CreateTopicsRequest {
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = t.Name, t.Partitions, t.Replication
	for key, value := range t.Config {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, value
		one.Configs = append(one.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = []kmsg.CreateTopicsRequestTopic{one}
	req.TimeoutMillis = int32(askTimeout.Milliseconds())
	return req
}
