package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// DeleteRecords (key 21), versions 0 to 2: moves the log start of partitions forward (KIP-107).
//
//   - Offset -1 is the high watermark; one above it is out of range; one below the log start changes nothing.
//   - Topics without delete in cleanup.policy refuse (POLICY_VIOLATION), internal ones too (INVALID_TOPIC_EXCEPTION).
//   - The answer comes when the new starts are durable, with one write for all of the request. Segments that lie below go a moment later.

// toHighWatermark asks for all records that can be read.
const toHighWatermark = -1

func (b *Broker) handleDeleteRecords(_ context.Context, _ *wire.Request, r *kmsg.DeleteRecordsRequest) kmsg.Response {
	resp := kmsg.NewPtrDeleteRecordsResponse()
	moved := false
	for i := range r.Topics {
		in := &r.Topics[i]
		if len(in.Partitions) == 0 {
			continue
		}
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = in.Topic
		last := make(map[int32]int, len(in.Partitions)) // of a partition that is there twice the last one counts
		for j := range in.Partitions {
			last[in.Partitions[j].Partition] = j
		}
		for j, p := range in.Partitions {
			if last[p.Partition] != j {
				continue
			}
			one := kmsg.NewDeleteRecordsResponseTopicPartition()
			one.Partition = p.Partition
			start, err := b.deleteRecords(in.Topic, p.Partition, p.Offset)
			one.LowWatermark, one.ErrorCode = start, code(err)
			moved = moved || err == nil
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if !moved {
		return resp
	}
	if err := b.dir.CheckpointStarts(); err != nil {
		b.logger.Error("log start offsets cannot be written: records that were deleted may come back after a crash", "error", err)
		failDeletes(resp)
	}
	b.retentionChanged()
	return resp
}

// deleteRecords moves the log start of a partition, in memory, and returns where it is, -1 with an error.
func (b *Broker) deleteRecords(name string, number int32, offset int64) (start int64, err error) {
	t := b.topics.name(name)
	if t != nil && t.internal {
		return -1, fmt.Errorf("records of internal topic %s: %w", name, kerr.InvalidTopicException)
	}
	p, err := leaderOf(t, number, -1)
	if err != nil {
		return -1, err
	}
	if !t.config.Load().CleanupPolicy.Delete {
		return -1, fmt.Errorf("cleanup.policy of %s has no delete: %w", name, kerr.PolicyViolation)
	}
	if offset == toHighWatermark {
		offset = p.log.HighWatermark()
	}
	if offset < 0 {
		return -1, kerr.OffsetOutOfRange
	}
	if err := p.log.MoveStart(offset); err != nil {
		return -1, err
	}
	return p.log.StartOffset(), nil
}

// failDeletes makes an answer one of a disk that failed.
func failDeletes(resp *kmsg.DeleteRecordsResponse) {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if p := &resp.Topics[i].Partitions[j]; p.ErrorCode == 0 {
				p.LowWatermark, p.ErrorCode = -1, kerr.KafkaStorageError.Code
			}
		}
	}
}
