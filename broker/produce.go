package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/config"
	"gregor/log"
	"gregor/log/batch"
	"gregor/wire"
)

// Produce (key 0), versions 0 to 13. Versions 0 to 2, which carry message sets, are in producelegacy.go.
//
//   - Each partition is checked and appended by itself; the failure of one leaves the others alone.
//   - acks -1 is answered when the high watermark has passed the batch, which with flush.messages 1 means that it is synced. acks 1 is
//     answered when it is written. acks 0 is never answered; a failure closes the connection, as clients expect.
//   - v7 allows zstd, v8 has an error for each record, v13 names topics by id.

// handleProduce appends what it is given and answers, or leaves a pendingSync.
func (b *Broker) handleProduce(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.ProduceRequest)
	e := b.enlist(r)
	if e.missing() {
		return b.enlistFirst(e, req)
	}
	return b.produce(r, req, e)
}

// produce appends what a request has; e is nil when it has no batch of a transaction.
func (b *Broker) produce(r *kmsg.ProduceRequest, req *wire.Request, e *enlisted) wire.Reply {
	resp := kmsg.NewPtrProduceResponse()
	p := &pendingSync{wake: req.Wake, resp: resp}
	var failed error
	e.locked(func() { failed = b.appendAll(r, req, resp, p, e) })
	if r.Acks == 0 {
		if failed != nil {
			return wire.Reply{Close: fmt.Sprintf("produce with acks 0 failed: %v", failed)}
		}
		return wire.Reply{Silent: true}
	}
	if len(p.waits) == 0 {
		return wire.Reply{Body: wire.Message(p.resp)}
	}
	// The request's timeout is for waiting only; the data stays written when it passes.
	now := time.Now()
	p.deadline = now.Add(time.Duration(max(r.TimeoutMillis, 0)) * time.Millisecond)
	if reply, ready := p.Poll(now); ready {
		return reply
	}
	return wire.Reply{Pending: p, Pipeline: true}
}

// appendAll fills p's answer and what must be waited for. It returns one of the failures, for acks 0.
func (b *Broker) appendAll(r *kmsg.ProduceRequest, req *wire.Request, resp *kmsg.ProduceResponse, p *pendingSync, e *enlisted) (failed error) {
	resp.Topics = make([]kmsg.ProduceResponseTopic, len(r.Topics))
	for i := range r.Topics {
		in, out := &r.Topics[i], &resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(in.Partitions))
		t, err := b.produceTopic(r, req, in)
		for j := range in.Partitions {
			res := &out.Partitions[j]
			res.Default()
			res.Partition = in.Partitions[j].Partition
			appendErr := err
			if err == nil {
				appendErr = b.produceOne(req, t, &in.Partitions[j], res, p, e)
			}
			if appendErr != nil {
				produceFailure(res, appendErr)
				if r.Version < 4 && res.ErrorCode == kerr.KafkaStorageError.Code {
					res.ErrorCode = kerr.NotLeaderForPartition.Code // which old clients know and try again
				}
				failed = appendErr
			}
		}
	}
	return failed
}

// produceTopic finds the topic of one entry and checks what holds for all its partitions.
func (b *Broker) produceTopic(r *kmsg.ProduceRequest, req *wire.Request, in *kmsg.ProduceRequestTopic) (*topic, error) {
	if r.Acks < -1 || r.Acks > 1 {
		return nil, fmt.Errorf("acks is %d, allowed are -1, 0 and 1: %w", r.Acks, kerr.InvalidRequiredAcks)
	}
	var t *topic
	if r.Version >= 13 {
		if t = b.topics.id(in.TopicID); t == nil {
			return nil, kerr.UnknownTopicID
		}
	} else if t = b.topics.name(in.Topic); t == nil {
		return nil, kerr.UnknownTopicOrPartition
	}
	if t.internal && req.ClientID != "__admin_client" {
		return nil, fmt.Errorf("topic %s is internal: %w", t.name, kerr.InvalidTopicException)
	}
	if r.Acks == -1 && t.config.Load().MinInsyncReplicas > 1 {
		return nil, fmt.Errorf("min.insync.replicas of %s is %d and one replica is in sync: %w",
			t.name, t.config.Load().MinInsyncReplicas, kerr.NotEnoughReplicas)
	}
	return t, nil
}

// produceOne appends the batch of one partition.
func (b *Broker) produceOne(req *wire.Request, t *topic, in *kmsg.ProduceRequestTopicPartition, res *kmsg.ProduceResponseTopicPartition, p *pendingSync, e *enlisted) error {
	r := req.Body.(*kmsg.ProduceRequest)
	part := t.partition(in.Partition)
	if part == nil {
		return kerr.UnknownTopicOrPartition
	}
	if err := part.closed(t.config.Load().Writable, "gregor.write.enabled"); err != nil {
		return err
	}
	var appended log.Appended
	var err error
	if r.Version < 3 {
		appended, err = b.appendSet(part, in.Records, e)
	} else {
		appended, err = b.appendBatch(part, in.Records, r.Version < 7, e)
	}
	if err != nil {
		return err
	}
	b.noteConverted(req, t, in.Records, appended)
	res.BaseOffset = appended.BaseOffset
	res.LogAppendTime = -1
	if t.config.Load().TimestampType == config.LogAppendTime && appended.LastOffset >= 0 {
		res.LogAppendTime = appended.Timestamp
	}
	res.LogStartOffset = part.log.StartOffset()
	if r.Acks == -1 && part.log.HighWatermark() <= appended.LastOffset {
		p.waits = append(p.waits, syncWait{log: part.log, last: appended.LastOffset, res: (*produceResult)(res)})
	}
	return nil
}

// produceResult is a partition's answer that waits for its sync.
type produceResult kmsg.ProduceResponseTopicPartition

// fail implements syncResult.
func (r *produceResult) fail(err error) {
	produceFailure((*kmsg.ProduceResponseTopicPartition)(r), err)
}

// produceFailure writes err into a partition's answer: its code, its text, and the records that it names (KIP-467).
func produceFailure(res *kmsg.ProduceResponseTopicPartition, err error) {
	kafka := kafkaError(err)
	res.ErrorCode = kafka.Code
	res.BaseOffset, res.LogAppendTime, res.LogStartOffset = -1, -1, -1
	res.ErrorRecords = nil
	text := err.Error()
	if err != error(kafka) {
		res.ErrorMessage = &text
	}
	var records *batch.RecordError
	if !errors.As(err, &records) {
		return
	}
	for i := range records.Records {
		e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
		e.RelativeOffset = records.Records[i].Index
		e.ErrorMessage = &records.Records[i].Message
		res.ErrorRecords = append(res.ErrorRecords, e)
	}
}
