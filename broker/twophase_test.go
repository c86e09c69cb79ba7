package broker

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/twophase"
	"gregor/log/batch"
	"gregor/wire"
)

const twoPhaseKey = "transaction.two.phase.commit.enable"

// initTwoPhase is InitProducerId 6 of a new client.
func initTwoPhase(id string, keep bool) *twophase.Request {
	r := new(twophase.Request)
	r.Default()
	r.TransactionalID, r.Enable2PC, r.KeepPreparedTxn = &id, true, keep
	return r
}

// initTwoPhase takes the id for a producer of transactions without timeout.
func (c *client) initTwoPhase(id string, keep bool) (*txnClient, *twophase.Response) {
	c.t.Helper()
	var resp *twophase.Response
	code := retried(c.t, func() int16 {
		resp = ask[*twophase.Response](c, twophase.Version, initTwoPhase(id, keep))
		return resp.ErrorCode
	})
	if code != 0 {
		c.t.Fatalf("init: error %d", code)
	}
	return &txnClient{client: c, id: id, tv2: true, who: batch.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}}, resp
}

// describedTxn is the id as DescribeTransactions shows it.
func (c *client) describedTxn(id string) kmsg.DescribeTransactionsResponseTransactionState {
	c.t.Helper()
	r := kmsg.NewPtrDescribeTransactionsRequest()
	r.TransactionalIDs = []string{id}
	return ask[*kmsg.DescribeTransactionsResponse](c, 0, r).TransactionStates[0]
}

// TestPreparedTransaction: a transaction that was prepared outlives its client and two kills of the broker, and is committed, or aborted, by the
// client after the next.
func TestPreparedTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		dir := t.TempDir()
		b, c := txnBroker(t, dir, twoPhaseKey, "true")
		c.createTopic("out")
		first, resp := c.initTwoPhase("t", false)
		if resp.OngoingTxnProducerID != -1 || resp.OngoingTxnProducerEpoch != -1 {
			t.Errorf("a new id: %+v", resp)
		}
		if got := first.write(12, "out", 0, "a"); got != 0 {
			t.Fatalf("write: error %d", got)
		}
		var last *txnClient
		for round := range int16(2) {
			b.abandon()
			b, c = txnBroker(t, dir, twoPhaseKey, "true")
			before := last
			if last, resp = c.initTwoPhase("t", true); resp.OngoingTxnProducerID != first.who.ID || resp.OngoingTxnProducerEpoch != first.who.Epoch ||
				last.who.ID != first.who.ID || last.who.Epoch != first.who.Epoch+1+round {
				t.Fatalf("kept: %+v, the first was %+v", resp, first.who)
			}
			if d := c.describedTxn("t"); d.State != "Ongoing" || d.TimeoutMillis != math.MaxInt32 || d.ProducerEpoch != first.who.Epoch {
				t.Errorf("described as %+v", d)
			}
			for _, old := range []*txnClient{first, before} {
				if old == nil {
					continue
				}
				old.client = c
				if got := old.write(12, "out", 0, "zombie"); got != kerr.InvalidProducerEpoch.Code {
					t.Errorf("a client from before writes: error %d", got)
				}
				if got := old.end(!commit); got != kerr.ProducerFenced.Code {
					t.Errorf("a client from before ends it: error %d", got)
				}
			}
			if got := last.write(12, "out", 0, "more"); got != kerr.InvalidTxnState.Code {
				t.Errorf("a write to a transaction that was kept: error %d", got)
			}
		}
		if got := b.stable("out", 0); got != 0 {
			t.Errorf("last stable offset is %d before the end", got)
		}
		epoch := last.who.Epoch
		if got := last.end(commit); got != 0 || last.who.Epoch != epoch+1 {
			t.Fatalf("end: error %d, %+v", got, last.who)
		}
		waitFor(t, func() bool { return b.stable("out", 0) == 2 })
		if got := last.write(12, "out", 0, "b"); got != 0 {
			t.Errorf("write in the next transaction: error %d", got)
		}
		if got := last.end(true); got != 0 {
			t.Errorf("end of the next transaction: error %d", got)
		}
		waitFor(t, func() bool { return b.stable("out", 0) == 4 })
		checkOutcome(t, c, commit)
		b.abandon()
	}
}

// checkOutcome reads what was committed.
func checkOutcome(t *testing.T, c *client, commit bool) {
	t.Helper()
	var all []string
	aborted := 0
	for len(all) < 4 { // batches of several segments
		r := fetchRequest("out", 0, int64(len(all)), 0)
		r.IsolationLevel = 1
		got := ask[*kmsg.FetchResponse](c, 12, r).Topics[0].Partitions[0]
		more := values(t, got.RecordBatches, int64(len(all)))
		if len(more) == 0 {
			t.Fatalf("nothing at offset %d: %+v", len(all), got)
		}
		all, aborted = append(all, more...), aborted+len(got.AbortedTransactions)
	}
	if all[0] != "a" || all[2] != "b" || (aborted == 0) != commit {
		t.Errorf("commit %v: records %q, %d aborted", commit, all, aborted)
	}
}

