package adopt

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/group"
	"gregor/log"
	"gregor/log/batch"
	"gregor/log/vfs"
)

// maxInternalBatch bounds a batch of an internal topic in bytes; Kafka's are below message.max.bytes.
const maxInternalBatch = 128 << 20

// replayInternal reads what coordinators wrote. Offsets are only counted; of transactions the producer ids matter, too.
func (in *inspection) replayInternal() error {
	for i := range in.plan.Topics {
		t := &in.plan.Topics[i]
		var each func(h *batch.Header, rec *batch.Record)
		var done func()
		switch {
		case t.Name == "__consumer_offsets" && in.Full:
			r := newOffsetsReplay(&in.plan.Groups)
			each, done = r.record, r.count
		case t.Name == "__transaction_state":
			r := &txnReplay{in: in, states: map[string]int8{}}
			each, done = r.record, r.count
		default:
			continue
		}
		for n := range t.Partitions {
			if p := &t.Partitions[n]; p.Path != "" {
				if err := in.replay(p, each); err != nil {
					return err
				}
			}
		}
		done()
	}
	return nil
}

// replay calls each with all records of a partition, up to the first damage, which readSegment or the start deals with.
func (in *inspection) replay(p *Partition, each func(h *batch.Header, rec *batch.Record)) error {
	segments, _, err := in.list(p.Path)
	if err != nil {
		return err
	}
	for _, seg := range segments {
		if err := in.ctx.Err(); err != nil {
			return err
		}
		f, err := in.FS.OpenRead(seg.name)
		if err != nil {
			return err
		}
		whole, err := replaySegment(f, seg, p.Start, each)
		if err = errors.Join(err, f.Close()); err != nil || !whole {
			return err
		}
	}
	return nil
}

func replaySegment(f vfs.File, seg segment, from int64, each func(h *batch.Header, rec *batch.Record)) (whole bool, err error) {
	var r batch.Reader
	var buf []byte
	_, err = log.SurveySegment(f, seg.name, 0, seg.size, false, func(pos int64, e batch.Entry) error {
		if e.Size > maxInternalBatch {
			return &log.CorruptError{File: seg.name, Pos: pos, Err: batch.ErrTooLarge}
		}
		if cap(buf) < e.Size {
			buf = make([]byte, e.Size)
		}
		if _, err := f.ReadAt(buf[:e.Size], pos); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		err := batch.Verify(buf[:e.Size])
		if err == nil {
			err = r.Reset(buf[:e.Size], 0)
		}
		if err == nil {
			h := r.Header()
			var rec batch.Record
			for r.Next(&rec) {
				if rec.Offset >= from {
					each(&h, &rec)
				}
			}
			err = r.Err()
		}
		if err != nil {
			return &log.CorruptError{File: seg.name, Pos: pos, Err: err}
		}
		return nil
	})
	var damage *log.CorruptError
	if errors.As(err, &damage) {
		return false, nil
	}
	return true, err
}

// offsetsReplay counts groups and offsets as a group coordinator would load them.
type offsetsReplay struct {
	out     *Groups
	offsets map[string]map[group.Partition]struct{}
	members map[string]bool
	open    map[int64][]pending // by producer id
}

type pending struct {
	key  group.Key
	gone bool
}

func newOffsetsReplay(out *Groups) *offsetsReplay {
	return &offsetsReplay{out: out, offsets: map[string]map[group.Partition]struct{}{}, members: map[string]bool{}, open: map[int64][]pending{}}
}

func (r *offsetsReplay) record(h *batch.Header, rec *batch.Record) {
	if h.Magic == 2 && h.Control() {
		all := r.open[h.ProducerID]
		delete(r.open, h.ProducerID)
		if committed(rec.Key) {
			for _, p := range all {
				r.apply(p)
			}
		}
		return
	}
	key, err := group.ParseKey(rec.Key)
	switch p := (pending{key, rec.Value == nil}); {
	case err != nil:
		r.out.Bad++
	case key.Kind == group.OtherKind:
		r.out.Newer++
	case h.Magic == 2 && h.Transactional():
		r.open[h.ProducerID] = append(r.open[h.ProducerID], p)
	default:
		r.apply(p)
	}
}

// committed reports if a control record is a COMMIT (KIP-98).
func committed(key []byte) bool { return len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == 1 }

func (r *offsetsReplay) apply(p pending) {
	switch {
	case p.key.Kind == group.GroupKind && p.gone:
		delete(r.members, p.key.Group)
	case p.key.Kind == group.GroupKind:
		r.members[p.key.Group] = true
	case p.gone:
		delete(r.offsets[p.key.Group], p.key.Partition)
	default:
		if r.offsets[p.key.Group] == nil {
			r.offsets[p.key.Group] = map[group.Partition]struct{}{}
		}
		r.offsets[p.key.Group][p.key.Partition] = struct{}{}
	}
}

func (r *offsetsReplay) count() {
	for id, parts := range r.offsets {
		r.out.Offsets += len(parts)
		if len(parts) > 0 {
			r.members[id] = true
		}
	}
	r.out.Groups = len(r.members)
	for _, all := range r.open {
		r.out.Pending += len(all)
	}
}

// txnReplay follows the transactional ids.
type txnReplay struct {
	in     *inspection
	states map[string]int8
}

// States of a transaction in __transaction_state, as Kafka numbers them.
const (
	txnEmpty          = 0
	txnCompleteCommit = 4
	txnCompleteAbort  = 5
	txnDead           = 6
)

func (r *txnReplay) record(h *batch.Header, rec *batch.Record) {
	if h.Magic == 2 && h.Control() {
		return
	}
	var key kmsg.TxnMetadataKey
	if err := key.ReadFrom(rec.Key); err != nil || key.Version != 0 {
		return
	}
	if rec.Value == nil {
		delete(r.states, key.TransactionalID)
		return
	}
	value := kmsg.NewTxnMetadataValue()
	if err := value.ReadFrom(rec.Value); err != nil {
		r.in.plan.Notes = append(r.in.plan.Notes, "a record of __transaction_state does not parse: "+err.Error())
		return
	}
	r.in.maxID = max(r.in.maxID, value.ProducerID)
	r.states[key.TransactionalID] = int8(value.State)
}

func (r *txnReplay) count() {
	r.in.plan.Transactions.IDs = len(r.states)
	for _, s := range r.states {
		switch s {
		case txnEmpty, txnCompleteCommit, txnCompleteAbort, txnDead:
		default:
			r.in.plan.Transactions.Open++
		}
	}
}
