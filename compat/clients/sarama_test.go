package clients

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// saramaClient is github.com/IBM/sarama at one protocol level: it takes its request versions from that, not from the broker.
type saramaClient struct {
	label   string
	version sarama.KafkaVersion
}

func (s saramaClient) name() string            { return s.label }
func (saramaClient) set(all []record) []record { return all }
func (saramaClient) keepsTime() bool           { return true }

func (s saramaClient) config() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = s.version
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1 // sarama demands it for an idempotent producer
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Return.Successes = true
	cfg.Producer.Flush.Frequency = 5 * time.Millisecond
	cfg.Producer.MaxMessageBytes = 1 << 20
	cfg.Consumer.MaxWaitTime = 20 * time.Millisecond // the last fetch of every partition waits that long
	return cfg
}

func (s saramaClient) produce(ctx context.Context, addr string, topics []*topic) error {
	for _, tp := range topics {
		cfg := s.config()
		if err := cfg.Producer.Compression.UnmarshalText([]byte(tp.codec)); err != nil {
			return err
		}
		if err := saramaProduce(ctx, addr, cfg, tp); err != nil {
			return fmt.Errorf("%s: %w", tp.codec, err)
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
			p.Input() <- saramaMessage(tp.name, r, i)
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
	cl, err := sarama.NewClient([]string{addr}, s.config())
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
			at, err := saramaSpan(cl, tp.name, p)
			if err != nil {
				return v, err
			}
			v.spans[tp.name] = append(v.spans[tp.name], at)
			if err := saramaRead(ctx, c, v, tp.name, p, at.end-at.begin); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

func saramaSpan(cl sarama.Client, topic string, p int32) (span, error) {
	var n [3]int64
	for i, when := range []int64{sarama.OffsetOldest, sarama.OffsetNewest, queryTime} {
		var err error
		if n[i], err = cl.GetOffset(topic, p, when); err != nil {
			return span{}, fmt.Errorf("GetOffset %s-%d at %d: %w", topic, p, when, err)
		}
	}
	return span{n[0], n[1], n[2]}, nil
}

func saramaRead(ctx context.Context, c sarama.Consumer, v view, topic string, p int32, n int64) error {
	pc, err := c.ConsumePartition(topic, p, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer pc.Close()
	for range n {
		select {
		case m := <-pc.Messages():
			r := record{partition: m.Partition, timestamp: m.Timestamp.UnixMilli(), key: m.Key, value: m.Value}
			for _, h := range m.Headers {
				r.headers = append(r.headers, header{string(h.Key), h.Value})
			}
			if err := v.add(topic, int(p), r.line(m.Offset)); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%s-%d: %w", topic, p, ctx.Err())
		}
	}
	return nil
}
