package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// FindCoordinator (key 10), versions 0 to 6. This broker coordinates everything. __consumer_offsets is made when a group is first looked for, before the
// answer: a client that is told to wait would only ask again. There is no coordinator for share groups.

// Coordinator types of FindCoordinator.
const (
	coordinatorOfGroup = 0
	coordinatorOfTxn   = 1
)

// findsMany is the first version of FindCoordinator with a list of keys.
const findsMany = 4

func (b *Broker) handleFindCoordinator(ctx context.Context, req *wire.Request, r *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	err := b.prepareCoordinator(ctx, r.CoordinatorType)
	if err != nil && kafkaError(err) != kerr.InvalidRequest && b.groupAlarm.due() {
		b.logger.Warn("no coordinator", "type", r.CoordinatorType, "error", err)
	}
	node, text := b.nodeID, noErrorText(r.Version)
	host, port := b.address(req.Conn)
	if err != nil {
		node, host, port, text = -1, "", -1, errorText(err)
	}
	if r.Version < findsMany {
		resp.NodeID, resp.Host, resp.Port, resp.ErrorCode, resp.ErrorMessage = node, host, port, code(err), text
		return resp
	}
	resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(r.CoordinatorKeys))
	for i, key := range r.CoordinatorKeys {
		out := &resp.Coordinators[i]
		out.Key, out.NodeID, out.Host, out.Port, out.ErrorCode, out.ErrorMessage = key, node, host, port, code(err), text
	}
	return resp
}

// noErrorText is what Kafka says in the message of a coordinator that was found.
func noErrorText(version int16) *string {
	text := "NONE"
	if version >= findsMany {
		text = ""
	}
	return &text
}

// prepareCoordinator makes sure that there is a coordinator of a type.
func (b *Broker) prepareCoordinator(ctx context.Context, kind int8) error {
	var err error
	name := offsetsTopic
	switch kind {
	case coordinatorOfTxn:
		name, err = txnTopic, b.txns.ensure(ctx)
	case coordinatorOfGroup:
		err = b.groups.ensure(ctx)
	default:
		return kerr.InvalidRequest
	}
	if err == nil {
		return nil
	}
	if k := kafkaError(err); k == kerr.InvalidRequest || k == kerr.CoordinatorNotAvailable {
		return err
	}
	return refuse(kerr.CoordinatorNotAvailable, "%s could not be made: %v", name, err)
}
