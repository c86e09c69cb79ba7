package broker

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/broker/txn"
	"gregor/log/batch"
)

// twoBrokers are two brokers on trees of their own, so that tests say who leads what; the second is the neighbour, whose questions are tapped.
func twoBrokers(t *testing.T, settings ...string) (here, there *testBroker, tap *tappedAsker) {
	t.Helper()
	settings = quickGroups(append([]string{"transaction.state.log.num.partitions", "4"}, settings...)...)
	here = startBroker(t, t.TempDir(), settings...)
	there = newBroker(t, Config{}, t.TempDir(), append(settings, "broker.id", strconv.Itoa(neighbour))...)
	tap = &tappedAsker{asker: there.others}
	there.others = tap
	if err := there.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(there.stopClean)
	return here, there, tap
}

// sees puts another broker into the view.
func (b *testBroker) sees(other *testBroker, controller int32) {
	b.t.Helper()
	host, port, err := net.SplitHostPort(other.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		b.t.Fatal(err)
	}
	seen := peer{id: other.nodeID, node: meta.BrokerNode{Endpoints: []meta.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: int32(n)}}}}
	v := *b.view.Load()
	self := v.brokers[:1:1]
	if v.controller = controller; other.nodeID > b.nodeID {
		v.brokers = append(self, seen)
	} else {
		v.brokers = append([]peer{seen}, self...)
	}
	b.view.Store(&v)
}

// coordinatorEpoch is that of a producer's last marker in a partition.
func (b *testBroker) coordinatorEpoch(topic string, partition int32, producer int64) int32 {
	for _, p := range b.topics.name(topic).partition(partition).log.Producers() {
		if p.ProducerID == producer {
			return p.CoordinatorEpoch
		}
	}
	return -2
}

// TestTransactionCoordinatorMoves: an open transaction is refused while another broker coordinates it, and goes on when it is back; its markers have
// the new epoch.
func TestTransactionCoordinatorMoves(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	b.seeNeighbour()
	c.createTopic("out")
	p := c.initTxn("t", false)
	if got := p.add("out", 0); got != 0 {
		t.Fatalf("add: error %d", got)
	}
	if got := p.write(9, "out", 0, "a"); got != 0 {
		t.Fatalf("write: error %d", got)
	}
	at := int32(partitionForKey("t", 4))
	b.ledBy(txnTopic, at, neighbour, 1)
	b.settled()
	moved := kerr.NotCoordinator.Code
	if got := p.end(true); got != moved {
		t.Errorf("end: error %d", got)
	}
	if got := p.add("out", 0); got != moved {
		t.Errorf("add: error %d", got)
	}
	if node, where, code := c.coordinatorOfKey(4, coordinatorOfTxn, "t"); node != neighbour || where != "there:99" || code != 0 {
		t.Errorf("coordinator is %d at %s, error %d", node, where, code)
	}
	if got := ask[*kmsg.ListTransactionsResponse](c, 0, kmsg.NewPtrListTransactionsRequest()); got.ErrorCode != 0 || len(got.TransactionStates) != 0 {
		t.Errorf("list is %+v", got)
	}
	b.ledBy(txnTopic, at, b.nodeID, 5)
	b.settled()
	if got := p.end(true); got != 0 {
		t.Fatalf("end: error %d", got)
	}
	waitFor(t, func() bool { return b.stable("out", 0) == 2 })
	if got := b.coordinatorEpoch("out", 0, p.who.ID); got != 5 {
		t.Errorf("the marker has coordinator epoch %d", got)
	}
}

