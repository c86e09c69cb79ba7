package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log"
	"gregor/log/producer"
	"gregor/wire"
)

// WriteTxnMarkers (key 27), versions 0 to 2: a transaction coordinator, or an operator who ends a hanging transaction, writes markers.
//
//   - Each partition is answered by itself, when its marker is durable.
//   - An epoch below the producer's is INVALID_PRODUCER_EPOCH, a coordinator epoch below that of the last marker TRANSACTION_COORDINATOR_FENCED. A
//     producer that has no open transaction gets its marker too.
//   - Version 2 has the transaction version: from 2 on the marker's epoch must be newer than the transaction's (KIP-890).

// markerTimeout is how long a marker's sync is waited for: Kafka's request.timeout.ms.
const markerTimeout = 30 * time.Second

func (b *Broker) handleWriteTxnMarkers(_ context.Context, req *wire.Request) wire.Reply {
	r := req.Body.(*kmsg.WriteTxnMarkersRequest)
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	p := &pendingSync{wake: req.Wake, resp: resp}
	resp.Markers = make([]kmsg.WriteTxnMarkersResponseMarker, len(r.Markers))
	for i := range r.Markers {
		in, out := &r.Markers[i], &resp.Markers[i]
		out.ProducerID = in.ProducerID
		out.Topics = make([]kmsg.WriteTxnMarkersResponseMarkerTopic, len(in.Topics))
		m := producer.Marker{ProducerID: in.ProducerID, Epoch: in.ProducerEpoch, CoordinatorEpoch: in.CoordinatorEpoch, Commit: in.Committed,
			Version: int16(in.TransactionVersion)}
		for j := range in.Topics {
			b.markTopic(m, &in.Topics[j], &out.Topics[j], p)
		}
	}
	now := time.Now()
	p.deadline = now.Add(markerTimeout)
	if reply, ready := p.Poll(now); ready {
		return reply
	}
	return wire.Reply{Pending: p, Pipeline: true}
}

// markTopic writes a marker into partitions of one topic.
func (b *Broker) markTopic(m producer.Marker, in *kmsg.WriteTxnMarkersRequestMarkerTopic, out *kmsg.WriteTxnMarkersResponseMarkerTopic, p *pendingSync) {
	out.Topic = in.Topic
	out.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(in.Partitions))
	t := b.topics.name(in.Topic)
	for i, number := range in.Partitions {
		res := (*markerResult)(&out.Partitions[i])
		res.Partition = number
		part, err := leaderOf(t, number, -1)
		if err != nil {
			res.fail(err)
			continue
		}
		appended, err := b.appendMarker(part, m, nil)
		if err != nil {
			res.fail(err)
			continue
		}
		p.waits = append(p.waits, syncWait{log: part.log, last: appended.LastOffset, res: res})
	}
}

// markerResult is a partition's answer that waits for its sync.
type markerResult kmsg.WriteTxnMarkersResponseMarkerTopicPartition

// fail implements syncResult.
func (r *markerResult) fail(err error) { r.ErrorCode = code(err) }

// appendMarker writes the marker that ends a producer's transaction in p, or says why it may not be written. It is durable, and seen by
// read_committed consumers, when the high watermark has passed it; then groups are told, when it is theirs, and mark, unless it is nil.
func (b *Broker) appendMarker(p *partition, m producer.Marker, mark *txnMark) (log.Appended, error) {
	if err := p.offline(); err != nil {
		return log.Appended{}, err
	}
	if m.ProducerID < 0 || m.Epoch < 0 {
		return log.Appended{}, kerr.InvalidProducerEpoch
	}
	p.verifications.mu.Lock()
	defer p.verifications.mu.Unlock()
	appended, err := b.writeMarker(p, m, mark)
	b.noteAppend(err)
	if err == nil {
		delete(p.verifications.by, m.ProducerID)
	}
	return appended, err
}

// writeMarker writes it and sees to it that it is followed. What is verified is locked.
func (b *Broker) writeMarker(p *partition, m producer.Marker, mark *txnMark) (log.Appended, error) {
	if p.topic.name == offsetsTopic {
		// Groups must hear of it, so they must be there.
		of := b.groups.heldFor(p)
		if of == nil {
			return log.Appended{}, kerr.CoordinatorLoadInProgress
		}
		return of.appendMarker(m, mark)
	}
	appended, err := p.log.AppendMarker(m, p.epoch())
	if err == nil && mark != nil {
		p.followed(b, &b.txns.stateLoop).follow(flying{owner: mark, last: appended.LastOffset})
	}
	return appended, err
}
