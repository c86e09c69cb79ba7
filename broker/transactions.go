package broker

import (
	"time"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/txn"
)

// The transaction coordinator: package txn with clocks, locks, goroutines and __transaction_state around it.
//
//   - A transactional id lives in the partition of __transaction_state that it hashes to, in memory as a txn.Txn behind a lock of its own.
//   - An event runs on the goroutine of the connection that brings it. What it writes is appended under the id's lock; when the high watermark has
//     passed that, the coordinator's goroutine tells the Txn, which answers and asks for markers.
//   - Markers are appended under the id's lock too, and followed like any write; those of partitions that other brokers lead are sent there. Those of __consumer_offsets are told to the groups when
//     they are durable, before they count as written.
//   - Producers write their batches, and groups the offsets of a transaction, under the id's lock while the Txn admits them: none comes after its
//     marker. Partitions that another broker leads are kept by that broker (transactionsverify.go).

// txnTopic is where transactional ids are stored.
const txnTopic = "__transaction_state"

// markerRetry is how long after a failure a marker is tried again.
const markerRetry = 200 * time.Millisecond

// txnCoordinator is the transaction coordinator of a broker.
type txnCoordinator struct {
	broker *Broker
	conf   txn.Config
	stateLoop
	stateTopic[*txnPartition]
	markers markerQueue
}

func newTxnCoordinator(b *Broker) *txnCoordinator {
	c := &txnCoordinator{broker: b, conf: txnConfig(b.conf)}
	c.markers.waiting, c.markers.busy = make(map[int32][]sentMarker), make(map[int32]bool)
	c.stateLoop.init()
	c.stateTopic.init(b, &c.stateLoop, txnTopic, c.newTopic, func() *txnPartition {
		return &txnPartition{c: c, slots: make(map[string]*txnSlot)}
	})
	return c
}

func txnConfig(s *config.Server) txn.Config {
	return txn.Config{
		MaxTimeout:  s.TransactionMaxTimeout,
		AbortEvery:  s.TransactionAbortCheck,
		ExpireAfter: s.TransactionIDExpiration,
		ExpireEvery: s.TransactionIDCheck,
		Patience:    s.TransactionPatience,
		MarkerRetry: markerRetry,
	}
}

// open starts the goroutines, which begin to read what is there from before.
func (c *txnCoordinator) open() {
	c.running.Go(c.run)
	c.running.Go(c.carryOut)
}

// instant is now, on both clocks.
func (c *txnCoordinator) instant() txn.Instant {
	return txn.Instant{Timer: time.Since(c.start), Wall: c.broker.now().UnixMilli()}
}

// newTopic is __transaction_state as Kafka makes it.
func (c *txnCoordinator) newTopic() controller.NewTopic {
	s := c.broker.conf
	set := map[string]*string{}
	for key, value := range map[string]string{
		"cleanup.policy": "compact", "compression.type": "uncompressed", "unclean.leader.election.enable": "false",
		"segment.bytes": formatInt(int64(s.TransactionSegmentBytes)),
	} {
		set[key] = &value
	}
	return controller.NewTopic{Name: txnTopic, Partitions: s.TransactionTopicPartitions, Replication: s.TransactionReplication, Config: set}
}

// topicDeleted lets go of the coordinator's own topic when that was deleted. Markers to deleted topics are given up when they are tried.
func (c *txnCoordinator) topicDeleted(name string) {
	if name == txnTopic {
		c.stateTopic.forget()
	}
}