// TestMarkersElsewhere: the marker of a partition that another broker leads is written there, when that broker can be reached.
func TestMarkersElsewhere(t *testing.T) {
	here, there, _ := twoBrokers(t, "transaction.partition.verification.enable", "false")
	c, other := here.dial(), there.dial()
	c.findTxnCoordinator("t")
	other.createTopic("out")
	c.createTopic("out")
	c.createTopic("own")
	here.ledBy("out", 0, neighbour, 0)
	p := c.initTxn("t", false)
	for _, name := range []string{"out", "own"} {
		if got := p.add(name, 0); got != 0 {
			t.Fatalf("add %s: error %d", name, got)
		}
	}
	q := *p
	q.client = other
	if got := q.write(9, "out", 0, "a"); got != 0 {
		t.Fatalf("write elsewhere: error %d", got)
	}
	if got := p.write(9, "own", 0, "a"); got != 0 {
		t.Fatalf("write: error %d", got)
	}
	if got := p.end(true); got != 0 {
		t.Fatalf("end: error %d", got)
	}
	waitFor(t, func() bool { return here.stable("own", 0) == 2 })
	if got := there.stable("out", 0); got != 0 {
		t.Errorf("last stable offset is %d before the broker is known", got)
	}
	here.sees(there, here.nodeID)
	waitFor(t, func() bool { return there.stable("out", 0) == 2 })
	// The next transaction begins when this one is complete.
	if got := p.add("own", 0); got != 0 {
		t.Errorf("add: error %d", got)
	}
	if got := there.coordinatorEpoch("out", 0, p.who.ID); got != 0 {
		t.Errorf("the marker has coordinator epoch %d", got)
	}
}

// TestMarkerOfUnknownTopic: a topic that the metadata has and this broker does not know yet gets its marker when it does.
func TestMarkerOfUnknownTopic(t *testing.T) {
	b, c := txnBroker(t, t.TempDir())
	c.createTopic("out")
	p := c.initTxn("t", false)
	if got := p.add("out", 0); got != 0 {
		t.Fatalf("add: error %d", got)
	}
	if got := p.write(9, "out", 0, "a"); got != 0 {
		t.Fatalf("write: error %d", got)
	}
	out := b.topics.name("out")
	b.topics.remove(out)
	if got := p.end(true); got != 0 {
		t.Fatalf("end: error %d", got)
	}
	part, _ := b.txns.find("t")
	waiting := func() bool {
		state := txn.Empty
		part.read("t", func(x *txn.Txn) { state = x.State() })
		return state == txn.PrepareCommit
	}
	waitFor(t, waiting)
	b.topics.add(out)
	waitFor(t, func() bool { return b.stable("out", 0) == 2 && !waiting() })
}

// TestControllerElsewhere: what is missing is asked of the controller, whatever clients are told meanwhile.
func TestControllerElsewhere(t *testing.T) {
	here, there, _ := twoBrokers(t)
	here.control.Resign()
	here.sees(there, neighbour)
	c := here.dial()
	for name, ask := range map[string]func() int16{
		offsetsTopic: func() int16 { _, _, code := c.coordinatorOfKey(4, coordinatorOfGroup, "g"); return code },
		txnTopic:     func() int16 { _, _, code := c.coordinatorOfKey(4, coordinatorOfTxn, "t"); return code },
		"t": func() int16 {
			name := "t"
			r := kmsg.NewPtrMetadataRequest()
			r.AllowAutoTopicCreation = true
			r.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
			return ask[*kmsg.MetadataResponse](c, 9, r).Topics[0].ErrorCode
		},
	} {
		want := kerr.CoordinatorNotAvailable.Code
		if name == "t" {
			want = kerr.UnknownTopicOrPartition.Code
		}
		for range 2 { // the second finds it made
			if got := ask(); got != want {
				t.Errorf("%s: error %d", name, got)
			}
		}
		made := there.topics.name(name)
		if made == nil {
			t.Fatalf("%s was not made", name)
		}
		if want := len(*made.partitions.Load()); name != "t" && want != 4 {
			t.Errorf("%s has %d partitions", name, want)
		}
		if policy := made.ownKeys()["cleanup.policy"]; name != "t" && policy != "compact" {
			t.Errorf("%s has cleanup.policy %q", name, policy)
		}
	}
	if err := here.askController(t.Context(), controller.NewTopic{Name: "bad name", Partitions: 1, Replication: 1}); kafkaError(err) != kerr.CoordinatorNotAvailable {
		t.Errorf("a bad name: %v", err)
	}
}

