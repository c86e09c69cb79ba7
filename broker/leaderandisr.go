package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/log/logdir"
	"gregor/wire"
)

// LeaderAndIsr (key 4), versions 0 to 7: the controller says which replicas this broker has and who leads them. As in Apache Kafka 3.9:
//
//   - A leader epoch that is not above that of the last order for the partition is STALE_CONTROLLER_EPOCH, which the controller only logs. What
//     the tree said at the start is no order: the first one may repeat it.
//   - Another topic id than that of the replica here is INCONSISTENT_TOPIC_ID. Controllers before Kafka 2.8 know no ids.
//   - A log is made, durably, unless a directory is out of use and the partition is not new: then it may be there.
//   - A full request of a KRaft controller (v5) names all replicas; others here are only warned of, never removed.
//
// Replicas do not follow yet. One that is to follow, or to lead others that are in sync, answers KAFKA_STORAGE_ERROR: the controller takes it out of the
// in-sync replicas at once and shows it as offline. With no error it would stay in sync with an empty log, and could be made leader of
// records that it does not have. Its data stays as it is.

func (b *Broker) handleLeaderAndISR(ctx context.Context, _ *wire.Request, r *kmsg.LeaderAndISRRequest) kmsg.Response {
	topics := orderedTopics(r)
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.obey(order{r.ControllerEpoch, r.BrokerEpoch}); err != nil {
		b.refused("LeaderAndIsr", r.ControllerID, err)
		all := make(map[logdir.TopicPartition]error)
		for i := range topics {
			for _, s := range topics[i].PartitionStates {
				all[logdir.TopicPartition{Topic: topics[i].Topic, Partition: s.Partition}] = err
			}
		}
		return leaderAndISRAnswer(r.Version, topics, all, code(err))
	}
	failed := make(map[logdir.TopicPartition]error)
	lead, tell := placements{open: true}, placements{}
	for i := range topics {
		b.sortOrders(&topics[i], &lead, &tell, failed)
	}
	for _, all := range []placements{tell, lead} {
		for at, err := range b.place(ctx, all.all) {
			failed[at] = err
		}
	}
	if r.Type == fullOrder {
		b.warnOfStrays(topics)
	}
	return leaderAndISRAnswer(r.Version, topics, failed, 0)
}

// fullOrder is the type of a request that names all replicas of the broker (KIP-866).
const fullOrder = 2

// orderedTopics is the request by topics, as from version 2 on.
func orderedTopics(r *kmsg.LeaderAndISRRequest) []kmsg.LeaderAndISRRequestTopicState {
	if r.Version >= 2 {
		return r.TopicStates
	}
	var topics []kmsg.LeaderAndISRRequestTopicState
	at := make(map[string]int)
	for _, s := range r.PartitionStates {
		i, ok := at[s.Topic]
		if !ok {
			i = len(topics)
			at[s.Topic] = i
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic = s.Topic
			topics = append(topics, t)
		}
		topics[i].PartitionStates = append(topics[i].PartitionStates, s)
	}
	return topics
}

// sortOrders sorts the orders for a topic: partitions that this broker is to lead, and others whose leader it is only told of. Failed gets those that it
// does not carry out.
func (b *Broker) sortOrders(in *kmsg.LeaderAndISRRequestTopicState, lead, tell *placements, failed map[logdir.TopicPartition]error) {
	t := b.topics.name(in.Topic)
	for j := range in.PartitionStates {
		s := &in.PartitionStates[j]
		at := logdir.TopicPartition{Topic: in.Topic, Partition: s.Partition}
		told := controller.Partition{Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, Replicas: s.Replicas, ISR: s.ISR}
		if err := b.checkOrder(t, in, s); err != nil {
			failed[at] = err
			continue
		}
		if err := b.cannotReplicate(at, s); err != nil {
			failed[at] = err
			tell.topic(in.Topic, in.TopicID).partitions[s.Partition] = told
			continue
		}
		pl := lead.topic(in.Topic, in.TopicID)
		pl.partitions[s.Partition] = told
		pl.old[s.Partition] = !s.IsNew
	}
}

// checkOrder says why the order for a partition is not carried out.
func (b *Broker) checkOrder(t *topic, in *kmsg.LeaderAndISRRequestTopicState, s *kmsg.LeaderAndISRRequestTopicPartition) error {
	if err := controller.CheckName(in.Topic); err != nil {
		return err
	}
	if s.Partition < 0 || s.Partition >= maxPartition {
		return fmt.Errorf("partition %s-%d: the number is not between 0 and %d: %w", in.Topic, s.Partition, maxPartition, kerr.InvalidPartitions)
	}
	var p *partition
	if t != nil {
		p = t.partition(s.Partition)
	}
	if p != nil {
		if err := b.checkOrderAgain(p, in, s); err != nil {
			return err
		}
	}
	if !slices.Contains(s.Replicas, b.nodeID) {
		return fmt.Errorf("partition %s-%d has replicas %v, none on this broker: %w", in.Topic, s.Partition, s.Replicas, kerr.UnknownTopicOrPartition)
	}
	return nil
}

