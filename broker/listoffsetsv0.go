package broker

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log"
)

// ListOffsets (key 2), version 0, which clients of 0.8 and 0.9 send. It answers with offsets at which segments begin, as many as were asked
// for, the newest first and the end of the log before them. A timestamp is compared with when a segment was last written to.

func (b *Broker) listOffsetsV0(t *topic, in *kmsg.ListOffsetsRequestTopicPartition, limit log.ReadLimit) kmsg.ListOffsetsResponseTopicPartition {
	out := kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition = in.Partition
	out.OldStyleOffsets = []int64{}
	p, err := leaderOf(t, in.Partition, -1)
	var offsets []int64
	if err == nil {
		offsets, err = p.offsetsBefore(in.Timestamp, int(in.MaxNumOffsets), limit)
	}
	if err != nil {
		out.ErrorCode = code(err)
		return out
	}
	out.OldStyleOffsets = append(out.OldStyleOffsets, offsets...)
	return out
}

// offsetsBefore is for consumers what lies up to the high watermark, which stands for what lies above it.
func (p *partition) offsetsBefore(timestamp int64, most int, limit log.ReadLimit) ([]int64, error) {
	var offsets []int64
	var err error
	switch timestamp {
	case timeLatest:
		offsets = p.log.LatestOffsets(most)
	case timeEarliest:
		if most > 0 {
			offsets = []int64{p.log.StartOffset()}
		}
	default:
		offsets, err = p.log.OffsetsBefore(timestamp, most)
	}
	if limit == log.ToLogEnd || err != nil {
		return offsets, err
	}
	end := p.endFor(limit)
	above := slices.IndexFunc(offsets, func(o int64) bool { return o <= end })
	switch {
	case above < 0 && len(offsets) > 0:
		return []int64{end}, nil
	case above > 0:
		return append([]int64{end}, offsets[above:]...), nil
	}
	return offsets, nil
}
