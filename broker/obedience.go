package broker

import (
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
)

// obedience is which controller of a cluster this broker obeys.
type obedience struct {
	// epoch is the newest controller epoch that an order came with.
	epoch atomic.Int32

	followers alarm // replicas that are to follow
	strays    alarm // replicas that a full order does not name
	// Anybody may send these, as often as they like.
	refusals  alarm // orders that are not carried out, or parts of them
	shutdowns alarm // controlled shutdowns that are refused
	blocks    alarm // requests for producer ids that are refused
}

// notFenced is the broker epoch of a sender that knows none, an old one or a tool.
const notFenced = -1

// order is who gives an order.
type order struct {
	controllerEpoch int32
	brokerEpoch     int64 // of this broker, as the controller knows it
}

// obey says why an order is not to be carried out, nil when it is: it is of an older controller than one heard of or than this broker itself
// is, or meant for an earlier registration of this broker. Needs admin, so that an older order does not overtake.
func (b *Broker) obey(o order) error {
	// A newer one than ours can come before we know of our own registration.
	if own := b.brokerEpoch.Load(); o.brokerEpoch != notFenced && o.brokerEpoch < own {
		return fmt.Errorf("order for broker epoch %d, this broker's is %d: %w", o.brokerEpoch, own, kerr.StaleBrokerEpoch)
	}
	newest := max(b.obedience.epoch.Load(), b.control.Epoch())
	if o.controllerEpoch < newest {
		return fmt.Errorf("order of controller epoch %d, the newest is %d: %w", o.controllerEpoch, newest, kerr.StaleControllerEpoch)
	}
	b.obedience.epoch.Store(o.controllerEpoch)
	return nil
}

// refused logs that a whole order was not carried out.
func (b *Broker) refused(what string, controller int32, err error) {
	if b.obedience.refusals.due() {
		b.logger.Warn("order of a controller is not carried out", "order", what, "controller", controller, "error", err)
	}
}

// maxPartition bounds the numbers of partitions in orders: they count from 0, and a topic's are one list.
const maxPartition = 100_000
