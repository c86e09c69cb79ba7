package broker

import (
	"context"

	"gregor/broker/txn"
	"gregor/log/batch"
)

// load implements statePartition.
func (p *txnPartition) load(_ context.Context, stop func() bool) (int, error) {
	l := txnLoader{p: p, all: make(map[string]*txn.Txn)}
	r := stateReplay{entry: l.entry, stop: stop}
	if err := r.run(p.part); err != nil || stop() {
		return 0, err
	}
	l.finish()
	return len(l.all), nil
}

// txnLoader replays one partition.
type txnLoader struct {
	p   *txnPartition
	all map[string]*txn.Txn
}

// entry replays one batch.
func (l *txnLoader) entry(_ *batch.Header, records *batch.Reader, from int64) error {
	var rec batch.Record
	for records.Next(&rec) {
		if rec.Offset < from {
			continue
		}
		id, ok, err := txn.ParseKey(rec.Key)
		if err == nil && ok {
			t := l.all[id]
			if t == nil {
				t = txn.New(id, &l.p.c.conf)
				l.all[id] = t
			}
			err = t.Replay(rec.Value)
		}
		if err != nil {
			// What the id was decided to do is not known: to go on without would leave its partitions open, or end them wrongly.
			return err
		}
	}
	return nil
}

// finish puts the ids in their places and opens the partition. What was decided and not finished is finished.
func (l *txnLoader) finish() {
	p := l.p
	for id, t := range l.all {
		if !t.Exists() {
			continue
		}
		s := &txnSlot{id: id, p: p, t: t}
		s.mu.Lock()
		p.mu.Lock()
		p.slots[id] = s
		p.mu.Unlock()
		s.mu.Unlock()
		s.event(func(t *txn.Txn, at txn.Instant) txn.Effects { return t.Loaded(at) })
	}
	p.state.CompareAndSwap(stateLoading, stateReady)
}
