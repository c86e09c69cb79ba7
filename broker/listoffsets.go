package broker

import (
	"context"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log"
	"gregor/wire"
)

// ListOffsets (key 2), versions 0 to 11. What is special to version 0 is in listoffsetsv0.go.
//
//   - A timestamp of 0 or later asks for the first record that is not older; the negative ones have names. What a version does not have is
//     UNSUPPORTED_VERSION, also for a topic that does not exist.
//   - Consumers see offsets below the high watermark, with read_committed below the last stable offset; brokers and debuggers see the log's end.
//   - Nothing found is offset -1, timestamp -1, epoch -1, and no error.
//   - There is no tiered storage: the earliest local offset is the log start, the tiered ones are -1.

// Timestamps with a meaning of their own.
const (
	timeLatest        = -1
	timeEarliest      = -2
	timeMax           = -3 // KIP-734
	timeEarliestLocal = -4 // KIP-405
	timeLatestTiered  = -5 // KIP-1005
	timePendingUpload = -6 // KIP-1023
)

func (b *Broker) handleListOffsets(_ context.Context, _ *wire.Request, r *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := kmsg.NewPtrListOffsetsResponse()
	limit := log.ToHighWatermark
	switch {
	case r.ReplicaID != consumerReplica:
		limit = log.ToLogEnd
	case r.IsolationLevel == 1:
		limit = log.ToLastStable
	}
	var twice map[topicPartition]bool
	if r.Version > 0 {
		twice = repeatedPartitions(r)
	}
	for i := range r.Topics {
		in := &r.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = in.Topic
		t := b.topics.name(in.Topic)
		for j := range in.Partitions {
			p := &in.Partitions[j]
			if r.Version == 0 {
				out.Partitions = append(out.Partitions, b.listOffsetsV0(t, p, limit))
				continue
			}
			if twice[topicPartition{in.Topic, p.Partition}] {
				out.Partitions = append(out.Partitions, listed(p, log.TimestampOffset{}, false, kerr.InvalidRequest))
				continue
			}
			out.Partitions = append(out.Partitions, b.listOffset(t, p, r.Version, limit))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// consumerReplica is the replica id of a consumer.
const consumerReplica = -1

type topicPartition struct {
	topic     string
	partition int32
}

func repeatedPartitions(r *kmsg.ListOffsetsRequest) map[topicPartition]bool {
	var all []topicPartition
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			all = append(all, topicPartition{r.Topics[i].Topic, r.Topics[i].Partitions[j].Partition})
		}
	}
	return repeated(all, func(tp *topicPartition) topicPartition { return *tp })
}

func (b *Broker) listOffset(t *topic, in *kmsg.ListOffsetsRequestTopicPartition, version int16, limit log.ReadLimit) kmsg.ListOffsetsResponseTopicPartition {
	if !knownTimestamp(in.Timestamp, version) {
		return listed(in, log.TimestampOffset{}, false, kerr.UnsupportedVersion)
	}
	p, err := leaderOf(t, in.Partition, in.CurrentLeaderEpoch)
	if err != nil {
		return listed(in, log.TimestampOffset{}, false, err)
	}
	if t.config.Load().Magic == 0 && in.Timestamp != timeLatest && in.Timestamp != timeEarliest && in.Timestamp != timeEarliestLocal {
		return listed(in, log.TimestampOffset{}, false, kerr.UnsupportedForMessageFormat) // which has no timestamps
	}
	found, ok, err := p.offsetAt(in.Timestamp, limit)
	return listed(in, found, ok, err)
}

// knownTimestamp reports if a version has a timestamp.
func knownTimestamp(timestamp int64, version int16) bool {
	switch timestamp {
	case timeLatest, timeEarliest:
		return true
	case timeMax:
		return version >= 7
	case timeEarliestLocal:
		return version >= 8
	case timeLatestTiered:
		return version >= 9
	case timePendingUpload:
		return version >= 11
	}
	return timestamp >= 0
}

// leaderOf finds a partition that is to be read under an epoch, -1 for any.
func leaderOf(t *topic, number, epoch int32) (*partition, error) {
	if t == nil || t.partition(number) == nil {
		return nil, kerr.UnknownTopicOrPartition
	}
	p := t.partition(number)
	if err := p.offline(); err != nil {
		return nil, err
	}
	return p, p.checkEpoch(epoch)
}

func listed(in *kmsg.ListOffsetsRequestTopicPartition, found log.TimestampOffset, ok bool, err error) kmsg.ListOffsetsResponseTopicPartition {
	out := kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition = in.Partition
	out.ErrorCode = code(err)
	if ok && err == nil {
		out.Timestamp, out.Offset, out.LeaderEpoch = found.Timestamp, found.Offset, found.LeaderEpoch
	}
	return out
}

// offsetAt finds the offset that a timestamp of ListOffsets stands for. ok is false when there is none.
func (p *partition) offsetAt(timestamp int64, limit log.ReadLimit) (found log.TimestampOffset, ok bool, err error) {
	switch timestamp {
	case timeLatest:
		return log.TimestampOffset{Timestamp: -1, Offset: p.endFor(limit), LeaderEpoch: p.epoch()}, true, nil
	case timeEarliest, timeEarliestLocal:
		start := p.log.StartOffset()
		return log.TimestampOffset{Timestamp: -1, Offset: start, LeaderEpoch: p.epochAt(start)}, true, nil
	case timeLatestTiered, timePendingUpload:
		return log.TimestampOffset{}, false, nil
	case timeMax:
		return p.log.MaxTimestamp(limit)
	}
	return p.log.SearchTimestamp(timestamp, limit)
}

// endFor is the offset that a reader with this limit can reach.
func (p *partition) endFor(limit log.ReadLimit) int64 {
	switch limit {
	case log.ToLogEnd:
		return p.log.EndOffset()
	case log.ToLastStable:
		return p.log.LastStable()
	}
	return p.log.HighWatermark()
}

// epochAt is the epoch that an offset was written under; at the log's end, the one that it would be.
func (p *partition) epochAt(offset int64) int32 {
	// Ends grow with epochs: the first epoch that ends above the offset has it.
	n := sort.Search(int(p.epoch()), func(epoch int) bool {
		_, end, ok := p.log.EpochEnd(int32(epoch))
		return ok && end > offset
	})
	if floor, _, ok := p.log.EpochEnd(int32(n)); ok {
		return floor
	}
	return p.epoch()
}
