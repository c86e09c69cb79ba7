package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// saramaClient is github.com/IBM/sarama at one protocol level: it takes its request versions from that, not from the broker.
type saramaClient struct {
	label   string
	version sarama.KafkaVersion
}

func (s saramaClient) name() string { return s.label }

func (s saramaClient) ability() ability {
	switch {
	case s.version.IsAtLeast(sarama.V2_1_0_0):
		return ability{magic: 2, codecs: toZstd, strictLz4: true}
	case s.version.IsAtLeast(sarama.V0_11_0_0):
		return ability{magic: 2, codecs: toLz4, strictLz4: true}
	case s.version.IsAtLeast(sarama.V0_10_0_0):
		return ability{magic: 1, codecs: toLz4, strictLz4: true}
	default:
		return ability{codecs: toSnappy}
	}
}

func (s saramaClient) set(all []record) []record {
	if s.ability().magic < 2 {
		return withoutHeaders(all)
	}
	return all
}

func (s saramaClient) config(idempotent bool) *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = s.version
	cfg.ApiVersionsRequest = s.version.IsAtLeast(sarama.V0_10_0_0)
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = idempotent && s.ability().magic == 2
	cfg.Net.MaxOpenRequests = 1 // sarama demands it for an idempotent producer
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Return.Successes = true
	cfg.Producer.Flush.Frequency = 5 * time.Millisecond
	cfg.Producer.MaxMessageBytes = 1 << 20
	cfg.Consumer.MaxWaitTime = 20 * time.Millisecond // the last fetch of every partition waits that long
	cfg.Consumer.Return.Errors = true
	return cfg
}

func (s saramaClient) produce(ctx context.Context, addr string, topics []*topic) error {
	for _, tp := range topics {
		cfg := s.config(tp.magic() == 2)
		if err := cfg.Producer.Compression.UnmarshalText([]byte(tp.codec)); err != nil {
			return err
		}
		if err := saramaProduce(ctx, addr, cfg, tp); err != nil {
			tp.failure = err.Error()
		}
	}
	return nil
}

func saramaProduce(ctx context.Context, addr string, cfg *sarama.Config, tp *topic) error {
	p, err := sarama.NewAsyncProducer([]string{addr}, cfg)
	if err != nil {
		return err
	}
	defer p.AsyncClose()
	go func() {
		for i, r := range tp.set {
			select {
			case p.Input() <- saramaMessage(tp.name, r, i):
			case <-ctx.Done():
				return
			}
		}
	}()
	tp.acks = make([]int64, len(tp.set))
	for range tp.set {
		select {
		case m := <-p.Successes():
			tp.acks[m.Metadata.(int)] = m.Offset
		case err := <-p.Errors():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func saramaMessage(topic string, r record, i int) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: topic, Partition: r.partition, Timestamp: time.UnixMilli(r.timestamp), Metadata: i}
	if r.key != nil {
		m.Key = sarama.ByteEncoder(r.key)
	}
	if r.value != nil {
		m.Value = sarama.ByteEncoder(r.value)
	}
	for _, h := range r.headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.key), Value: h.value})
	}
	return m
}

func (s saramaClient) consume(ctx context.Context, addr string, topics []*topic) (view, error) {
	v := newView(topics)
	cl, err := sarama.NewClient([]string{addr}, s.config(false))
	if err != nil {
		return v, err
	}
	defer cl.Close()
	c, err := sarama.NewConsumerFromClient(cl)
	if err != nil {
		return v, err
	}
	defer c.Close()
	for _, tp := range topics {
		for p := range int32(partitions) {
			at, err := s.span(cl, tp.name, p)
			if err != nil {
				return v, err
			}
			v.spans[tp.name] = append(v.spans[tp.name], at)
		}
		if err := saramaRead(ctx, c, v, tp.name); err != nil {
			v.failures[tp.name] = err.Error()
		}
	}
	return v, nil
}

func (s saramaClient) span(cl sarama.Client, topic string, p int32) (span, error) {
	n := [3]int64{2: notAsked}
	for i, when := range []int64{sarama.OffsetOldest, sarama.OffsetNewest, queryTime} {
		if i == 2 && !s.version.IsAtLeast(sarama.V0_10_1_0) {
			break // version 0 of ListOffsets knows segments only
		}
		var err error
		n[i], err = cl.GetOffset(topic, p, when)
		if i == 2 && errors.Is(err, sarama.ErrUnsupportedForMessageFormat) {
			n[i], err = -1, nil // no timestamps are stored
		}
		if err != nil {
			return span{}, fmt.Errorf("GetOffset %s-%d at %d: %w", topic, p, when, err)
		}
	}
	return span{n[0], n[1], n[2]}, nil
}

// saramaRead reads the topic's partitions to the ends that v has. They are open at once, since closing one waits for its
// last fetch.
func saramaRead(ctx context.Context, c sarama.Consumer, v view, topic string) error {
	var open []sarama.PartitionConsumer
	defer func() {
		for _, pc := range open {
			pc.AsyncClose()
		}
		for _, pc := range open {
			for range pc.Messages() {
			}
			for range pc.Errors() {
			}
		}
	}()
	for p := range int32(partitions) {
		pc, err := c.ConsumePartition(topic, p, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		open = append(open, pc)
	}
	for p, pc := range open {
		at := v.spans[topic][p]
		for range at.end - at.begin {
			select {
			case m := <-pc.Messages():
				if err := v.add(topic, p, saramaLine(m)); err != nil {
					return err
				}
			case err := <-pc.Errors():
				return err
			case <-ctx.Done():
				return fmt.Errorf("%s-%d: %w", topic, p, ctx.Err())
			}
		}
	}
	return nil
}

func saramaLine(m *sarama.ConsumerMessage) string {
	r := record{partition: m.Partition, timestamp: -1, key: m.Key, value: m.Value}
	if !m.Timestamp.IsZero() {
		r.timestamp = m.Timestamp.UnixMilli()
	}
	for _, h := range m.Headers {
		r.headers = append(r.headers, header{string(h.Key), h.Value})
	}
	return r.line(m.Offset)
}