// TestTwoPhaseSetting: without it there is no version 6 and no transaction without timeout.
func TestTwoPhaseSetting(t *testing.T) {
	for setting, want := range map[string]int16{"false": 5, "true": 6} {
		b := startBroker(t, t.TempDir(), twoPhaseKey, setting)
		if got := rangesOf(t, b.Addr())[22]; got != [2]int16{0, want} {
			t.Errorf("%s: versions %v", setting, got)
		}
	}
	b := startBroker(t, t.TempDir())
	c := b.dial()
	r := initTwoPhase("t", false)
	r.Version = twophase.Version
	c.send(r)
	if n, err := c.conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("version 6 without the setting: %d bytes, %v", n, err)
	}
	reply := b.Handle(t.Context(), &wire.Request{Key: 22, Version: twophase.Version, Body: r, Wake: func() {}})
	var p wire.Payload
	reply.Body.Encode(&p, twophase.Version)
	if got := int16(binary.BigEndian.Uint16(p.Buf[4:])); got != kerr.TransactionalIDAuthorizationFailed.Code {
		t.Errorf("two-phase commit without the setting: error %d", got)
	}
}

// TestTwoPhaseAsKafka compares answers with those of Apache Kafka with transaction.two.phase.commit.enable and unstable.api.versions.enable
// (testdata/twophase, written by TestRecordTwoPhase). Kafka 4.4 does not keep transactions: what asks for that deviates.
func TestTwoPhaseAsKafka(t *testing.T) {
	settings := quickGroups(twoPhaseKey, "true")
	deviates := func(_, step string) bool { return strings.Contains(step, "keep") }
	if n := sameAnswers(t, filepath.Join("testdata", "twophase", "kafka-4.4.0.txt"), settings, playTwoPhase, deviates); n < 25 {
		t.Errorf("only %d answers", n)
	}
}

// TestRecordTwoPhase writes the answers of another broker down.
func TestRecordTwoPhase(t *testing.T) { writeDown(t, "twophase", playTwoPhase) }

func playTwoPhase(t *testing.T, addr string, ranges map[int16][2]int16) []played {
	p := &txnPlay{play: newPlay(t, addr, ranges), ids: map[int64]string{}}
	p.renamed, p.learn = p.rename, p.remember
	p.prepare()
	p.out = nil // testdata/transactions has them
	for _, timeout := range []int32{0, -1, 60_000, 900_001, math.MaxInt32} {
		for _, what := range []string{"timeout", "timeout, two phases", "timeout, keep", "timeout, two phases, keep"} {
			r := initTwoPhase("play-refused", strings.Contains(what, "keep"))
			p.learn = p.remember
			if r.KeepPreparedTxn {
				*r.TransactionalID, p.learn = "play-none", nil // it gets a producer that Kafka does not give
			}
			r.Enable2PC, r.TransactionTimeoutMillis = strings.Contains(what, "two"), timeout
			p.settled(what, twophase.Version, r)
		}
	}
	p.learn = p.remember
	r := initTwoPhase("", false)
	p.settled("empty id", twophase.Version, r)
	r.TransactionalID = nil
	p.settled("no id", twophase.Version, r)
	r = initTwoPhase("play-refused", false)
	r.ProducerID = 7
	p.settled("no epoch", twophase.Version, r)
	p.twoPhaseLife()
	return p.out
}

// twoPhaseLife takes one id through transactions without timeout.
func (p *txnPlay) twoPhaseLife() {
	p.txn = "play-life-0"
	describe := func(what string) {
		d := kmsg.NewPtrDescribeTransactionsRequest()
		d.TransactionalIDs = []string{p.txn}
		p.step(what, 0, d)
	}
	next := func(what string, r *twophase.Request) {
		resp := p.settled(what, twophase.Version, r).(*twophase.Response)
		p.who = batch.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
	}
	next("first", initTwoPhase(p.txn, false))
	describe("empty")
	p.settled("begin", 5, p.addRequest(p.who, "play/0"))
	describe("begun")
	old := p.who
	next("another aborts", initTwoPhase(p.txn, false))
	describe("aborted")
	p.settled("fenced", 5, p.endRequest(old, true))
	p.settled("begin", 5, p.addRequest(p.who, "play/0"))
	end := p.settled("commit", 5, p.endRequest(p.who, true)).(*kmsg.EndTxnResponse)
	p.who = batch.Producer{ID: end.ProducerID, Epoch: end.ProducerEpoch}
	again := initTwoPhase(p.txn, false)
	again.ProducerID, again.ProducerEpoch = p.who.ID, p.who.Epoch
	next("as the one before", again)
	plain := initTwoPhase(p.txn, false)
	plain.Enable2PC, plain.TransactionTimeoutMillis = false, 60_000
	next("with timeout", plain)
	describe("with timeout")
}
