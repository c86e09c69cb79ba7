package broker

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/log"
	"gregor/log/batch"
)

// partition is one partition, with its log when this broker has a replica.
type partition struct {
	topic *topic
	num   int32
	// log is nil when there is no replica here, or when it could not be opened; then err says why.
	log *log.Log
	err error
	// lead is who leads it.
	lead             atomic.Pointer[leadership]
	producerExpiryMs func() int64
	// follow tells of transaction markers that are durable; nil before the first.
	follow        atomic.Pointer[stateLog]
	verifications verifications
	// cleaning is the cleaner's, guarded by its lock.
	cleaning cleaning
}

// closed returns the error for a client that writes to, or reads from, a partition that its topic's configuration has closed; open is the set of those
// that are not. It is NOT_LEADER_OR_FOLLOWER: clients of every version look for the leader and try again, so that they go on when it is opened.
func (p *partition) closed(open *config.PartitionSet, key string) error {
	if open == nil || open.Has(p.num) {
		return nil
	}
	return fmt.Errorf("partition %s-%d is closed (%s=%s); gregor partitions open lets clients go on: %w", p.topic.name, p.num, key, open, kerr.NotLeaderForPartition)
}

// checkEpoch compares the epoch that a client believes in with ours; -1 asks for no check (KIP-320).
func (p *partition) checkEpoch(epoch int32) error {
	switch {
	case epoch == -1 || epoch == p.epoch():
		return nil
	case epoch < p.epoch():
		return kerr.FencedLeaderEpoch
	}
	return kerr.UnknownLeaderEpoch
}

// appendBatch checks one batch from a client and writes it, as part of e's transaction if it is of one. Records are changed in place. A duplicate of an idempotent producer is no error.
func (b *Broker) appendBatch(p *partition, records []byte, noZstd bool, e *enlisted) (log.Appended, error) {
	if err := p.offline(); err != nil {
		return log.Appended{}, err
	}
	conf := p.topic.config.Load()
	checker := b.checkers.Get().(*batch.Checker)
	h, err := checker.Check(records, produceRules(conf, noZstd, b.now()))
	b.checkers.Put(checker)
	if err != nil {
		return log.Appended{}, err
	}
	if h.Transactional() {
		leave, err := e.admit(p, &h)
		if err != nil {
			return log.Appended{}, err
		}
		defer leave()
	}
	if conf.Magic < 2 {
		return b.storeSet(p, records, setOptions(conf, h.Codec()))
	}
	if want := conf.Compression.Codec; want != config.CodecProducer && batch.Codec(want) != h.Codec() {
		if records, h, err = b.recompress(records, batch.Codec(want), int(conf.MaxMessageBytes)); err != nil {
			return log.Appended{}, err
		}
	}
	write := p.log.Append
	if h.Transactional() && e.addsPartitions() {
		write = p.log.AppendFromZero
	}
	appended, err := write(records, h, p.epoch())
	b.noteAppend(err)
	return appended, err
}

// recompress makes the batch one with the codec of the topic (compression.type), in memory of its own: the only batches that are not
// stored as they came.
func (b *Broker) recompress(records []byte, codec batch.Codec, maxBytes int) ([]byte, batch.Header, error) {
	c := b.converters.Get().(*batch.Converter)
	defer b.converters.Put(c)
	out, err := c.Recompress(nil, records, codec, maxBytes, 0)
	if err != nil {
		return nil, batch.Header{}, err
	}
	h, err := batch.ReadHeader(out)
	return out, h, err
}

// produceRules is what a topic asks of a batch.
func produceRules(t *config.Topic, noZstd bool, now time.Time) batch.Rules {
	return batch.Rules{
		RequireKey:    t.CleanupPolicy.Compact,
		LogAppendTime: t.TimestampType == config.LogAppendTime,
		Now:           now.UnixMilli(),
		BeforeMax:     t.TimestampBeforeMaxMs,
		AfterMax:      t.TimestampAfterMaxMs,
		MaxBytes:      int(t.MaxMessageBytes),
		// Kafka's default, 2 GiB, is no bound.
		MaxDecompressed: min(int64(t.MaxDecompressedBytes), batch.DefaultMaxDecompressed),
		NoZstd:          noZstd,
	}
}
