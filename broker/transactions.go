package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/txn"
)

// The transaction coordinator: package txn with clocks, locks, goroutines and __transaction_state around it.
//
//   - A transactional id lives in the partition of __transaction_state that it hashes to, in memory as a txn.Txn behind a lock of its own.
//   - An event runs on the goroutine of the connection that brings it. What it writes is appended under the id's lock; when the high watermark has
//     passed that, the coordinator's goroutine tells the Txn, which answers and asks for markers.
//   - Markers are appended under the id's lock too, and followed like any write. Those of __consumer_offsets are told to the groups when
//     they are durable, before they count as written.
//   - Producers write their batches, and groups the offsets of a transaction, under the id's lock while the Txn admits them: none comes after its
//     marker. No request between brokers and no guard in the log is needed for that while the coordinator and all partitions are here.

// txnTopic is where transactional ids are stored.
const txnTopic = "__transaction_state"

// markerRetry is how long after a failure a marker is tried again.
const markerRetry = 200 * time.Millisecond

// txnCoordinator is the transaction coordinator of a broker.
type txnCoordinator struct {
	broker *Broker
	conf   txn.Config
	stateLoop
	stateTopic[txnPartition]
}

func newTxnCoordinator(b *Broker) *txnCoordinator {
	c := &txnCoordinator{broker: b, conf: txnConfig(b.conf)}
	c.init()
	c.of, c.name, c.shape, c.taken, c.left = b, txnTopic, c.newTopic, c.adopt, c.forget
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

// open starts the goroutine and, when there is a topic from before, begins to read it.
func (c *txnCoordinator) open() {
	c.running.Go(c.run)
	c.reopen()
}

// close ends the goroutines. Nothing is answered after it.
func (c *txnCoordinator) close() {
	c.starting.Lock()
	first := c.closing.CompareAndSwap(false, true)
	c.starting.Unlock()
	if first {
		close(c.stop)
	}
	c.running.Wait()
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

// adopt makes the partitions of the topic the coordinator's, and begins to load what is in them. starting must be held.
func (c *txnCoordinator) adopt(t *topic) {
	all := *t.partitions.Load()
	parts := make([]*txnPartition, len(all))
	var full []*txnPartition
	for i, part := range all {
		p := &txnPartition{c: c, slots: make(map[string]*txnSlot)}
		p.broker, p.loop, p.part = c.broker, &c.stateLoop, part
		parts[i] = p
		if p.begin() {
			full = append(full, p)
		}
	}
	c.parts.Store(&parts)
	if len(full) > 0 && !c.closing.Load() {
		c.running.Go(func() { c.loadAll(full) })
	}
}

// forget lets go of all ids: __transaction_state was deleted.
func (c *txnCoordinator) forget() {
	parts := c.parts.Swap(nil)
	if parts == nil {
		return
	}
	for _, p := range *parts {
		p.state.Store(stateFailed)
		for _, s := range p.list() {
			s.mu.Lock()
			if !s.dropped {
				s.deliver(s.t.Unload(c.instant()))
				s.drop()
			}
			s.mu.Unlock()
		}
	}
}

// find returns the partition that an id lives in: NOT_COORDINATOR when that is nowhere, COORDINATOR_LOAD_IN_PROGRESS while it is read.
func (c *txnCoordinator) find(id string) (*txnPartition, *kerr.Error) {
	p := c.at(id)
	if p == nil {
		return nil, kerr.NotCoordinator
	}
	return p, p.usable()
}

// topicDeleted lets go of the coordinator's own topic when that was deleted. Markers to deleted topics are given up when they are tried.
func (c *txnCoordinator) topicDeleted(name string) {
	if name == txnTopic {
		c.forget()
	}
}
