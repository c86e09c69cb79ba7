package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// ControlledShutdown (key 7), versions 0 to 3: a broker that is about to stop asks the controller to give its partitions to others, and is told which it
// still leads. Partitions of one replica do not count: nobody else could lead them. Leaders of others do not move before replicas
// follow, so they remain, and the broker stops as it would without a controller.

func (b *Broker) handleControlledShutdown(_ context.Context, _ *wire.Request, r *kmsg.ControlledShutdownRequest) kmsg.Response {
	resp := kmsg.NewPtrControlledShutdownResponse()
	if err := b.checkShutdown(r); err != nil {
		if b.obedience.shutdowns.due() {
			b.logger.Warn("controlled shutdown of a broker is refused", "broker", r.BrokerID, "error", err)
		}
		resp.ErrorCode = code(err)
		return resp
	}
	for _, t := range b.topics.all() {
		for _, p := range *t.partitions.Load() {
			if l := p.lead.Load(); l.leader == r.BrokerID && len(l.replicas) > 1 {
				left := kmsg.NewControlledShutdownResponsePartitionsRemaining()
				left.Topic, left.Partition = t.name, p.num
				resp.PartitionsRemaining = append(resp.PartitionsRemaining, left)
			}
		}
	}
	b.logger.Info("broker is about to stop", "broker", r.BrokerID, "partitions that others could lead", len(resp.PartitionsRemaining))
	return resp
}

func (b *Broker) checkShutdown(r *kmsg.ControlledShutdownRequest) error {
	if !b.control.Seated() {
		return fmt.Errorf("broker %d is not the controller: %w", b.nodeID, kerr.StaleControllerEpoch)
	}
	v := b.view.Load()
	i, lives := v.find(r.BrokerID)
	if !lives {
		return fmt.Errorf("broker %d does not live: %w", r.BrokerID, kerr.BrokerNotAvailable)
	}
	if known := v.brokers[i].epoch; r.BrokerEpoch != notFenced && r.BrokerEpoch < known {
		return fmt.Errorf("broker %d has epoch %d, not %d: %w", r.BrokerID, known, r.BrokerEpoch, kerr.StaleBrokerEpoch)
	}
	return nil
}
