package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions that are written, and the newest that is read.
const (
	keyVersion    = 0
	valueVersion  = 1
	newestVersion = 1
)

// ErrFormat is a record of __transaction_state that does not parse.
var ErrFormat = errors.New("record of __transaction_state is not valid")

// ParseKey reads a record's key: the transactional id. ok is false for a key of a newer version, which is left alone.
func ParseKey(b []byte) (id string, ok bool, err error) {
	if len(b) < 2 {
		return "", false, fmt.Errorf("%w: key of %d bytes", ErrFormat, len(b))
	}
	if binary.BigEndian.Uint16(b) != keyVersion {
		return "", false, nil
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(b); err != nil {
		return "", false, fmt.Errorf("%w: key: %w", ErrFormat, err)
	}
	return k.TransactionalID, true, nil
}

func keyOf(id string) []byte {
	k := kmsg.TxnMetadataKey{Version: keyVersion, TransactionalID: id}
	return k.AppendTo(make([]byte, 0, 4+len(id)))
}

func valueOf(m *meta) []byte {
	v := kmsg.NewTxnMetadataValue()
	v.Version, v.ProducerID, v.ProducerEpoch, v.TimeoutMillis = valueVersion, m.producer.ID, m.producer.Epoch, m.timeout
	v.State, v.LastUpdateTimestamp, v.StartTimestamp = kmsg.TransactionState(m.state), m.updated, m.started
	v.PreviousProducerID, v.NextProducerID, v.NextProducerEpoch, v.ClientTransactionVersion = m.previousID, m.nextID, m.nextEpoch, m.client
	if m.state != Empty {
		v.Topics = []kmsg.TxnMetadataValueTopic{} // not null, as in Kafka
	}
	for _, p := range m.partitions {
		n := len(v.Topics)
		if n == 0 || v.Topics[n-1].Topic != p.Topic {
			t := kmsg.NewTxnMetadataValueTopic()
			t.Topic = p.Topic
			v.Topics = append(v.Topics, t)
			n++
		}
		v.Topics[n-1].Partitions = append(v.Topics[n-1].Partitions, p.Number)
	}
	return v.AppendTo(nil)
}

func parseValue(b []byte) (meta, error) {
	if len(b) < 2 {
		return meta{}, fmt.Errorf("%w: value of %d bytes", ErrFormat, len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > newestVersion {
		return meta{}, fmt.Errorf("%w: value version is %d, the newest known is %d", ErrFormat, v, newestVersion)
	}
	v := kmsg.NewTxnMetadataValue()
	if err := v.ReadFrom(b); err != nil {
		return meta{}, fmt.Errorf("%w: value: %w", ErrFormat, err)
	}
	m := meta{producer: Producer{v.ProducerID, v.ProducerEpoch}, lastEpoch: -1, previousID: v.PreviousProducerID, nextID: v.NextProducerID, nextEpoch: -1,
		timeout: v.TimeoutMillis, state: State(v.State), started: v.StartTimestamp, updated: v.LastUpdateTimestamp, client: v.ClientTransactionVersion}
	if m.state < Empty || m.state > Dead {
		return meta{}, fmt.Errorf("%w: state is %d", ErrFormat, m.state)
	}
	if m.nextID >= 0 && v.NextProducerEpoch >= 0 && (m.state == Ongoing || m.state.prepared()) {
		m.nextEpoch = v.NextProducerEpoch // elsewhere it means nothing
	}
	var all []Partition
	for i := range v.Topics {
		for _, n := range v.Topics[i].Partitions {
			all = append(all, Partition{v.Topics[i].Topic, n})
		}
	}
	m.partitions = union(nil, all)
	return m, nil
}

// Replay takes over a record of the id from the log; a nil value is a tombstone. It is for a Txn that had no event yet. Nothing of value is kept.
func (t *Txn) Replay(value []byte) error {
	if value == nil {
		t.reset()
		return nil
	}
	m, err := parseValue(value)
	if err != nil {
		return fmt.Errorf("transactional id %q: %w", t.id, err)
	}
	t.reset()
	m.lastEpoch = m.unheard()
	t.meta = m
	return nil
}

// unheard is the epoch that the producer of an ended transaction had before, -1 when the record does not tell. Each end of version 2 brings a
// new epoch, and its client may not have had the answer before the restart. A producer that took its place since would have left the id Empty.
func (m *meta) unheard() int16 {
	ended := m.state.prepared() || m.state == CompleteCommit || m.state == CompleteAbort
	p := m.producer
	if m.kept() {
		p = m.after()
	}
	switch {
	case !ended || m.client < 2:
	case p.Epoch > 0:
		return p.Epoch - 1
	case m.previousID != p.ID:
		return maxEpoch // its epochs are used up
	}
	return -1
}

// Loaded ends the replay: timers begin, and what was decided and not known to be finished is finished.
func (t *Txn) Loaded(at Instant) Effects {
	s := step{Instant: at}
	if t.meta.state == Dead {
		return s.Effects
	}
	t.enter(&s, t.meta)
	if t.meta.state.prepared() {
		t.startMarking(&s)
	}
	return s.Effects
}
