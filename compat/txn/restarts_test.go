package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
)

// TestRestarts ends the broker in the middle of a copy by two members of a group, in turn by SIGKILL and by SIGTERM, and starts it again at once or
// when clients have given up requests. Each input is in the output once, in order, and no producer is told that another took its place: none did.
func TestRestarts(t *testing.T) {
	const restarts = 16
	b := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000"}})
	feeder := b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	r := newWatched(t, b, client{name: "restarts"})
	var members []*member
	for i := range 2 {
		m := &member{job: r.job}
		m.id += fmt.Sprint("-", i)
		m.start(t)
		members = append(members, m)
	}
	feeding := make(chan struct{})
	var fed sync.WaitGroup
	fed.Go(func() { r.feedUntil(feeding, feeder) })
	for i := range restarts {
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		awaitOpen(t, members)
		if i%2 == 0 {
			b.Kill(t)
		} else {
			b.Stop(t)
		}
		if i%4 < 2 {
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		}
		b.Up(t)
	}
	close(feeding)
	fed.Wait()
	r.awaitSeen(t, r.fed)
	committed, lost := 0, 0
	for _, m := range members {
		m.stop()
		committed, lost = committed+m.committed, lost+m.lost
		for _, err := range m.fenced {
			t.Errorf("%s was fenced, and nobody took its place: %v", m.id, err)
		}
	}
	t.Logf("%d records, %d restarts, %d transactions committed, the end of %d not known", r.fed, restarts, committed, lost)
}

// awaitOpen waits until one of them is in a transaction.
func awaitOpen(t *testing.T, members []*member) {
	t.Helper()
	for deadline := time.Now().Add(stepLimit); ; time.Sleep(time.Millisecond) {
		for _, m := range members {
			if m.open.Load() {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody began a transaction in %v", stepLimit)
		}
	}
}

// feedUntil keeps records waiting for whoever copies.
func (r *run) feedUntil(end <-chan struct{}, cl *kgo.Client) {
	for {
		select {
		case <-end:
			return
		case <-time.After(5 * time.Millisecond):
		}
		r.mu.Lock()
		waiting := r.fed - len(r.seen)
		r.mu.Unlock()
		if waiting > 2*perStep {
			continue
		}
		if err := r.feed(cl); err != nil {
			r.t.Error(err)
			return
		}
	}
}

// member copies until it is stopped.
type member struct {
	job
	cancel context.CancelFunc
	done   sync.WaitGroup
	open   atomic.Bool // it is in a transaction

	// to be read when done
	committed int
	lost      int // transactions whose end is not known
	fenced    []error
}

func (m *member) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	t.Cleanup(m.stop)
	m.done.Go(func() {
		for ctx.Err() == nil {
			m.session(ctx)
		}
	})
}

func (m *member) stop() {
	m.cancel()
	m.done.Wait()
}

// session copies until the end of a transaction is not known. Then it aborts, for which the client asks for its next epoch with the one that it
// had, and makes room for a session that reads the committed offsets.
func (m *member) session(ctx context.Context) {
	s, err := newSession(m.job)
	if err != nil {
		m.note(err)
		return
	}
	defer s.Close()
	for ctx.Err() == nil {
		records := s.PollRecords(ctx, perTxn).Records()
		if len(records) == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			m.note(err)
			return
		}
		m.open.Store(true)
		promise := kgo.AbortingFirstErrPromise(s.Client())
		for _, r := range records {
			s.Produce(ctx, &kgo.Record{Topic: m.output, Partition: r.Partition, Key: r.Key, Value: r.Value}, promise.Promise())
		}
		failed := promise.Err()
		m.note(failed)
		committed, err := s.End(ctx, kgo.TransactionEndTry(failed == nil))
		m.open.Store(false)
		if err != nil && ctx.Err() == nil {
			m.lost++
			m.note(err)
			_, err = s.End(ctx, kgo.TryAbort)
			m.note(err)
			return
		}
		if committed {
			m.committed++
		}
	}
}

// note keeps errors that say that another producer has the transactional id.
func (m *member) note(err error) {
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		m.fenced = append(m.fenced, err)
	}
}
