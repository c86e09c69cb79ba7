package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/peers"
	"gregor/broker/txn"
)

// Writes to partitions led here of transactions that another broker coordinates (KIP-890).
//
//   - A batch passes when the partition's log has an open transaction of its producer and epoch. The first one of a transaction does not: the
//     coordinator is asked by AddPartitionsToTxn if the partition is in the transaction, or told to put it in for clients of transaction version 2.
//   - A marker may overtake the answer. So there is a verification for the producer in the partition from before the question until the batch is
//     written; a marker ends it, and a batch whose verification has ended is one that the client must send again.
//   - Offsets of a group are such a write, to the group's partition.

// verifications are those of a partition.
type verifications struct {
	mu sync.Mutex // held over the append of a marker, and of what needs a verification
	by map[int64]*verification
}

// verification is of one producer.
type verification struct{ users int }

// begin is to be called before the coordinator is asked.
func (v *verifications) begin(producer int64) *verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.by[producer]
	if one == nil {
		one = new(verification)
		if v.by == nil {
			v.by = make(map[int64]*verification)
		}
		v.by[producer] = one
	}
	one.users++
	return one
}

// end is to be called once for each begin.
func (v *verifications) end(producer int64, one *verification) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if one.users--; one.users == 0 && v.by[producer] == one {
		delete(v.by, producer)
	}
}

// away is a write of a transaction that another broker coordinates. It is for one goroutine at a time.
type away struct {
	producer txn.Producer
	asked    map[*partition]*verification
	refused  map[txn.Partition]*kerr.Error
}

// missing lists the partitions that the coordinator must be asked about.
func (a *away) missing(b *Broker, all []txn.Partition) (missing []txn.Partition) {
	for _, at := range all {
		if p := b.partitionAt(at); p != nil && p.offline() == nil && !p.log.HasOpenTxn(a.producer.ID, a.producer.Epoch) {
			missing = append(missing, at)
		}
	}
	return missing
}

// ask asks about partitions and calls done on another goroutine when the answer is there.
func (a *away) ask(b *Broker, id string, all []txn.Partition, add bool, done func()) {
	a.asked = make(map[*partition]*verification, len(all))
	for _, at := range all {
		if p := b.partitionAt(at); p != nil && a.asked[p] == nil {
			a.asked[p] = p.verifications.begin(a.producer.ID)
		}
	}
	b.txns.async(func() {
		a.refused = b.txns.askAbout(id, a.producer, all, add)
		done()
	})
}

// enter locks a partition for a write of the transaction, against its marker, or says why there may be none.
func (a *away) enter(p *partition) (leave func(), refused *kerr.Error) {
	if refused := a.refused[txn.Partition{Topic: p.topic.name, Number: p.num}]; refused != nil {
		return nil, refused
	}
	v := &p.verifications
	v.mu.Lock()
	if one := a.asked[p]; one != nil && v.by[a.producer.ID] == one || p.log.HasOpenTxn(a.producer.ID, a.producer.Epoch) {
		return v.mu.Unlock, nil
	}
	v.mu.Unlock()
	return nil, kerr.CoordinatorNotAvailable // it was ended meanwhile: the next try is told
}

// release ends the verifications.
func (a *away) release() {
	for p, one := range a.asked {
		p.verifications.end(a.producer.ID, one)
	}
	a.asked = nil
}

// askAbout asks the broker that coordinates a transactional id if partitions are in its open transaction, or to put them in. What is in the result may
// not be written to.
func (c *txnCoordinator) askAbout(id string, who txn.Producer, all []txn.Partition, add bool) map[txn.Partition]*kerr.Error {
	resp, err := c.requestAbout(id, addRequest(id, who, all, !add))
	refused := make(map[txn.Partition]*kerr.Error)
	rest := kerr.CoordinatorNotAvailable
	switch {
	case errors.Is(err, peers.ErrUnsupported) && !add:
		return nil // a coordinator from before that, which no broker asks
	case err != nil:
		if c.broker.txnAlarm.due() {
			c.broker.logger.Warn("transaction coordinator was not reached", "transactional.id", id, "error", err)
		}
	case resp.ErrorCode == kerr.ClusterAuthorizationFailed.Code:
		rest = kerr.InvalidTxnState
	case resp.ErrorCode != 0:
		rest = kerr.TypedErrorForCode(resp.ErrorCode)
	}
	for _, at := range all {
		refused[at] = rest
	}
	if err != nil {
		return refused
	}
	for i := range resp.Transactions {
		eachPartition(&resp.Transactions[i], func(at txn.Partition, code *int16) {
			if refused[at] = kerr.TypedErrorForCode(*code); refused[at] == nil {
				delete(refused, at)
			}
		})
	}
	return refused
}

// requestAbout sends a request to the coordinator of a transactional id.
func (c *txnCoordinator) requestAbout(id string, req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, askTimeout)
	defer cancel()
	if c.broker.topics.name(c.name) == nil {
		return nil, fmt.Errorf("there is no topic %s: %w", c.name, kerr.CoordinatorNotAvailable)
	}
	if err := c.ensure(ctx); err != nil {
		return nil, err
	}
	to, err := c.coordinates(id, c.broker.view.Load())
	if err != nil {
		return nil, err
	}
	if to == c.broker.nodeID {
		return nil, fmt.Errorf("it is this broker now: %w", kerr.CoordinatorLoadInProgress)
	}
	resp, err := c.broker.others.Request(ctx, to, req)
	if err != nil {
		return nil, err
	}
	if r, ok := resp.(*kmsg.AddPartitionsToTxnResponse); ok {
		return r, nil
	}
	return nil, fmt.Errorf("broker %d answers with a %T", to, resp)
}

func addRequest(id string, who txn.Producer, all []txn.Partition, verify bool) *kmsg.AddPartitionsToTxnRequest {
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = id, who.ID, who.Epoch, verify
	index := make(map[string]int)
	for _, at := range all {
		n, there := index[at.Topic]
		if !there {
			n = len(one.Topics)
			index[at.Topic] = n
			one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: at.Topic})
		}
		one.Topics[n].Partitions = append(one.Topics[n].Partitions, at.Number)
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Transactions = append(req.Transactions, one)
	return req
}