// TestTransactionLeadershipFlips: transactions go on while their coordinator's partition comes and goes. In the end all are over, and what was committed
// is there.
func TestTransactionLeadershipFlips(t *testing.T) {
	b, c := txnBroker(t, t.TempDir(), "transaction.state.log.num.partitions", "1")
	c.createTopic("out")
	var stop atomic.Bool
	var wg sync.WaitGroup
	committed := make([]int, 3)
	for i := range committed {
		busy := b.dial()
		wg.Go(func() {
			for !stop.Load() {
				p, ok := busy.tryInit(fmt.Sprint("t", i))
				for n := 0; ok && !stop.Load(); n++ {
					ok = p.write(12, "out", 0, fmt.Sprintf("%d-%d", i, committed[i])) == 0 && p.end(true) == 0
					if ok {
						committed[i]++
					}
				}
			}
		})
	}
	for epoch := int32(1); epoch <= 60; epoch += 2 {
		done := b.topics.name("out").partition(0).log.EndOffset() + 4
		waitFor(t, func() bool { return b.topics.name("out").partition(0).log.EndOffset() >= done })
		b.ledBy(txnTopic, 0, neighbour, epoch)
		if epoch%3 == 0 {
			b.settled()
		}
		b.ledBy(txnTopic, 0, b.nodeID, epoch+1)
	}
	stop.Store(true)
	wg.Wait()
	b.settled()
	all := 0
	for i := range committed {
		c.initTxn(fmt.Sprint("t", i), true) // ends what is open
		all += committed[i]
	}
	log := b.topics.name("out").partition(0).log
	waitFor(t, func() bool { return log.LastStable() == log.EndOffset() })
	seen := 0
	r := fetchRequest("out", 0, 0, 0)
	r.IsolationLevel = 1
	for r.Topics[0].Partitions[0].FetchOffset < log.EndOffset() {
		got := ask[*kmsg.FetchResponse](c, 12, r).Topics[0].Partitions[0]
		at, n, next := committedIn(t, got, r.Topics[0].Partitions[0].FetchOffset)
		if at == next {
			t.Fatalf("nothing at %d", at)
		}
		seen += n
		r.Topics[0].Partitions[0].FetchOffset = next
	}
	if seen < all {
		t.Errorf("%d records are committed, acknowledged were %d", seen, all)
	}
	t.Logf("%d transactions acknowledged, %d seen", all, seen)
}

// tryInit takes an id, unless the coordinator is not here.
func (c *client) tryInit(id string) (*txnClient, bool) {
	r := idRequest(&id, -1, -1)
	r.TransactionTimeoutMillis = 60_000
	resp := ask[*kmsg.InitProducerIDResponse](c, 4, r)
	return &txnClient{client: c, id: id, tv2: true, who: batch.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}}, resp.ErrorCode == 0
}

// committedIn counts the records of one answer that are not of aborted transactions, and says where to go on.
func committedIn(t *testing.T, p kmsg.FetchResponseTopicPartition, from int64) (at int64, records int, next int64) {
	t.Helper()
	aborted := make(map[int64][]int64) // first offsets by producer
	for _, a := range p.AbortedTransactions {
		aborted[a.ProducerID] = append(aborted[a.ProducerID], a.FirstOffset)
	}
	next = from
	for set := p.RecordBatches; len(set) >= batch.HeaderSize; {
		h, err := batch.ReadHeader(set)
		if err != nil {
			t.Fatal(err)
		}
		if h.Size() > len(set) {
			break
		}
		first := aborted[h.ProducerID]
		switch {
		case h.Control() && len(first) > 0 && first[0] <= h.BaseOffset:
			aborted[h.ProducerID] = first[1:]
		case h.Control():
		case len(first) == 0 || first[0] > h.BaseOffset:
			records++
		}
		next = h.LastOffset() + 1
		set = set[h.Size():]
	}
	return from, records, next
}
