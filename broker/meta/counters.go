package meta

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"
)

// A bucket beside the nodes has counters of 64 bits: the last birth under bornKey, and under a parent's path the next number of its sequential nodes.
const bornKey = "born"

func countersName() []byte { return []byte("counters") }

func counter(bucket *bbolt.Bucket, key string) (n int64, ok bool) {
	if bucket == nil {
		return 0, false
	}
	value := bucket.Get([]byte(key))
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value)), true
}

func putCounter(bucket *bbolt.Bucket, key string, n int64) error {
	return bucket.Put([]byte(key), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// sequenceSize is how many digits ZooKeeper puts behind the name of a sequential node.
const sequenceSize = 10

func sequenceText(n int64) string { return fmt.Sprintf("%0*d", sequenceSize, n) }

// sequence is the path that a sequential node gets. A parent that has no counter yet goes on after the largest number among its children.
func (s *stage) sequence(prefix string) string {
	parent, _ := split(prefix)
	next, ok := counter(s.counters, parent)
	if !ok {
		s.persistentChildren(parent, func(name string) bool {
			if n, err := strconv.ParseUint(name[max(0, len(name)-sequenceSize):], 10, 31); err == nil && len(name) >= sequenceSize {
				next = max(next, int64(n)+1)
			}
			return true
		})
	}
	return prefix + sequenceText(next)
}

// nextSequence moves the counter of a parent behind a node that is made.
func (s *stage) nextSequence(path string) error {
	parent, _ := split(path)
	n, err := strconv.ParseInt(path[len(path)-sequenceSize:], 10, 64)
	if err != nil {
		return err
	}
	return putCounter(s.counters, parent, n+1)
}
