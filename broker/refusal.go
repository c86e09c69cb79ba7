package broker

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/controller"
)

// refuse makes an error with one of Kafka's codes and a text for the user.
func refuse(k *kerr.Error, format string, args ...any) error {
	return &controller.Error{Kafka: k, Message: fmt.Sprintf(format, args...)}
}

// errorText is what an answer with a message says of an error: nil for none, and for one that was refused without a text.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	var refused *controller.Error
	if errors.As(err, &refused) {
		if refused.Message == "" {
			return nil
		}
		return &refused.Message
	}
	text := err.Error()
	if k, ok := err.(*kerr.Error); ok {
		text = k.Description
	}
	return &text
}

// noSuchTopic is Kafka's text for a topic that is not there.
func noSuchTopic() error {
	return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
}

// repeated finds the names that are there more than once.
func repeated[T any, K comparable](items []T, name func(*T) K) map[K]bool {
	count := make(map[K]int, len(items))
	for i := range items {
		count[name(&items[i])]++
	}
	twice := make(map[K]bool)
	for n, c := range count {
		if c > 1 {
			twice[n] = true
		}
	}
	return twice
}
