package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// UnregisterBroker (key 64), version 0 (KIP-631). A broker is registered as long as it runs, as in Apache Kafka with ZooKeeper: there is nothing to take back
// of one that is gone, and one that runs leaves by being stopped.

func (b *Broker) handleUnregisterBroker(_ context.Context, _ *wire.Request, r *kmsg.UnregisterBrokerRequest) kmsg.Response {
	resp := kmsg.NewPtrUnregisterBrokerResponse()
	err := refuse(kerr.BrokerIDNotRegistered, "Broker ID %d is not currently registered", r.BrokerID)
	if b.view.Load().lives(r.BrokerID) {
		err = refuse(kerr.InvalidRequest, "Broker ID %d is running; stop it, then it is not registered any more", r.BrokerID)
	}
	resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
	return resp
}
