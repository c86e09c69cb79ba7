package groups

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Timeouts that all members have.
const (
	session = 6 * time.Second
	// staticSession lets a static member come back in time.
	staticSession = 30 * time.Second
	heartbeat     = 500 * time.Millisecond
	fetchWait     = 200 * time.Millisecond
)

func untilStopped(stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop
		cancel()
	}()
	return ctx, cancel
}

func franzMember(id identity, stop <-chan struct{}) error {
	ctx, cancel := untilStopped(stop)
	defer cancel()
	report := func(word string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, p map[string][]int32) { say(word, numbers(p[id.topic])) }
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(id.broker), kgo.ConsumerGroup(id.group), kgo.ConsumeTopics(id.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(session), kgo.HeartbeatInterval(heartbeat), kgo.FetchMaxWait(fetchWait),
		kgo.OnPartitionsAssigned(report("assigned")), kgo.OnPartitionsRevoked(report("revoked")), kgo.OnPartitionsLost(report("revoked")),
	}
	if id.instance != "-" {
		opts = append(opts, kgo.InstanceID(id.instance), kgo.SessionTimeout(staticSession))
	}
	if id.assignor == "range" {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fetches := cl.PollRecords(ctx, 100)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				say("failed", err)
			}
		})
		records := fetches.Records()
		for _, r := range records {
			say("record", r.Partition, r.Offset, string(r.Value))
		}
		if len(records) > 0 {
			franzCommit(ctx, cl, records)
		}
		cl.AllowRebalance()
	}
	return nil
}

func franzCommit(ctx context.Context, cl *kgo.Client, records []*kgo.Record) {
	if err := cl.CommitRecords(ctx, records...); err != nil {
		say("failed", err)
		return
	}
	next := map[int32]int64{}
	for _, r := range records {
		next[r.Partition] = r.Offset + 1
	}
	for p, o := range next {
		say("committed", p, o)
	}
}

func saramaMember(id identity, stop <-chan struct{}) error {
	ctx, cancel := untilStopped(stop)
	defer cancel()
	conf := sarama.NewConfig()
	conf.Version = sarama.V3_9_0_0
	conf.Consumer.Offsets.Initial = sarama.OffsetOldest
	conf.Consumer.Offsets.AutoCommit.Enable = false
	conf.Consumer.Group.Session.Timeout = session
	conf.Consumer.Group.Heartbeat.Interval = heartbeat
	conf.Consumer.MaxWaitTime = fetchWait
	conf.Consumer.Return.Errors = true
	conf.Metadata.Retry.Max = 50
	if id.instance != "-" {
		conf.Consumer.Group.InstanceId = id.instance
		conf.Consumer.Group.Session.Timeout = staticSession
	}
	g, err := sarama.NewConsumerGroup([]string{id.broker}, id.group, conf)
	if err != nil {
		return err
	}
	go func() {
		for err := range g.Errors() {
			say("failed", err)
		}
	}()
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{id.topic}, saramaHandler{id.topic}); err != nil && ctx.Err() == nil {
			say("failed", err)
			pause(ctx)
		}
	}
	return g.Close()
}

// pause keeps a client that fails at once from failing all the time.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// saramaHandler processes claims. Commit tells no result, so none is printed.
type saramaHandler struct{ topic string }

func (h saramaHandler) Setup(s sarama.ConsumerGroupSession) error {
	say("assigned", numbers(s.Claims()[h.topic]))
	return nil
}

func (h saramaHandler) Cleanup(s sarama.ConsumerGroupSession) error {
	say("revoked", numbers(s.Claims()[h.topic]))
	return nil
}

func (h saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			say("record", m.Partition, m.Offset, string(m.Value))
			s.MarkMessage(m, "")
			if claim.HighWaterMarkOffset() == m.Offset+1 || len(claim.Messages()) == 0 {
				s.Commit()
			}
		}
	}
}

func kafkaGoMember(id identity, stop <-chan struct{}) error {
	ctx, cancel := untilStopped(stop)
	defer cancel()
	r := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{id.broker}, GroupID: id.group, Topic: id.topic, StartOffset: kafkago.FirstOffset, MaxWait: fetchWait,
		SessionTimeout: session, HeartbeatInterval: heartbeat, RebalanceTimeout: 10 * time.Second, JoinGroupBackoff: 200 * time.Millisecond,
		ReadBackoffMax: fetchWait, ErrorLogger: kafkago.LoggerFunc(func(format string, args ...any) {}),
	})
	for ctx.Err() == nil {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				say("failed", err)
				pause(ctx)
			}
			continue
		}
		say("record", m.Partition, m.Offset, string(m.Value))
		if err := r.CommitMessages(ctx, m); err != nil {
			say("failed", err)
			continue
		}
		say("committed", m.Partition, m.Offset+1)
	}
	return r.Close()
}
