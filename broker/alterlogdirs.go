package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/logdir"
	"gregor/wire"
)

// AlterReplicaLogDirs (key 34), versions 0 to 2: moves partitions between the log directories of this broker (KIP-113). It answers when the copy is
// begun; DescribeLogDirs shows how far it is.

func (b *Broker) handleAlterReplicaLogDirs(_ context.Context, _ *wire.Request, r *kmsg.AlterReplicaLogDirsRequest) kmsg.Response {
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	at := make(map[string]int) // of a topic in the answer
	last := lastDirs(r)
	for i := range r.Dirs {
		for j := range r.Dirs[i].Topics {
			in := &r.Dirs[i].Topics[j]
			n, ok := at[in.Topic]
			if !ok {
				n = len(resp.Topics)
				at[in.Topic] = n
				out := kmsg.NewAlterReplicaLogDirsResponseTopic()
				out.Topic = in.Topic
				resp.Topics = append(resp.Topics, out)
			}
			for _, p := range in.Partitions {
				if last[logdir.TopicPartition{Topic: in.Topic, Partition: p}] != i {
					continue
				}
				one := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				one.Partition, one.ErrorCode = p, code(b.moveReplica(in.Topic, p, r.Dirs[i].Dir))
				resp.Topics[n].Partitions = append(resp.Topics[n].Partitions, one)
			}
		}
	}
	return resp
}

// lastDirs is the last directory that a request has for each partition, which is the one that counts.
func lastDirs(r *kmsg.AlterReplicaLogDirsRequest) map[logdir.TopicPartition]int {
	last := make(map[logdir.TopicPartition]int)
	for i := range r.Dirs {
		for _, t := range r.Dirs[i].Topics {
			for _, p := range t.Partitions {
				last[logdir.TopicPartition{Topic: t.Topic, Partition: p}] = i
			}
		}
	}
	return last
}

// moveReplica begins to move a partition to a directory, which is given by its absolute path.
func (b *Broker) moveReplica(topic string, number int32, dir string) error {
	path := ""
	for _, own := range b.conf.LogDirs {
		if own == dir || absolute(own) == dir {
			path = own
		}
	}
	if path == "" {
		return fmt.Errorf("log directory %s is not one of log.dirs: %w", dir, kerr.LogDirNotFound)
	}
	t := b.topics.name(topic)
	if t == nil || t.partition(number) == nil {
		return kerr.UnknownTopicOrPartition
	}
	err := b.dir.Move(logdir.TopicPartition{Topic: topic, Partition: number}, path)
	if err != nil {
		b.logger.Warn("partition is not moved", "topic", topic, "partition", number, "to", dir, "error", err)
	}
	return err
}
