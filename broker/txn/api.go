package txn

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Config is the broker's settings for transactions. It is shared and not changed while machines use it.
type Config struct {
	MaxTimeout  time.Duration // transaction.max.timeout.ms
	AbortEvery  time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	ExpireAfter time.Duration // transactional.id.expiration.ms
	ExpireEvery time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
	// Patience is how long a request waits for a transition to end before it is answered CONCURRENT_TRANSACTIONS.
	Patience time.Duration
	// MarkerRetry is how long after a failure a marker is tried again.
	MarkerRetry time.Duration
}

// Instant is the time of an event on both clocks.
type Instant struct {
	// Timer is a monotonic clock with any origin. Timers run on it.
	Timer time.Duration
	// Wall is in milliseconds since 1970. It goes into records.
	Wall int64
}

// Waiter is a request that waits for its answer: anything comparable that its driver knows it by. Nil is nobody.
type Waiter any

// Producer is a producer id with its epoch.
type Producer struct {
	ID    int64
	Epoch int16
}

// none is no producer, as it stands in requests and answers.
func none() Producer { return Producer{-1, -1} }

// Reply is one answer. A Waiter gets exactly one.
type Reply struct {
	To Waiter
	// Err is nil when it was done.
	Err *kerr.Error
	// Producer is what InitProducerId and EndTxn tell; -1 and -1 with an error.
	Producer Producer
	// Ongoing is the producer of the transaction that an Init kept, nil when there was none.
	Ongoing *Producer
}

// Record is a record of __transaction_state. A nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// Write is what is to be appended, as one batch. Seq grows by one with each of a Txn.
type Write struct {
	Seq     uint64
	Records []Record
}

// Partition names a partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

func comparePartitions(a, b Partition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
}

// Markers are markers of one transaction that are to be written, one to each partition.
type Markers struct {
	// Round is to be given back with Marked.
	Round    uint64
	Producer Producer
	Commit   bool
	// Version is the transaction version of the client (KIP-890).
	Version    int16
	Partitions []Partition
}

// Effects is what an event asks for.
type Effects struct {
	Replies []Reply
	Writes  []Write
	Markers []Markers
}

// State of a transactional id.
type State int8

// States as __transaction_state numbers them.
const (
	// Empty has a producer and no transaction yet.
	Empty State = iota
	// Ongoing has partitions with open transactions.
	Ongoing
	// PrepareCommit is decided; markers are being written.
	PrepareCommit
	// PrepareAbort is decided; markers are being written.
	PrepareAbort
	// CompleteCommit has all markers written.
	CompleteCommit
	// CompleteAbort has all markers written.
	CompleteAbort
	// Dead does not exist, or not any more.
	Dead
)

// States lists what ListTransactions may be asked for, in Kafka's order.
func States() []State {
	return []State{Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead}
}

// String is the name that DescribeTransactions and ListTransactions use.
func (s State) String() string {
	switch s {
	case Empty:
		return "Empty"
	case Ongoing:
		return "Ongoing"
	case PrepareCommit:
		return "PrepareCommit"
	case PrepareAbort:
		return "PrepareAbort"
	case CompleteCommit:
		return "CompleteCommit"
	case CompleteAbort:
		return "CompleteAbort"
	}
	return "Dead"
}

func (s State) prepared() bool { return s == PrepareCommit || s == PrepareAbort }

// step is one event: its time and what it causes.
type step struct {
	Instant
	Effects
}

func (s *step) done(to Waiter, p Producer) {
	if to != nil {
		s.Replies = append(s.Replies, Reply{To: to, Producer: p})
	}
}

func (s *step) refuse(to Waiter, err *kerr.Error) {
	if to != nil {
		s.Replies = append(s.Replies, Reply{To: to, Err: err, Producer: none()})
	}
}

// union is a sorted list of all partitions of two lists, the first of which is sorted. Neither is changed.
func union(sorted, more []Partition) []Partition {
	all := append(slices.Clone(sorted), more...)
	slices.SortFunc(all, comparePartitions)
	return slices.Compact(all)
}

func contains(sorted []Partition, p Partition) bool {
	_, ok := slices.BinarySearchFunc(sorted, p, comparePartitions)
	return ok
}
