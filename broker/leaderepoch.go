package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// OffsetForLeaderEpoch (key 23), versions 0 to 4: where an epoch ended, so that a reader can find out what of its records is not in the log any more.
// An epoch between two known ones answers with the older of them (KIP-279), one that is newer than all with -1 and -1. v2 fences by the epoch
// that the client believes in.

func (b *Broker) handleOffsetForLeaderEpoch(_ context.Context, _ *wire.Request, r *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for i := range r.Topics {
		in := &r.Topics[i]
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = in.Topic
		t := b.topics.name(in.Topic)
		for j := range in.Partitions {
			p := &in.Partitions[j]
			one := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			one.Partition = p.Partition
			leader, err := leaderOf(t, p.Partition, p.CurrentLeaderEpoch)
			one.ErrorCode = code(err)
			if err == nil {
				one.LeaderEpoch, one.EndOffset = leader.epochEnd(p.LeaderEpoch)
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// epochEnd is the newest epoch that is not above the asked one, and where it ended: -1 and -1 for none.
func (p *partition) epochEnd(epoch int32) (floor int32, end int64) {
	switch {
	case epoch < 0:
		return -1, -1
	case epoch == p.epoch():
		// Also when nothing was written under it yet.
		return epoch, p.log.EndOffset()
	}
	if floor, end, ok := p.log.EpochEnd(epoch); ok {
		return floor, end
	}
	return -1, -1
}
