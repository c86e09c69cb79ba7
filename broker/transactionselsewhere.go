package broker

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/log/producer"
)

// Markers for partitions that other brokers lead go there by WriteTxnMarkers, all that wait for a broker in one request, one request to a broker at
// a time. What fails is told to the transaction, which asks for the marker again, and who leads is looked up anew then. Topics that are not known
// here are looked for in the metadata: when they are not there either, nobody needs a marker.

// nowhere stands for the leader of a partition that is not known here.
const nowhere = -1

// maxMarkers is how many go into one request.
const maxMarkers = 10_000

// markerQueue has the markers that other brokers are to write.
type markerQueue struct {
	mu      sync.Mutex // leaf
	waiting map[int32][]sentMarker
	busy    map[int32]bool // a goroutine sends to it
}

// sentMarker is a marker and who is to hear how it ended.
type sentMarker struct {
	mark   *txnMark
	marker producer.Marker
}

// sendMarker sees to it that a broker writes a marker.
func (c *txnCoordinator) sendMarker(to int32, m sentMarker) {
	q := &c.markers
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[to] = append(q.waiting[to], m)
	if !q.busy[to] {
		q.busy[to] = true
		c.async(func() { c.sendMarkers(to) })
	}
}

// next takes what waits for a broker; nothing ends the goroutine that sends to it.
func (q *markerQueue) next(to int32) []sentMarker {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting[to]
	if len(all) == 0 {
		delete(q.busy, to)
		return nil
	}
	n := min(len(all), maxMarkers)
	if q.waiting[to] = all[n:]; n == len(all) {
		delete(q.waiting, to)
	}
	return all[:n]
}

// sendMarkers sends until nothing waits.
func (c *txnCoordinator) sendMarkers(to int32) {
	for marks := c.markers.next(to); len(marks) > 0 && !c.closing.Load(); marks = c.markers.next(to) {
		if to == nowhere {
			c.giveUp(marks)
			continue
		}
		result, err := c.askForMarkers(to, marks)
		if err != nil && c.broker.txnAlarm.due() {
			c.broker.logger.Warn("transaction markers could not be sent and are tried again", "broker", to, "markers", len(marks), "error", err)
		}
		for i := range marks {
			m := &marks[i]
			code, answered := result[m.place()]
			if !answered {
				code = kerr.NotLeaderForPartition.Code
			}
			m.mark.stored(0, c.markerOutcome(m, to, code))
		}
	}
}

// giveUp ends markers for partitions that are no more.
func (c *txnCoordinator) giveUp(marks []sentMarker) {
	counts := make(map[string]int)
	for i := range marks {
		m := &marks[i]
		n, asked := counts[m.mark.at.Topic]
		if !asked {
			var err error
			if n, err = c.broker.control.PartitionCount(c.ctx, m.mark.at.Topic); err != nil {
				n = int(m.mark.at.Number) + 1 // it may be there
			}
			counts[m.mark.at.Topic] = n
		}
		if int(m.mark.at.Number) < n {
			m.mark.stored(0, kerr.UnknownTopicOrPartition)
		} else {
			m.mark.stored(0, nil)
		}
	}
}

// markerPlace is what an answer names a marker by.
type markerPlace struct {
	producer int64
	at       txn.Partition
}

func (m *sentMarker) place() markerPlace { return markerPlace{m.marker.ProducerID, m.mark.at} }

// askForMarkers sends one request. The results are those of the answer; what is not in it was not written.
func (c *txnCoordinator) askForMarkers(to int32, marks []sentMarker) (map[markerPlace]int16, error) {
	kresp, err := c.broker.others.Request(c.ctx, to, markersRequest(marks))
	if err != nil {
		return nil, err
	}
	resp, ok := kresp.(*kmsg.WriteTxnMarkersResponse)
	if !ok {
		return nil, fmt.Errorf("broker %d answers with a %T", to, kresp)
	}
	result := make(map[markerPlace]int16, len(marks))
	for i := range resp.Markers {
		for j := range resp.Markers[i].Topics {
			t := &resp.Markers[i].Topics[j]
			for _, p := range t.Partitions {
				result[markerPlace{resp.Markers[i].ProducerID, txn.Partition{Topic: t.Topic, Number: p.Partition}}] = p.ErrorCode
			}
		}
	}
	return result, nil
}

// markersRequest has one entry for each producer, as Kafka's.
func markersRequest(marks []sentMarker) *kmsg.WriteTxnMarkersRequest {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	entries := make(map[producer.Marker]int)
	for i := range marks {
		m := marks[i].marker
		n, there := entries[m]
		if !there {
			n = len(req.Markers)
			entries[m] = n
			one := kmsg.NewWriteTxnMarkersRequestMarker()
			one.ProducerID, one.ProducerEpoch, one.CoordinatorEpoch, one.Committed = m.ProducerID, m.Epoch, m.CoordinatorEpoch, m.Commit
			one.TransactionVersion = int8(m.Version)
			req.Markers = append(req.Markers, one)
		}
		addMarker(&req.Markers[n], marks[i].mark.at)
	}
	return req
}

func addMarker(to *kmsg.WriteTxnMarkersRequestMarker, at txn.Partition) {
	for i := range to.Topics {
		if to.Topics[i].Topic == at.Topic {
			to.Topics[i].Partitions = append(to.Topics[i].Partitions, at.Number)
			return
		}
	}
	to.Topics = append(to.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: at.Topic, Partitions: []int32{at.Number}})
}

// markerOutcome is how a marker ended: nil when it is written or not needed any more.
func (c *txnCoordinator) markerOutcome(m *sentMarker, to int32, code int16) *kerr.Error {
	result := kerr.TypedErrorForCode(code)
	switch result {
	case nil, kerr.UnsupportedForMessageFormat: // a partition of old messages has no transactions
		return nil
	case kerr.InvalidProducerEpoch, kerr.TransactionCoordinatorFenced:
		// A later epoch was there before, so the transaction has its marker.
		c.broker.logger.Info("marker of an older epoch is not needed any more", "transactional.id", m.mark.slot.id, "topic", m.mark.at.Topic,
			"partition", m.mark.at.Number, "broker", to, "error", result)
		return nil
	}
	if c.broker.txnAlarm.due() {
		c.broker.logger.Warn("transaction marker could not be written and is tried again", "transactional.id", m.mark.slot.id, "topic", m.mark.at.Topic,
			"partition", m.mark.at.Number, "broker", to, "error", result)
	}
	return result
}
