package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	committers = 6  // groups that only commit, as fast as they are answered
	perGroup   = 20 // partitions that each commits
	memberOf   = 2  // groups with members
	membersOf  = 2  // in each
	groupKills = 6
)

// TestKillUnderCommits: SIGKILL while groups commit. After each, every commit that was answered is there, nothing that was not sent is, and groups go on.
func TestKillUnderCommits(t *testing.T) {
	b := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=100", "offsets.topic.segment.bytes=1048576"}})
	w := &commitLoad{broker: b, adm: kadm.NewClient(b.Client(t, quickRetry())), topic: harness.Topic("committed"), stop: make(chan struct{})}
	b.Create(t, perGroup, nil, w.topic)
	w.start(t)
	for range groupKills {
		w.progress(t)
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		b.Kill(t)
		b.Up(t)
		w.verify(t)
	}
	w.progress(t)
	close(w.stop)
	w.workers.Wait()
	w.verify(t)
	t.Logf("%d commits answered, %d records processed by members", w.answered.Load(), w.processed.Load())
}

// commitLoad is groups that commit while the broker dies and comes back.
type commitLoad struct {
	broker *harness.Broker
	adm    *kadm.Client
	topic  string

	groups    []*committedGroup
	answered  atomic.Int64 // commits
	processed atomic.Int64 // records, by members
	stop      chan struct{}
	workers   sync.WaitGroup
}

// committedGroup is one group with what it was told.
type committedGroup struct {
	name string

	mu       sync.Mutex
	sent     map[int32]int64 // highest offset that was ever sent
	answered map[int32]int64 // highest that was answered
}

func (g *committedGroup) note(m map[int32]int64, p int32, offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m[p] = max(m[p], offset)
}

func (w *commitLoad) group(kind string, i int) *committedGroup {
	g := &committedGroup{name: fmt.Sprintf("%s-%d of %s", kind, i, w.topic), sent: map[int32]int64{}, answered: map[int32]int64{}}
	w.groups = append(w.groups, g)
	return g
}

func (w *commitLoad) start(t *testing.T) {
	for i := range committers {
		g := w.group("committer", i)
		adm := kadm.NewClient(w.broker.Client(t, quickRetry()))
		w.workers.Go(func() { w.commitAlways(adm, g) })
	}
	cl := w.broker.Client(t, quickRetry(), kgo.RetryTimeout(2*time.Minute), kgo.ProducerLinger(0))
	w.workers.Go(func() { w.feed(cl) })
	for i := range memberOf {
		g := w.group("members", i)
		for range membersOf {
			cl := w.broker.Client(t, quickRetry(), kgo.ConsumerGroup(g.name), kgo.ConsumeTopics(w.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
				kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(300*time.Millisecond), kgo.FetchMaxWait(100*time.Millisecond))
			w.workers.Go(func() { w.consume(cl, g) })
		}
	}
}

func (w *commitLoad) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// commitAlways commits growing offsets of all partitions, one request after the other.
func (w *commitLoad) commitAlways(adm *kadm.Client, g *committedGroup) {
	for n := int64(1); !w.stopped(); n++ {
		var all kadm.Offsets
		for p := range int32(perGroup) {
			all.Add(kadm.Offset{Topic: w.topic, Partition: p, At: n, LeaderEpoch: -1, Metadata: fmt.Sprint("n=", n)})
			g.note(g.sent, p, n)
		}
		if err := adm.CommitAllOffsets(context.Background(), g.name, all); err != nil {
			continue
		}
		w.answered.Add(1)
		for p := range int32(perGroup) {
			g.note(g.answered, p, n)
		}
	}
}

func (w *commitLoad) feed(cl *kgo.Client) {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for i := int32(0); !w.stopped(); i++ {
		<-pace.C
		cl.Produce(context.Background(), &kgo.Record{Topic: w.topic, Partition: i % perGroup, Value: []byte("x")}, nil)
	}
}

func (w *commitLoad) consume(cl *kgo.Client, g *committedGroup) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-w.stop
		cancel()
	}()
	for ctx.Err() == nil {
		records := cl.PollFetches(ctx).Records()
		for _, r := range records {
			g.note(g.sent, r.Partition, r.Offset+1)
		}
		if len(records) == 0 || cl.CommitRecords(ctx, records...) != nil {
			continue
		}
		w.answered.Add(1)
		w.processed.Add(int64(len(records)))
		for _, r := range records {
			g.note(g.answered, r.Partition, r.Offset+1)
		}
	}
}

// progress waits until groups of both kinds went on.
func (w *commitLoad) progress(t *testing.T) {
	t.Helper()
	answered, processed := w.answered.Load()+300, w.processed.Load()+300
	for deadline := time.Now().Add(60 * time.Second); w.answered.Load() < answered || w.processed.Load() < processed; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d commits answered and %d records processed, want %d and %d within a minute", w.answered.Load(), w.processed.Load(), answered, processed)
		}
	}
}

// offsets asks for a group's offsets; the client's connections are of the broker that was killed, so it may need to be asked twice.
func (w *commitLoad) offsets(t *testing.T, g *committedGroup) kadm.OffsetResponses {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got, err := w.adm.FetchOffsets(context.Background(), g.name)
		if err == nil {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", g.name, err)
		}
	}
}

// verify compares the offsets with what was answered and sent.
func (w *commitLoad) verify(t *testing.T) {
	t.Helper()
	for _, g := range w.groups {
		g.mu.Lock()
		answered := map[int32]int64{}
		for p, o := range g.answered {
			answered[p] = o
		}
		g.mu.Unlock()
		got := w.offsets(t, g)
		g.mu.Lock()
		for p := range int32(perGroup) {
			o, ok := got.Lookup(w.topic, p)
			if ok && o.Err != nil || ok && o.At > g.sent[p] || o.At < answered[p] {
				t.Errorf("%s: partition %d has offset %d (%v), answered %d, sent %d", g.name, p, o.At, o.Err, answered[p], g.sent[p])
			}
		}
		g.mu.Unlock()
	}
}
