package broker

import (
	"context"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/logdir"
	"gregor/wire"
)

// DescribeLogDirs (key 35), versions 0 to 5: the log directories, their space (v4), and the size of each partition in them (KIP-113, KIP-827).
//
//   - Topics null means all partitions; an empty list none. What is not here is left out.
//   - A directory that is out of use has KAFKA_STORAGE_ERROR and nothing else. v5 tells cordoned ones, of which there are none.

func (b *Broker) handleDescribeLogDirs(_ context.Context, _ *wire.Request, r *kmsg.DescribeLogDirsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	wanted := wantedPartitions(r)
	for _, st := range b.dir.Status() {
		out := kmsg.NewDescribeLogDirsResponseDir()
		out.Dir = absolute(st.Path)
		if st.Err != nil {
			out.ErrorCode = kerr.KafkaStorageError.Code
			resp.Dirs = append(resp.Dirs, out)
			continue
		}
		out.TotalBytes, out.UsableBytes = st.Usage.Total, st.Usage.Free
		for _, p := range st.Partitions {
			if l := p.Log(); l != nil && wanted.has(p.ID()) {
				out.Topics = addDescribed(out.Topics, p.ID(), kmsg.DescribeLogDirsResponseDirTopicPartition{
					Partition: p.ID().Partition, Size: l.Size(), OffsetLag: max(0, l.HighWatermark()-l.EndOffset())})
			}
		}
		for _, f := range st.Futures {
			if wanted.has(f.ID) {
				out.Topics = addDescribed(out.Topics, f.ID, kmsg.DescribeLogDirsResponseDirTopicPartition{
					Partition: f.ID.Partition, Size: f.Size, OffsetLag: f.Lag, IsFuture: true})
			}
		}
		resp.Dirs = append(resp.Dirs, out)
	}
	return resp
}

// absolute is the path as Kafka shows it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// partitionSet are partitions that a request names; nil is all.
type partitionSet map[logdir.TopicPartition]struct{}

func (s partitionSet) has(tp logdir.TopicPartition) bool {
	if s == nil {
		return true
	}
	_, ok := s[tp]
	return ok
}

func wantedPartitions(r *kmsg.DescribeLogDirsRequest) partitionSet {
	if r.Topics == nil {
		return nil
	}
	wanted := make(partitionSet)
	for i := range r.Topics {
		for _, n := range r.Topics[i].Partitions {
			wanted[logdir.TopicPartition{Topic: r.Topics[i].Topic, Partition: n}] = struct{}{}
		}
	}
	return wanted
}

// addDescribed adds a partition to the topics of a directory. Those of one topic come one after the other.
func addDescribed(topics []kmsg.DescribeLogDirsResponseDirTopic, tp logdir.TopicPartition, one kmsg.DescribeLogDirsResponseDirTopicPartition) []kmsg.DescribeLogDirsResponseDirTopic {
	if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
		t := kmsg.NewDescribeLogDirsResponseDirTopic()
		t.Topic = tp.Topic
		topics = append(topics, t)
	}
	last := &topics[len(topics)-1]
	last.Partitions = append(last.Partitions, one)
	return topics
}
