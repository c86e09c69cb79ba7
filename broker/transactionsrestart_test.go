package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestEndUnheardBeforeRestart: the broker goes down with the answer to an EndTxn. Whatever the producer does then, it is not fenced: it ends again, or
// asks for its next epoch with the one that it had. One that another took the place of is.
func TestEndUnheardBeforeRestart(t *testing.T) {
	for _, commit := range []bool{true, false} {
		dir := t.TempDir()
		b, c := txnBroker(t, dir)
		c.createTopic("out")
		p := c.initTxn("t", true)
		if got := p.write(12, "out", 0, "a"); got != 0 {
			t.Fatalf("write: error %d", got)
		}
		before := p.who
		if got := p.end(commit); got != 0 {
			t.Fatalf("end: error %d", got)
		}
		heard := p.who
		b.abandon()

		b, c = txnBroker(t, dir)
		p.client, p.who = c, before
		if got := p.end(commit); got != 0 || p.who != heard {
			t.Errorf("end again: error %d, producer %+v, want %+v", got, p.who, heard)
		}
		p.who = before
		if got := p.recover(); got != 0 || p.who != heard {
			t.Errorf("init with the epoch from before: error %d, producer %+v, want %+v", got, p.who, heard)
		}
		if got := p.write(12, "out", 0, "b"); got != 0 {
			t.Errorf("write after the restart: error %d", got)
		}
		if got := p.end(true); got != 0 {
			t.Errorf("end after the restart: error %d", got)
		}
		old := p.who
		c.initTxn("t", true)
		b.abandon()

		b, c = txnBroker(t, dir)
		p.client, p.who = c, old
		if got := p.recover(); got != kerr.ProducerFenced.Code {
			t.Errorf("init of a producer that another took the place of: error %d", got)
		}
		b.abandon()
	}
}

// recover asks for the producer's next epoch (KIP-360).
func (p *txnClient) recover() int16 {
	p.t.Helper()
	return retried(p.t, func() int16 {
		r := idRequest(&p.id, p.who.ID, p.who.Epoch)
		r.TransactionTimeoutMillis = 60_000
		resp := ask[*kmsg.InitProducerIDResponse](p.client, 5, r)
		if resp.ErrorCode == 0 {
			p.who.ID, p.who.Epoch = resp.ProducerID, resp.ProducerEpoch
		}
		return resp.ErrorCode
	})
}
