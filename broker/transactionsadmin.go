package broker

import (
	"context"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/txn"
	"gregor/wire"
)

// DescribeTransactions (key 65), version 0, and ListTransactions (66), versions 0 to 2. The second filters by state, producer, age (version 1) and
// a pattern for the id (version 2).

func (b *Broker) handleDescribeTransactions(_ context.Context, _ *wire.Request, r *kmsg.DescribeTransactionsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	resp.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, 0, len(r.TransactionalIDs))
	for _, id := range r.TransactionalIDs {
		out := kmsg.NewDescribeTransactionsResponseTransactionState()
		out.TransactionalID = id
		out.Topics = []kmsg.DescribeTransactionsResponseTransactionStateTopic{}
		p, err := b.txns.find(id)
		switch {
		case id == "":
			out.ErrorCode = kerr.InvalidRequest.Code
		case err != nil:
			out.ErrorCode = err.Code
		case !p.read(id, func(t *txn.Txn) { out = t.Describe() }), out.State == txn.Dead.String():
			out = kmsg.NewDescribeTransactionsResponseTransactionState()
			out.TransactionalID, out.ErrorCode = id, kerr.TransactionalIDNotFound.Code
			out.Topics = []kmsg.DescribeTransactionsResponseTransactionStateTopic{}
		}
		resp.TransactionStates = append(resp.TransactionStates, out)
	}
	return resp
}

func (b *Broker) handleListTransactions(_ context.Context, _ *wire.Request, r *kmsg.ListTransactionsRequest) kmsg.Response {
	resp := kmsg.NewPtrListTransactionsResponse()
	resp.UnknownStateFilters = []string{}
	resp.TransactionStates = []kmsg.ListTransactionsResponseTransactionState{}
	f, err := newTxnFilter(r, b.now().UnixMilli())
	if err != nil {
		resp.ErrorCode = err.Code
		return resp
	}
	resp.UnknownStateFilters = append(resp.UnknownStateFilters, f.unknown...)
	for _, p := range b.txns.all() {
		if err := p.usable(); err != nil {
			// A list without the ids of that partition would look whole.
			resp.ErrorCode = err.Code
			resp.TransactionStates = []kmsg.ListTransactionsResponseTransactionState{}
			return resp
		}
		for _, s := range p.list() {
			p.read(s.id, func(t *txn.Txn) {
				if f.wants(t) {
					one := kmsg.NewListTransactionsResponseTransactionState()
					one.TransactionalID, one.ProducerID, one.TransactionState = t.ID(), t.Producer().ID, t.State().String()
					resp.TransactionStates = append(resp.TransactionStates, one)
				}
			})
		}
	}
	slices.SortFunc(resp.TransactionStates, func(x, y kmsg.ListTransactionsResponseTransactionState) int {
		if x.TransactionalID < y.TransactionalID {
			return -1
		}
		return 1
	})
	return resp
}

// txnFilter is what a ListTransactions asks for.
type txnFilter struct {
	states    []txn.State
	byState   bool
	unknown   []string // names that are no states
	producers []int64
	startedBy int64 // milliseconds since 1970, -1 does not matter
	pattern   *regexp.Regexp
}

func newTxnFilter(r *kmsg.ListTransactionsRequest, now int64) (*txnFilter, *kerr.Error) {
	f := &txnFilter{byState: len(r.StateFilters) > 0, producers: r.ProducerIDFilters, startedBy: -1}
	for _, name := range r.StateFilters {
		all := txn.States()
		if i := slices.IndexFunc(all, func(s txn.State) bool { return s.String() == name }); i >= 0 {
			f.states = append(f.states, all[i])
		} else {
			f.unknown = append(f.unknown, name)
		}
	}
	if r.Version >= 1 && r.DurationFilterMillis >= 0 {
		f.startedBy = now - r.DurationFilterMillis
	}
	if p := r.TransactionalIDPattern; r.Version >= 2 && p != nil && *p != "" {
		// Kafka's patterns have the same syntax, RE2, and must match the whole id.
		re, err := regexp.Compile(`^(?:` + *p + `)$`)
		if err != nil {
			return nil, kerr.InvalidRegularExpression
		}
		f.pattern = re
	}
	return f, nil
}

func (f *txnFilter) wants(t *txn.Txn) bool {
	started, _ := t.RunsSince()
	switch {
	case t.State() == txn.Dead,
		len(f.producers) > 0 && !slices.Contains(f.producers, t.Producer().ID),
		f.byState && !slices.Contains(f.states, t.State()),
		f.startedBy >= 0 && started >= f.startedBy,
		f.pattern != nil && !f.pattern.MatchString(t.ID()):
		return false
	}
	return true
}
