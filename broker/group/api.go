package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config is the broker's settings for groups. It is shared and not changed while groups use it.
type Config struct {
	MinSession   time.Duration // group.min.session.timeout.ms
	MaxSession   time.Duration // group.max.session.timeout.ms
	InitialDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize      int           // group.max.size
	Retention    time.Duration // offsets.retention.minutes
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

// Caller is who sent a JoinGroup.
type Caller struct {
	ClientID string
	Host     string // as Kafka shows it: "/127.0.0.1"
	// Unique makes new member ids unique; a new one for every request.
	Unique string
}

// Reply is one answer. A Waiter gets exactly one, unless it was cancelled before.
type Reply struct {
	To Waiter
	// Response is the answer to JoinGroup, SyncGroup, Heartbeat and LeaveGroup; nil for the others, whose answer is Err.
	Response kmsg.Response
	// Err is nil when it was done.
	Err *kerr.Error
}

// Record is a record of __consumer_offsets. A nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// Write is what is to be appended, as one batch. Seq grows by one with each of a group.
type Write struct {
	Seq     uint64
	Records []Record
	// Producer is whose transaction the records are of; nil: of none.
	Producer *Producer
}

// Effects is what an event asks for.
type Effects struct {
	Replies []Reply
	Writes  []Write
}

// Offset is a committed offset.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1: none
	Metadata    string
	Committed   int64 // milliseconds since 1970
	Expires     int64 // the commit's own expiry in milliseconds since 1970, -1: none
}

// Partition names a partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

// PartitionOffset is an offset to be committed.
type PartitionOffset struct {
	Partition
	Offset
}

// Commit is an OffsetCommit as far as the group is concerned.
type Commit struct {
	MemberID   string
	InstanceID *string
	Generation int32
	Version    int16 // of the request
	Offsets    []PartitionOffset
}

// State of a group.
type State int8

// States as Kafka names them.
const (
	// Dead is a group that does not exist: not yet, or not any more.
	Dead State = iota
	// Empty has no members, but may have offsets.
	Empty
	// PreparingRebalance waits for members to join.
	PreparingRebalance
	// CompletingRebalance waits for the leader's assignment.
	CompletingRebalance
	// Stable has members with assignments.
	Stable
)

// String is the name that DescribeGroups and ListGroups use.
func (s State) String() string {
	switch s {
	case Empty:
		return "Empty"
	case PreparingRebalance:
		return "PreparingRebalance"
	case CompletingRebalance:
		return "CompletingRebalance"
	case Stable:
		return "Stable"
	}
	return "Dead"
}

// step is one event: its time and what it causes.
type step struct {
	Instant
	Effects
	seq uint64 // of the write that is reported
}

func (s *step) reply(to Waiter, r kmsg.Response) {
	if to != nil {
		s.Replies = append(s.Replies, Reply{To: to, Response: r})
	}
}

// done answers a request whose only answer is an error or none.
func (s *step) done(to Waiter, err *kerr.Error) {
	if to != nil {
		s.Replies = append(s.Replies, Reply{To: to, Err: err})
	}
}

// code is the number of an error, 0 for nil.
func code(err *kerr.Error) int16 {
	if err == nil {
		return 0
	}
	return err.Code
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