// checkOrderAgain is checkOrder for a partition that is known.
func (b *Broker) checkOrderAgain(p *partition, in *kmsg.LeaderAndISRRequestTopicState, s *kmsg.LeaderAndISRRequestTopicPartition) error {
	if p.log != nil && p.log.Err() != nil {
		return p.log.Err() // KAFKA_STORAGE_ERROR
	}
	sameTopic := sameID(in.TopicID, p.topic.id)
	if p.log != nil && !sameTopic {
		return fmt.Errorf("topic %s has id %s here, the controller says %s: %w", in.Topic, controller.FormatID(p.topic.id), controller.FormatID(in.TopicID),
			kerr.InconsistentTopicID)
	}
	if obeyed := p.lead.Load().obeyed; sameTopic && s.LeaderEpoch <= obeyed {
		if s.LeaderEpoch == obeyed && b.learnID(p, in.TopicID) {
			return nil
		}
		return fmt.Errorf("partition %s-%d: leader epoch %d is not above %d: %w", in.Topic, s.Partition, s.LeaderEpoch, obeyed, kerr.StaleControllerEpoch)
	}
	return nil
}

// learnID writes the id of a topic that had none down beside the log: the controller has become one that knows ids. Clients hear of it after the next start.
func (b *Broker) learnID(p *partition, id [16]byte) bool {
	var none [16]byte
	found, ok := b.dir.Get(p.at())
	if id == none || !ok || p.log == nil || found.TopicID() != none {
		return false
	}
	if err := b.dir.SetTopicID(found, id); err != nil {
		b.logger.Warn("topic id cannot be written", "dir", found.Dir(), "error", err)
	}
	return true
}

// cannotReplicate says why this broker is no replica of a partition beside others, nil when it may lead alone.
func (b *Broker) cannotReplicate(at logdir.TopicPartition, s *kmsg.LeaderAndISRRequestTopicPartition) error {
	if s.Leader == b.nodeID && !slices.ContainsFunc(s.ISR, func(id int32) bool { return id != b.nodeID }) || s.Leader == noLeader {
		return nil
	}
	if b.obedience.followers.due() {
		b.logger.Error("partition has replicas on other brokers, which does not work yet: this replica counts as offline; assign its partitions to one broker",
			"topic", at.Topic, "partition", at.Partition, "leader", s.Leader, "replicas", s.Replicas)
	}
	return fmt.Errorf("partition %s is led by broker %d with replicas %v in sync: %w", at, s.Leader, s.ISR, kerr.KafkaStorageError)
}

// warnOfStrays names replicas here that a full request does not.
func (b *Broker) warnOfStrays(topics []kmsg.LeaderAndISRRequestTopicState) {
	named := make(map[logdir.TopicPartition]bool)
	for i := range topics {
		for j := range topics[i].PartitionStates {
			named[logdir.TopicPartition{Topic: topics[i].Topic, Partition: topics[i].PartitionStates[j].Partition}] = true
		}
	}
	var strays []string
	for _, p := range b.dir.Partitions() {
		if !named[p.ID()] {
			strays = append(strays, p.ID().String())
		}
	}
	if len(strays) > 0 && b.obedience.strays.due() {
		b.logger.Warn("replicas here that the controller does not know; they stay on the disk", "partitions", len(strays), "first", strays[0])
	}
}

// orderCode is the code of an error of one partition.
func orderCode(err error) int16 {
	if errors.Is(err, errOtherTopic) {
		return kerr.InconsistentTopicID.Code
	}
	return code(err)
}

// leaderAndISRAnswer is the answer for all partitions of a request; those that are not in failed went well.
func leaderAndISRAnswer(version int16, topics []kmsg.LeaderAndISRRequestTopicState, failed map[logdir.TopicPartition]error, whole int16) kmsg.Response {
	resp := kmsg.NewPtrLeaderAndISRResponse()
	resp.ErrorCode = whole
	for i := range topics {
		t := kmsg.NewLeaderAndISRResponseTopic()
		t.TopicID = topics[i].TopicID
		for j := range topics[i].PartitionStates {
			p := kmsg.NewLeaderAndISRResponseTopicPartition()
			p.Topic, p.Partition = topics[i].Topic, topics[i].PartitionStates[j].Partition
			p.ErrorCode = orderCode(failed[logdir.TopicPartition{Topic: p.Topic, Partition: p.Partition}])
			t.Partitions = append(t.Partitions, p)
		}
		if version < 5 {
			resp.Partitions = append(resp.Partitions, t.Partitions...)
		} else {
			resp.Topics = append(resp.Topics, t)
		}
	}
	return resp
}
