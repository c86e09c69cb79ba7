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

// handleProduce appends what it is given and answers, or leaves a pendingProduce.
func (b *Broker) handleProduce(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.ProduceRequest)
	p := &pendingProduce{wake: req.Wake, resp: kmsg.NewPtrProduceResponse()}
	failed := b.appendAll(r, req, p)
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
func (b *Broker) appendAll(r *kmsg.ProduceRequest, req *wire.Request, p *pendingProduce) (failed error) {
	p.resp.Topics = make([]kmsg.ProduceResponseTopic, len(r.Topics))
	for i := range r.Topics {
		in, out := &r.Topics[i], &p.resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(in.Partitions))
		t, err := b.produceTopic(r, req, in)
		for j := range in.Partitions {
			res := &out.Partitions[j]
			res.Default()
			res.Partition = in.Partitions[j].Partition
			appendErr := err
			if err == nil {
				appendErr = b.produceOne(r, t, &in.Partitions[j], res, p)
			}
			if appendErr != nil {
				produceFailure(res, appendErr)
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
func (b *Broker) produceOne(r *kmsg.ProduceRequest, t *topic, in *kmsg.ProduceRequestTopicPartition, res *kmsg.ProduceResponseTopicPartition, p *pendingProduce) error {
	part := t.partition(in.Partition)
	if part == nil {
		return kerr.UnknownTopicOrPartition
	}
	var appended log.Appended
	var err error
	if r.Version < 3 {
		appended, err = b.appendSet(part, in.Records)
	} else {
		appended, err = b.appendBatch(part, in.Records, r.Version < 7)
	}
	if err != nil {
		return err
	}
	res.BaseOffset = appended.BaseOffset
	res.LogAppendTime = -1
	if t.config.Load().TimestampType == config.LogAppendTime && appended.LastOffset >= 0 {
		res.LogAppendTime = appended.Timestamp
	}
	res.LogStartOffset = part.log.StartOffset()
	if r.Acks == -1 && part.log.HighWatermark() <= appended.LastOffset {
		p.waits = append(p.waits, produceWait{log: part.log, last: appended.LastOffset, res: res})
	}
	return nil
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

// pendingProduce is an acks=-1 answer that waits until the high watermark has passed each of its batches. It waits for one log at a time: a
// later one is nearly always done by then.
type pendingProduce struct {
	resp     *kmsg.ProduceResponse
	waits    []produceWait
	wake     func()
	deadline time.Time
	watching bool
}

type produceWait struct {
	log  *log.Log
	last int64
	res  *kmsg.ProduceResponseTopicPartition
}

// Wake implements log.Waiter.
func (p *pendingProduce) Wake() { p.wake() }

// Deadline implements wire.Pending.
func (p *pendingProduce) Deadline() time.Time { return p.deadline }

// Poll implements wire.Pending.
func (p *pendingProduce) Poll(now time.Time) (wire.Reply, bool) {
	for len(p.waits) > 0 {
		w := &p.waits[0]
		if w.log.HighWatermark() <= w.last {
			err := p.waitFor(w, now)
			if err == nil {
				return wire.Reply{}, false
			}
			// The last look: the watermark may have passed meanwhile, and then nothing is wrong.
			if w.log.HighWatermark() <= w.last {
				produceFailure(w.res, err)
			}
		}
		p.unwatch()
		p.waits = p.waits[1:]
	}
	return wire.Reply{Body: wire.Message(p.resp)}, true
}

// waitFor watches the log of w. An error says why it is not watched: the log failed or is closed, the time is over, or the high watermark
// has passed w just now.
func (p *pendingProduce) waitFor(w *produceWait, now time.Time) error {
	if err := w.log.Err(); err != nil {
		return err
	}
	if !now.Before(p.deadline) {
		return fmt.Errorf("not durable in time, although written at offset %d: %w", w.res.BaseOffset, kerr.RequestTimedOut)
	}
	if !w.log.Watch(p, w.last+1, log.ToHighWatermark) {
		p.watching = true
		return nil
	}
	if err := w.log.Err(); err != nil {
		return err
	}
	return log.ErrClosed
}

// Cancel implements wire.Pending.
func (p *pendingProduce) Cancel() { p.unwatch() }

func (p *pendingProduce) unwatch() {
	if p.watching {
		p.waits[0].log.Unwatch(p)
		p.watching = false
	}
}
