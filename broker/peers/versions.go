package peers

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys of the requests between brokers.
const (
	keyLeaderAndISR       = 4
	keyStopReplica        = 5
	keyUpdateMetadata     = 6
	keyControlledShutdown = 7
	keyAPIVersions        = 18
)

// Versions are the lowest and highest version of a request that brokers of a ZooKeeper cluster send each other. The last such Kafka is 3.9.
func Versions(req kmsg.Request) (low, high int16) {
	switch req.Key() {
	case keyLeaderAndISR:
		return 0, 7
	case keyStopReplica:
		return 0, 4
	case keyUpdateMetadata:
		return 0, 8
	case keyControlledShutdown:
		return 0, 3
	case int16(kmsg.WriteTxnMarkers):
		return 0, 1
	case int16(kmsg.AddPartitionsToTxn):
		return 4, 5 // those below are what clients send
	}
	return 0, req.MaxVersion()
}

// span is the versions of one key that a broker knows.
type span struct{ low, high int16 }

// choose takes the highest version within what both know and highest allows.
func choose(req kmsg.Request, theirs map[int16]span, highest map[int16]int16) (int16, error) {
	low, high := Versions(req)
	if limit, ok := highest[req.Key()]; ok {
		high = min(high, limit)
	}
	s, ok := theirs[req.Key()]
	if !ok {
		return 0, fmt.Errorf("%w: the broker does not know %s; is it one of a ZooKeeper cluster?", ErrUnsupported, kmsg.NameForKey(req.Key()))
	}
	v := min(high, s.high)
	if v < max(low, s.low) {
		return 0, fmt.Errorf("%w: %s %d to %d here, %d to %d there", ErrUnsupported, kmsg.NameForKey(req.Key()), low, high, s.low, s.high)
	}
	return v, nil
}
