package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/wire"
)

// DescribeProducers (key 61), version 0: what partitions know of their producers (KIP-664). A transaction that hangs is seen by its start offset
// and the time of its last batch; kafka-transactions ends it by WriteTxnMarkers.

func (b *Broker) handleDescribeProducers(_ context.Context, _ *wire.Request, r *kmsg.DescribeProducersRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeProducersResponse()
	for i := range r.Topics {
		in := &r.Topics[i]
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = in.Topic
		err := controller.CheckName(in.Topic)
		t := b.topics.name(in.Topic)
		if err == nil && t == nil {
			err = kerr.UnknownTopicOrPartition
		}
		for _, number := range in.Partitions {
			one := kmsg.NewDescribeProducersResponseTopicPartition()
			one.Partition = number
			if err != nil {
				text := err.Error()
				if kafka := kafkaError(err); err == error(kafka) {
					text = kafka.Description
				}
				one.ErrorCode, one.ErrorMessage = code(err), &text
			} else if err := describeProducers(t, &one); err != nil {
				one.ErrorCode = code(err)
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// describeProducers lists the producers of one partition, by id.
func describeProducers(t *topic, out *kmsg.DescribeProducersResponseTopicPartition) error {
	p, err := leaderOf(t, out.Partition, -1)
	if err != nil {
		return fmt.Errorf("describing producers: %w", err)
	}
	for _, info := range p.log.Producers() {
		one := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		one.ProducerID, one.ProducerEpoch = info.ProducerID, int32(info.Epoch)
		one.LastSequence, one.LastTimestamp = info.LastSequence, info.LastTimestamp
		one.CoordinatorEpoch, one.CurrentTxnStartOffset = info.CoordinatorEpoch, info.TxnFirstOffset
		out.ActiveProducers = append(out.ActiveProducers, one)
	}
	return nil
}
