package txn

import "github.com/twmb/franz-go/pkg/kmsg"

// Producer is the id's present producer.
func (t *Txn) Producer() Producer { return t.meta.producer }

// RunsSince is when the transaction began, in milliseconds since 1970; ok is false when there is none.
func (t *Txn) RunsSince() (millis int64, ok bool) {
	return t.meta.started, t.meta.state == Ongoing || t.meta.state.prepared()
}

// Describe is the id as DescribeTransactions shows it.
func (t *Txn) Describe() kmsg.DescribeTransactionsResponseTransactionState {
	out := kmsg.NewDescribeTransactionsResponseTransactionState()
	out.TransactionalID, out.State, out.TimeoutMillis = t.id, t.meta.state.String(), t.meta.timeout
	out.StartTimestamp, out.ProducerID, out.ProducerEpoch = t.meta.started, t.meta.producer.ID, t.meta.producer.Epoch
	out.Topics = []kmsg.DescribeTransactionsResponseTransactionStateTopic{}
	for _, p := range t.meta.partitions {
		n := len(out.Topics)
		if n == 0 || out.Topics[n-1].Topic != p.Topic {
			topic := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			topic.Topic = p.Topic
			out.Topics = append(out.Topics, topic)
			n++
		}
		out.Topics[n-1].Partitions = append(out.Topics[n-1].Partitions, p.Number)
	}
	return out
}
