package broker

import (
	"gregor/broker/config"
	"gregor/log"
	"gregor/log/batch"
)

// Produce (key 0), versions 0 to 2: what clients from 0.8 to 0.10 send.
//
//   - A partition's records are a set of messages of magic 0 or 1, compressed ones inside a wrapper. As in Kafka up to 3.9 the magic is not
//     compared with the version, and a batch of magic 2 is taken too. A message that is cut off at the end is left out.
//   - A set without a whole message is no error: nothing is appended, and the base offset of the answer is -1.

// nothing is where a set without messages went.
func nothing() log.Appended { return log.Appended{BaseOffset: -1, LastOffset: -1, Timestamp: -1} }

// appendSet checks what a client before Produce version 3 sent and writes it in the topic's format. Records may be changed in place.
func (b *Broker) appendSet(p *partition, records []byte) (log.Appended, error) {
	if len(records) > batch.MagicPos && records[batch.MagicPos] == 2 {
		return b.appendBatch(p, records, true)
	}
	if err := p.offline(); err != nil {
		return log.Appended{}, err
	}
	conf := p.topic.config.Load()
	c := b.converters.Get().(*batch.Converter)
	defer func() {
		c.Release()
		b.converters.Put(c)
	}()
	codec := batch.Codec(-1)
	if conf.Compression.Codec != config.CodecProducer {
		codec = batch.Codec(conf.Compression.Codec)
	}
	out, h, err := c.Legacy(nil, records, produceRules(conf, true, b.now()), codec)
	if err != nil {
		return log.Appended{}, err
	}
	if h.Count == 0 {
		return nothing(), nil
	}
	appended, err := p.log.Append(out, h, p.leaderEpoch)
	b.noteAppend(err)
	return appended, err
}
