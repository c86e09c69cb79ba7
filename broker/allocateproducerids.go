package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// AllocateProducerIds (key 67), version 0: another broker of the cluster takes a block of producer ids from the controller (KIP-730), as Kafka's do from
// inter.broker.protocol.version 3.0 on. Older ones, and this broker, take theirs from the tree.

func (b *Broker) handleAllocateProducerIDs(ctx context.Context, _ *wire.Request, r *kmsg.AllocateProducerIDsRequest) kmsg.Response {
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	err := b.checkAllocation(r)
	var first, count int64
	if err == nil {
		first, count, err = b.control.AllocateProducerIDs(ctx)
	}
	if err != nil {
		if b.obedience.blocks.due() {
			b.logger.Warn("a broker gets no producer ids", "broker", r.BrokerID, "error", err)
		}
		resp.ErrorCode = code(err)
		return resp
	}
	resp.ProducerIDStart, resp.ProducerIDLen = first, int32(count)
	return resp
}

func (b *Broker) checkAllocation(r *kmsg.AllocateProducerIDsRequest) error {
	if err := b.checkSeat(); err != nil {
		return err
	}
	v := b.view.Load()
	i, lives := v.find(r.BrokerID)
	if !lives {
		return fmt.Errorf("broker %d does not live: %w", r.BrokerID, kerr.BrokerIDNotRegistered)
	}
	if known := v.brokers[i].epoch; r.BrokerEpoch != notFenced && r.BrokerEpoch != known {
		return fmt.Errorf("broker %d has epoch %d, not %d: %w", r.BrokerID, known, r.BrokerEpoch, kerr.StaleBrokerEpoch)
	}
	return nil
}
