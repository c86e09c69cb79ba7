package broker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/peers"
	"gregor/log/producer"
)

// tappedAsker counts what is asked, and may hold or fail it.
type tappedAsker struct {
	asker
	asked atomic.Int32
	first atomic.Pointer[func() error] // nil: nothing
}

// do has f called before each question, which its error fails.
func (a *tappedAsker) do(f func() error) { a.first.Store(&f) }

func (a *tappedAsker) Request(ctx context.Context, id int32, req kmsg.Request) (kmsg.Response, error) {
	a.asked.Add(1)
	if first := a.first.Load(); first != nil {
		if err := (*first)(); err != nil {
			return nil, err
		}
	}
	return a.asker.Request(ctx, id, req)
}

// apart has transactions coordinated by one broker, and topic "out" and all groups led by the other.
func apart(t *testing.T) (here, there *testBroker, tap *tappedAsker) {
	t.Helper()
	here, there, tap = twoBrokers(t)
	for _, b := range []*testBroker{here, there} {
		c := b.dial()
		c.findTxnCoordinator("t")
		c.createTopic("out")
	}
	here.sees(there, here.nodeID)
	there.sees(here, here.nodeID)
	here.ledBy("out", 0, neighbour, 0)
	for n := range int32(4) {
		here.ledBy(offsetsTopic, n, neighbour, 0)
		there.ledBy(txnTopic, n, here.nodeID, 0)
	}
	return here, there, tap
}

// TestVerifiedElsewhere: a broker that does not coordinate a transaction asks about its first batch in a partition, and about no others.
func TestVerifiedElsewhere(t *testing.T) {
	here, there, tap := apart(t)
	p := here.dial().initTxn("t", false)
	q := *p
	q.client = there.dial()
	if got := q.write(9, "out", 0, "early"); got != kerr.InvalidTxnState.Code {
		t.Errorf("write to a partition that is not in the transaction: error %d", got)
	}
	if got := q.write(11, "out", 0, "early"); got != kerr.TransactionAbortable.Code {
		t.Errorf("v11 write to a partition that is not in the transaction: error %d", got)
	}
	if got := q.commitOffset(3, "g", "out", 1); got != kerr.InvalidTxnState.Code {
		t.Errorf("offset commit without its partition: error %d", got)
	}
	for round := range int64(3) {
		if got := p.add("out", 0); got != 0 {
			t.Fatalf("add: error %d", got)
		}
		before := tap.asked.Load()
		for range 3 {
			if got := q.write(9, "out", 0, "a"); got != 0 {
				t.Fatalf("write: error %d", got)
			}
			q.who.Sequence++
		}
		if got := tap.asked.Load() - before; got != 1 {
			t.Errorf("round %d: %d questions for three batches", round, got)
		}
		if got := p.addOffsets("g"); got != 0 {
			t.Fatalf("add offsets: error %d", got)
		}
		if got := q.commitOffset(3, "g", "out", round+1); got != 0 {
			t.Fatalf("offset commit: error %d", got)
		}
		if got := p.end(round != 1); got != 0 {
			t.Fatalf("end: error %d", got)
		}
		waitFor(t, func() bool { return there.stable("out", 0) == 4*(round+1) })
		want := round + 1
		if round == 1 {
			want = 1 // aborted
		}
		waitFor(t, func() bool { return q.fetchOne("g", "out").Offset == want })
	}
	if got := q.write(9, "out", 0, "late"); got != kerr.InvalidTxnState.Code && got != kerr.NotEnoughReplicas.Code {
		t.Errorf("write after the end: error %d", got)
	}
	noVerifications(t, there, "out")
}

// noVerifications: none is left behind.
func noVerifications(t *testing.T, b *testBroker, topic string) {
	t.Helper()
	v := &b.topics.name(topic).partition(0).verifications
	waitFor(t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.by) == 0
	})
}

// TestAddedElsewhere: for a client of transaction version 2 the partition is put into the transaction at its coordinator.
func TestAddedElsewhere(t *testing.T) {
	here, there, _ := apart(t)
	p := here.dial().initTxn("t", true)
	other := there.dial()
	for round := range int64(3) {
		q := *p
		q.client = other
		if got := retried(t, func() int16 { return q.write(12, "out", 0, "a") }); got != 0 {
			t.Fatalf("write: error %d", got)
		}
		if got := q.commitOffset(5, "g", "out", round); got != 0 {
			t.Fatalf("offset commit: error %d", got)
		}
		if got := p.end(true); got != 0 {
			t.Fatalf("end: error %d", got)
		}
		waitFor(t, func() bool { return there.stable("out", 0) == 2*(round+1) })
		waitFor(t, func() bool { return other.fetchOne("g", "out").Offset == round })
	}
}

// TestCoordinatorNotReached: what cannot be verified is refused with an error that clients retry on; a coordinator too old to be asked lets it pass.
func TestCoordinatorNotReached(t *testing.T) {
	here, there, tap := apart(t)
	p := here.dial().initTxn("t", false)
	q := *p
	q.client = there.dial()
	if got := p.add("out", 0); got != 0 {
		t.Fatalf("add: error %d", got)
	}
	tap.do(func() error { return errors.New("no route") })
	for _, version := range []int16{9, 12} {
		if got := q.write(version, "out", 0, "a"); got != kerr.NotEnoughReplicas.Code {
			t.Errorf("v%d write: error %d", version, got)
		}
	}
	if got := q.commitOffset(3, "g", "out", 1); got != kerr.CoordinatorLoadInProgress.Code && got != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("offset commit: error %d", got)
	}
	tap.do(func() error { return peers.ErrUnsupported })
	if got := q.write(9, "out", 0, "a"); got != 0 {
		t.Errorf("write: error %d", got)
	}
	noVerifications(t, there, "out")
}

// TestMarkerOvertakes: a batch whose transaction was ended while its coordinator was asked is not written, and the client tries again.
func TestMarkerOvertakes(t *testing.T) {
	here, there, tap := apart(t)
	p := here.dial().initTxn("t", false)
	q := *p
	q.client = there.dial()
	if got := p.add("out", 0); got != 0 {
		t.Fatalf("add: error %d", got)
	}
	part := there.topics.name("out").partition(0)
	tap.do(func() error {
		_, err := there.appendMarker(part, producer.Marker{ProducerID: p.who.ID, Epoch: p.who.Epoch, Commit: false}, nil)
		return err
	})
	if got := q.write(9, "out", 0, "a"); got != kerr.NotEnoughReplicas.Code {
		t.Errorf("write: error %d", got)
	}
	if part.log.HasOpenTxn(p.who.ID, p.who.Epoch) {
		t.Error("the transaction hangs")
	}
	if got := part.log.EndOffset(); got != 1 {
		t.Errorf("log end is %d, want the marker only", got)
	}
	tap.do(func() error { return nil })
	if got := q.write(9, "out", 0, "a"); got != 0 {
		t.Errorf("write again: error %d", got)
	}
	noVerifications(t, there, "out")
}
