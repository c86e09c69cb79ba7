package broker

import (
	"strconv"

	"gregor/broker/group"
	"gregor/log"
	"gregor/log/batch"
)

// append writes what a group asks for. The slot is locked; the result comes to the group when it is durable, or failed, from the
// coordinator's goroutine.
func (p *offsetsPartition) append(s *groupSlot, w *group.Write) {
	f := flying{owner: s, seq: w.Seq}
	appended, err := p.appendWrite(w)
	if f.last, f.err = appended.LastOffset, err; err != nil {
		p.c.broker.logger.Warn("group could not be stored", "group", s.id, "partition", p.part.num, "error", err)
	}
	if err == nil && w.Producer != nil {
		p.openMu.Lock()
		p.open.add(w.Producer.ID, s.id)
		p.openMu.Unlock()
	}
	p.follow(f)
}

// appendWrite writes a group's write: in a transaction, or by itself.
func (p *offsetsPartition) appendWrite(w *group.Write) (log.Appended, error) {
	if w.Producer == nil {
		return p.appendRecords(w.Records)
	}
	p.foreign.Store(true)
	who := batch.Producer{ID: w.Producer.ID, Epoch: w.Producer.Epoch} // sequence 0, as in Kafka
	b, h, err := build(p.broker, batch.Options{LeaderEpoch: -1, Codec: p.c.codec(), Producer: &who, Transactional: true}, w.Records)
	if err != nil {
		return log.Appended{}, err
	}
	epoch, err := p.ledUnder()
	if err != nil {
		return log.Appended{}, err
	}
	return p.part.log.AppendOwn(b, h, epoch)
}

// appendRecords writes records as one batch.
func (p *offsetsPartition) appendRecords(records []group.Record) (log.Appended, error) {
	b, h, err := build(p.broker, batch.Options{LeaderEpoch: -1, Codec: p.c.codec()}, records)
	if err != nil {
		return log.Appended{}, err
	}
	epoch, err := p.ledUnder()
	if err != nil {
		return log.Appended{}, err
	}
	appended, err := p.part.log.Append(b, h, epoch)
	if err == nil && p.grown.Add(int64(len(b))) > p.compactAt.Load() {
		p.c.requestCompaction(p)
	}
	return appended, err
}

// codec is that of offsets.topic.compression.codec.
func (c *coordinator) codec() batch.Codec { return batch.Codec(c.broker.conf.OffsetsTopicCodec) }

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
