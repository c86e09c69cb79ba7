package broker

import (
	"errors"

	"gregor/broker/config"
	"gregor/log"
	"gregor/log/batch"
	"gregor/wire"
)

// Produce (key 0), versions 0 to 2: what clients from 0.8 to 0.10 send.
//
//   - A partition's records are a set of messages of magic 0 or 1, compressed ones inside a wrapper. As in Kafka up to 3.9 the magic is not
//     compared with the version, and a batch of magic 2 is taken too. A message that is cut off at the end is left out.
//   - A set becomes one batch, or several if one would be larger than max.message.bytes, which in old formats was about each message. There
//     Kafka answers MESSAGE_TOO_LARGE.
//   - A set without a whole message is no error: nothing is appended, and the base offset of the answer is -1.

// nothing is where a set without messages went.
func nothing() log.Appended { return log.Appended{BaseOffset: -1, LastOffset: -1, Timestamp: -1} }

// appendSet checks what a client before Produce version 3 sent and writes it in the topic's format. Records may be changed in place.
func (b *Broker) appendSet(p *partition, records []byte, e *enlisted) (log.Appended, error) {
	if len(records) > batch.MagicPos && records[batch.MagicPos] == 2 {
		return b.appendBatch(p, records, true, e)
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
	rules := produceRules(conf, true, b.now())
	if conf.Magic < 2 {
		out, codec, err := c.Collect(nil, records, rules)
		if err != nil || len(out) == 0 {
			return nothing(), err
		}
		return b.storeSet(p, out, setOptions(conf, codec))
	}
	codec := batch.Codec(-1)
	if conf.Compression.Codec != config.CodecProducer {
		codec = batch.Codec(conf.Compression.Codec)
	}
	out, h, err := c.Legacy(nil, records, rules, codec)
	if errors.Is(err, batch.ErrTooLarge) {
		if out, err := c.Split(nil, records, rules, codec); err == nil {
			return b.storeBatches(p, out)
		}
	}
	if err != nil || h.Count == 0 {
		return nothing(), err
	}
	appended, err := p.log.Append(out, h, p.epoch())
	b.noteAppend(err)
	return appended, err
}

// storeBatches writes several batches at once.
func (b *Broker) storeBatches(p *partition, batches []byte) (log.Appended, error) {
	appended, err := p.log.AppendSet(p.epoch(), func(base int64) ([]byte, error) {
		err := batch.ShiftSet(batches, base)
		return batches, err
	})
	b.noteAppend(err)
	return appended, err
}

// setOptions is how a topic with message.format.version below 0.11 stores what came with a codec.
func setOptions(t *config.Topic, codec batch.Codec) batch.SetOptions {
	if t.Compression.Codec != config.CodecProducer {
		codec = batch.Codec(t.Compression.Codec)
	}
	return batch.SetOptions{Magic: t.Magic, Codec: codec, MaxBytes: int(t.MaxMessageBytes)}
}

// storeSet writes b, a batch of magic 2 that was checked, as messages of magic 0 or 1.
func (b *Broker) storeSet(p *partition, records []byte, o batch.SetOptions) (log.Appended, error) {
	w := b.downgrades.Get().(*downgrade)
	defer b.putDowngrade(w)
	// Offsets inside compressed data must be absolute in magic 0: such sets are made when the offset is known.
	late := o.Magic == 0 && o.Codec != batch.None
	if !late {
		if err := w.makeSet(records, 0, o); err != nil {
			return log.Appended{}, err
		}
	}
	appended, err := p.log.AppendSet(p.epoch(), func(base int64) ([]byte, error) {
		if late {
			err := w.makeSet(records, base, o)
			return w.out, err
		}
		err := batch.ShiftSet(w.out, base)
		return w.out, err
	})
	b.noteAppend(err)
	if h, headerErr := batch.ReadHeader(records); err == nil && headerErr == nil {
		appended.Timestamp = h.MaxTimestamp // magic 0 keeps none, the answer still says when it was appended
	}
	return appended, err
}

// noteConverted counts records that came in another format than the topic stores.
func (b *Broker) noteConverted(req *wire.Request, t *topic, records []byte, a log.Appended) {
	if a.LastOffset < 0 || a.Duplicate || len(records) <= batch.MagicPos || int8(records[batch.MagicPos]) == t.config.Load().Magic {
		return
	}
	b.conversions.produced(convertingFor(req, "Produce"), a.LastOffset-a.BaseOffset+1, int64(len(records)))
}

// makeSet makes out of a batch of magic 2 that begins at offset base.
func (w *downgrade) makeSet(records []byte, base int64, o batch.SetOptions) (err error) {
	batch.Stamp(records, base, -1)
	w.out, err = w.down.Set(w.out[:0], records, o)
	return err
}
