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
	if err != nil && r.CoordinatorType == coordinatorOfGroup {
		b.logger.Warn("no group coordinator", "error", err)
	}
	node, host, port := b.nodeID, "", int32(-1)
	if host, port = b.address(req.Conn); err != nil {
		node, host, port = -1, "", -1
	}
	if r.Version < findsMany {
		resp.NodeID, resp.Host, resp.Port, resp.ErrorCode = node, host, port, code(err)
		none := "NONE" // what Kafka says
		if resp.ErrorMessage = &none; err != nil {
			resp.ErrorMessage = errorText(err)
		}
		return resp
	}
	resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(r.CoordinatorKeys))
	for i, key := range r.CoordinatorKeys {
		out := &resp.Coordinators[i]
		out.Key, out.NodeID, out.Host, out.Port, out.ErrorCode = key, node, host, port, code(err)
		none := ""
		if out.ErrorMessage = &none; err != nil {
			out.ErrorMessage = errorText(err)
		}
	}
	return resp
}

// prepareCoordinator makes sure that there is a coordinator of a type.
func (b *Broker) prepareCoordinator(ctx context.Context, kind int8) error {
	switch kind {
	case coordinatorOfTxn:
		return nil
	case coordinatorOfGroup:
	default:
		return kerr.InvalidRequest
	}
	err := b.groups.ensure(ctx)
	if err == nil {
		return nil
	}
	if k := kafkaError(err); k == kerr.InvalidRequest || k == kerr.CoordinatorNotAvailable {
		return err
	}
	return refuse(kerr.CoordinatorNotAvailable, "%s could not be made: %v", offsetsTopic, err)
}
