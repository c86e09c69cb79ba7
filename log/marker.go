package log

import (
	"encoding/binary"
	"fmt"

	"gregor/log/batch"
	"gregor/log/producer"
	"gregor/log/vfs"
)

// AppendMarker writes the marker that ends m's transaction in this partition: a control batch of one record, in Kafka's bytes. Its timestamp is
// the log's clock, m.Timestamp is not used. When it returns the marker is written, not durable: the last stable offset moves, and consumers see
// the marker, when the high watermark passes it. A producer without an open transaction gets its marker too: it changes nothing but the epochs.
//
// Errors: producer.ErrFenced and producer.ErrCoordinatorFenced (wrapped), ErrNoSpace, ErrOffline, ErrClosed. After one nothing is in the log.
func (l *Log) AppendMarker(m producer.Marker, leaderEpoch int32) (Appended, error) {
	l.mu.Lock()
	out, err := l.appendMarker(m, leaderEpoch)
	l.mu.Unlock()
	if err == nil {
		l.appended(out.LastOffset + 1)
	}
	return out, err
}

// appendMarker does the work under Log.mu.
func (l *Log) appendMarker(m producer.Marker, leaderEpoch int32) (Appended, error) {
	if err := l.writable(); err != nil {
		return Appended{}, err
	}
	if m.ProducerID < 0 || m.Epoch < 0 {
		return Appended{}, fmt.Errorf("marker of producer %d epoch %d: %w", m.ProducerID, m.Epoch, batch.ErrInvalid)
	}
	if err := l.producers.CheckMarker(m); err != nil {
		return Appended{}, fmt.Errorf("marker refused: %w", err)
	}
	now := l.now().UnixMilli()
	m.Timestamp = now
	b := batch.AppendMarker(nil, batch.Producer{ID: m.ProducerID, Epoch: m.Epoch}, now, m.CoordinatorEpoch, m.Commit)
	h, err := batch.ReadHeader(b)
	if err != nil {
		return Appended{}, err
	}
	h.LeaderEpoch = leaderEpoch
	return l.write(b, &h, now, &m)
}

// rememberMarker notes a marker that is in the log at offset, in segment s. Log.mu must be held.
func (l *Log) rememberMarker(s *segment, m producer.Marker, offset, now int64) {
	done, ended := l.producers.AppendMarker(m, offset, now)
	if !ended {
		return
	}
	l.publishFirstOpen()
	if done.Aborted {
		s.addAborted(&done)
		s.writeAborted()
	}
}

// controlTypes of markers in the key of a control record (KIP-98).
const (
	controlAbort  = 0
	controlCommit = 1
)

// replay brings a producer state up to date with the current entry of scan. It returns the transaction that the entry ended with an abort, nil
// if there is none.
func (l *Log) replay(state *producer.State, scan *scanner, file vfs.File, now int64) (*producer.Completed, error) {
	head, err := scan.header()
	if err != nil {
		return nil, err
	}
	h, err := batch.ReadHeader(head)
	if err != nil || h.ProducerID < 0 {
		return nil, err
	}
	if !h.Control() {
		state.Append(producerBatch(&h), h.BaseOffset, now)
		return nil, nil
	}
	b, err := readAt(file, scan.at, scan.entry.Size)
	if err != nil {
		return nil, err
	}
	marker, err := readMarker(b, &h)
	if err != nil {
		l.logger.Warn("control batch is not readable and ends no transaction", "dir", l.Dir(), "offset", h.BaseOffset, "error", err)
		return nil, nil
	}
	if marker.ProducerID < 0 {
		return nil, nil
	}
	if done, ended := state.AppendMarker(marker, h.BaseOffset, now); ended && done.Aborted {
		return &done, nil
	}
	return nil, nil
}

// readMarker reads the record of a control batch. A control batch of another kind has producer id -1.
func readMarker(b []byte, h *batch.Header) (producer.Marker, error) {
	var reader batch.Reader
	var record batch.Record
	none := producer.Marker{ProducerID: -1}
	if err := reader.Reset(b, 0); err != nil {
		return none, err
	}
	if !reader.Next(&record) || len(record.Key) < 4 {
		return none, reader.Err()
	}
	kind := binary.BigEndian.Uint16(record.Key[2:])
	if kind != controlAbort && kind != controlCommit {
		return none, nil
	}
	marker := producer.Marker{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, Timestamp: h.MaxTimestamp, CoordinatorEpoch: -1,
		Commit: kind == controlCommit}
	if len(record.Value) >= 6 {
		marker.CoordinatorEpoch = int32(binary.BigEndian.Uint32(record.Value[2:]))
	}
	return marker, nil
}
