package controller

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrNotController says that another broker has the controller's seat.
var ErrNotController = fmt.Errorf("this broker is not the controller: %w", kerr.NotController)

// ErrRegistered says that the broker's id is taken by a live session.
var ErrRegistered = errors.New("broker id is in use")

// ErrOtherCluster says that the tree does not belong to the broker's cluster any more.
var ErrOtherCluster = errors.New("the metadata is not this broker's")

// Error is why a change of one topic was refused.
type Error struct {
	// Kafka is the error of the protocol.
	Kafka *kerr.Error
	// Message is for the user, in Kafka's words where Kafka has some. It is empty where the code says it all.
	Message string
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Kafka.Error()
	}
	return e.Message
}

// Unwrap returns the error of the protocol.
func (e *Error) Unwrap() error { return e.Kafka }

func refuse(k *kerr.Error, format string, args ...any) *Error {
	return &Error{k, fmt.Sprintf(format, args...)}
}
