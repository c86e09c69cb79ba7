package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// FindCoordinator (key 10), versions 0 to 6. The coordinator of a key is the broker that leads its partition of __consumer_offsets or
// __transaction_state. The topic is made when a key is first looked for, before the answer: a client that is told to wait would only ask again.
// There is no coordinator for share groups.

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
	keys := r.CoordinatorKeys
	if r.Version < findsMany {
		keys = []string{r.CoordinatorKey}
	}
	found := make([]kmsg.FindCoordinatorResponseCoordinator, len(keys))
	for i, key := range keys {
		found[i] = b.foundCoordinator(req.Conn, r, key, err)
	}
	if r.Version >= findsMany {
		resp.Coordinators = found
		return resp
	}
	f := &found[0]
	resp.NodeID, resp.Host, resp.Port, resp.ErrorCode, resp.ErrorMessage = f.NodeID, f.Host, f.Port, f.ErrorCode, f.ErrorMessage
	return resp
}

// foundCoordinator is the answer for one key; err is why there is no coordinator of its type at all.
func (b *Broker) foundCoordinator(conn *wire.ConnInfo, r *kmsg.FindCoordinatorRequest, key string, err error) kmsg.FindCoordinatorResponseCoordinator {
	var at seenBroker
	if err == nil {
		at, err = b.coordinatorOf(conn, r.CoordinatorType, key)
	}
	out := kmsg.FindCoordinatorResponseCoordinator{Key: key, NodeID: at.id, Host: at.host, Port: at.port, ErrorMessage: noErrorText(r.Version)}
	if err != nil {
		out.NodeID, out.Host, out.Port, out.ErrorCode, out.ErrorMessage = -1, "", -1, code(err), errorText(err)
		if kafkaError(err) != kerr.InvalidRequest && b.groupAlarm.due() {
			b.logger.Warn("no coordinator", "type", r.CoordinatorType, "key", key, "error", err)
		}
	}
	return out
}

// coordinatorOf is the coordinator of a key as a client on a connection sees it.
func (b *Broker) coordinatorOf(conn *wire.ConnInfo, kind int8, key string) (seenBroker, error) {
	v := b.view.Load()
	leader := b.groups.coordinates
	if kind == coordinatorOfTxn {
		leader = b.txns.coordinates
	}
	id, err := leader(key, v)
	if err != nil {
		return seenBroker{}, err
	}
	if i, lives := v.find(id); lives {
		if s, ok := b.seenAs(&v.brokers[i], conn); ok {
			return s, nil
		}
	}
	return seenBroker{}, refuse(kerr.CoordinatorNotAvailable, "broker %d, which is the coordinator, has no listener %s", id, conn.Listener)
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
