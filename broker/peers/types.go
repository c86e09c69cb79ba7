package peers

import (
	"errors"
	"slices"

	"gregor/broker/meta"
)

// Broker is a live broker as it registered.
type Broker struct {
	ID int32
	// Epoch is the czxid of its registration. Brokers refuse requests with an older one.
	Epoch     int64
	Endpoints []meta.Endpoint
	Rack      string // "" for none
}

func (b *Broker) same(other *Broker) bool {
	return b.ID == other.ID && b.Epoch == other.Epoch && b.Rack == other.Rack && slices.Equal(b.Endpoints, other.Endpoints)
}

// Topic is a topic with all or some of its partitions. What is handed in is not changed and must not be changed afterwards.
type Topic struct {
	Name string
	ID   [16]byte // all zero for none, as in clusters from before Kafka 2.8
	// Partitions are in any order.
	Partitions []Partition
}

// Partition is the state of one partition, as ZooKeeper has it.
type Partition struct {
	Number int32
	// ControllerEpoch is that of the controller that wrote the state.
	ControllerEpoch int32
	Leader          int32 // -1 for none
	LeaderEpoch     int32 // below 0: there is no state yet
	ISR             []int32
	// Version is that of the state's node: replicas that change the node themselves need it.
	Version  int32
	Replicas []int32
	// Adding and Removing are those of a reassignment.
	Adding, Removing []int32
	// Failed are replicas that are offline although their broker lives: in log directories that failed.
	Failed []int32
}

// What takes the place of leader and leader epoch while a topic is being deleted (Kafka's LeaderAndIsr).
const (
	leaderDuringDelete = -2
	epochDuringDelete  = -2
	noEpoch            = -1
)

// Codes of Kafka that a controller cares about.
const (
	codeUnsupportedVersion   = 35
	codeStaleControllerEpoch = 11
)

// PartitionError is what a broker answers about one partition; Code 0 is none.
type PartitionError struct {
	Topic     string
	Partition int32
	Code      int16
}

// Failed says whether the broker could not do what it was told. STALE_CONTROLLER_EPOCH of a partition is how brokers, Kafka's too, answer what they have
// been told before, as each new controller tells everything.
func (e PartitionError) Failed() bool { return e.Code != 0 && e.Code != codeStaleControllerEpoch }

// Answer is a broker's answer to one request.
type Answer struct {
	Broker int32
	Epoch  int64 // of the broker's registration
	Key    int16 // of the request: 4 LeaderAndIsr, 5 StopReplica, 6 UpdateMetadata
	Code   int16 // for the whole request, 0 for none
	// Partitions are those that were answered for, with and without errors. UpdateMetadata has none.
	Partitions []PartitionError
}

// SeatLost says that the broker has heard of a later controller (STALE_CONTROLLER_EPOCH).
func (a *Answer) SeatLost() bool { return a.Code == codeStaleControllerEpoch }

// Stopped is the outcome of a Stop or Delete at one broker.
type Stopped struct {
	Broker int32
	// Code is for the whole request, 0 for none. Partitions are those of this Stop or Delete that were answered for.
	Code       int16
	Partitions []PartitionError
	// Err is ErrLeft or ErrClosed when there was no answer.
	Err error
}

// Errors of this package, matched with errors.Is.
var (
	// ErrLeft says that the broker left before it answered, or is not live.
	ErrLeft = errors.New("broker is not live any more")
	// ErrClosed is what is left undone by Close.
	ErrClosed = errors.New("closed")
	// ErrNoListener is a broker without a listener that we can use.
	ErrNoListener = errors.New("no usable PLAINTEXT listener")
	// ErrUnsupported is a request that has no version which both sides know.
	ErrUnsupported = errors.New("no common version of the request")
	// ErrProtocol is an answer that does not follow the protocol.
	ErrProtocol = errors.New("answer does not follow the protocol")
)
