package zookeeper

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
	"gregor/broker/peers"
	"gregor/compat/jars"
	"gregor/compat/peer"
)

const (
	seatID    = 7 // the controller that the test plays; it registers and does not listen
	seatEpoch = 3
	patience  = 30 * time.Second
)

// TestControlRequests: the recorded requests that package peers is compared with are what Apache Kafka writes.
func TestControlRequests(t *testing.T) {
	path, err := jars.Tools("3.9.1").Compile(t.Context(), "../java/ControlRequests.java")
	if err != nil {
		t.Fatal(err)
	}
	got, err := jars.Java(t.Context(), path, "ControlRequests").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../broker/peers/testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("Apache Kafka writes other requests than those in broker/peers/testdata/requests.txt:\n%s", got)
	}
}

// quiet keeps what the library prints out of the test's output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// seat is the test's part as controller of a cluster with one Apache Kafka.
type seat struct {
	t     *testing.T
	zk    *zk.Conn
	kafka *peer.Kafka
	peers *peers.Announcer
	live  []peers.Broker

	answers chan peers.Answer
}

// takeSeat makes the tree of a new cluster with a controller in it, before there is any Kafka.
func takeSeat(t *testing.T, address string) *seat {
	t.Helper()
	conn, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	s := &seat{t: t, zk: conn, answers: make(chan peers.Answer, 1000)}
	for _, path := range []string{"/brokers", meta.BrokersPath, meta.TopicsPath, "/config", meta.TopicConfigsPath} {
		s.create(path, nil, 0)
	}
	s.create(meta.ControllerEpochPath, meta.EncodeEpoch(seatEpoch), 0)
	node := meta.BrokerNode{Endpoints: []meta.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9}}, Timestamp: time.Now().UnixMilli()}
	s.create(meta.BrokerPath(seatID), node.Encode(), zk.FlagEphemeral)
	s.create(meta.ControllerPath, meta.ControllerNode{Broker: seatID, Timestamp: time.Now().UnixMilli()}.Encode(), zk.FlagEphemeral)
	return s
}

func (s *seat) create(path string, data []byte, flags int32) {
	s.t.Helper()
	if _, err := s.zk.Create(path, data, flags, zk.WorldACL(zk.PermAll)); err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
}

// registered reads who lives, with the epochs of their registrations. Kafka listens before it registers.
func (s *seat) registered() []peers.Broker {
	s.t.Helper()
	var live []peers.Broker
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if there, _, err := s.zk.Exists(meta.BrokerPath(1)); there || err != nil || time.Now().After(deadline) {
			break
		}
	}
	for _, id := range []int32{1, seatID} {
		data, stat, err := s.zk.Get(meta.BrokerPath(id))
		if err != nil {
			s.t.Fatalf("broker %d: %v", id, err)
		}
		n, err := meta.DecodeBroker(data)
		if err != nil {
			s.t.Fatal(err)
		}
		live = append(live, peers.Broker{ID: id, Epoch: stat.Czxid, Endpoints: n.Endpoints, Rack: n.Rack})
	}
	return live
}

// steer begins as controller, with the highest versions of requests limited.
func (s *seat) steer(epoch int32, highest map[int16]int16, topics ...peers.Topic) {
	s.peers = peers.New(peers.Config{
		ControllerID: seatID, ControllerEpoch: epoch, Topics: topics, Dialer: peers.Dialer{ClientID: fmt.Sprint(seatID), Highest: highest},
		Answered: func(a peers.Answer) { s.answers <- a },
	})
	s.t.Cleanup(s.peers.Close)
	s.peers.SetBrokers(s.live)
}

// answer waits for the answer to the next request of a kind. Those to others must not be errors.
func (s *seat) answer(key int16) peers.Answer {
	s.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case a := <-s.answers:
			if a.Key == key {
				return a
			}
			if a.Code != 0 {
				s.t.Fatalf("an answer with code %d: %+v", a.Code, a)
			}
		case <-timeout:
			s.t.Fatalf("no answer to a request with key %d within %v\n%s", key, patience, s.kafka.Output())
		}
	}
}

// clean demands that an answer has no error and is about n partitions.
func (s *seat) clean(a peers.Answer, n int) {
	s.t.Helper()
	bad := slices.ContainsFunc(a.Partitions, func(p peers.PartitionError) bool { return p.Code != 0 })
	if a.Broker != 1 || a.Code != 0 || bad || len(a.Partitions) != n {
		s.t.Fatalf("answer %+v, want %d partitions without errors\n%s", a, n, s.kafka.Output())
	}
}

// topic writes a topic of two partitions on broker 1 into the tree.
func (s *seat) topic(name string, id byte) peers.Topic {
	s.t.Helper()
	topic := peers.Topic{Name: name, ID: [16]byte{6: 0x40, 8: 0x80, 15: id}}
	node := meta.TopicNode{ID: topic.ID, Replicas: meta.Replicas{0: {1}, 1: {1}}}
	s.create(meta.TopicConfigPath(name), meta.EncodeConfig(nil), 0)
	s.create(meta.TopicPath(name), node.Encode(), 0)
	s.create(meta.PartitionsPath(name), nil, 0)
	for n := range int32(2) {
		p := peers.Partition{Number: n, ControllerEpoch: seatEpoch, Leader: 1, ISR: []int32{1}, Replicas: []int32{1}}
		state := meta.PartitionState{ControllerEpoch: seatEpoch, Leader: 1, ISR: p.ISR}
		s.create(meta.PartitionPath(name, n), nil, 0)
		s.create(meta.PartitionStatePath(name, n), state.Encode(), 0)
		topic.Partitions = append(topic.Partitions, p)
	}
	return topic
}

// use produces records to both partitions with a real client and reads all that there should be.
func (s *seat) use(topic string, have int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr()), kgo.ConsumeTopics(topic), kgo.DisableIdempotentWrite(), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for n := range 20 {
		r := &kgo.Record{Topic: topic, Partition: int32(n % 2), Value: fmt.Appendf(nil, "%d", n)}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			s.t.Fatalf("producing to %s: %v\n%s", topic, err, s.kafka.Output())
		}
	}
	for read := 0; read < have+20; {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			s.t.Fatalf("%s: read %d of %d: %v", topic, read, have+20, errs)
		}
		read += fetches.NumRecords()
	}
}

// metadata is what Kafka tells its clients of a topic, and checks what it tells of the cluster.
func (s *seat) metadata(topic string) kmsg.MetadataResponseTopic {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
	resp, err := req.RequestWith(s.t.Context(), client)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.ControllerID != seatID || len(resp.Brokers) != 2 {
		s.t.Errorf("Kafka takes %d for the controller, of brokers %+v", resp.ControllerID, resp.Brokers)
	}
	return resp.Topics[0]
}

// TestSteersKafka plays the controller of a real Apache Kafka: topics that are announced are served to real clients, with every version of the requests that
// it knows; leader epochs, stops, deletions, refusals of an old controller and an old broker epoch, markers, and a restart.
func TestSteersKafka(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			address := peer.ZooKeeper(t)
			s := takeSeat(t, address)
			dir := t.TempDir()
			settings := []string{"controlled.shutdown.enable=false", "log.segment.delete.delay.ms=100"}
			s.kafka = peer.StartOn(t, version, address, dir, settings...)
			s.live = s.registered()
			everyVersion(s)
			s.steer(seatEpoch, nil)
			s.clean(s.answer(6), 0)
			first := s.topic("first", 100)
			s.peers.Announce(first)
			s.clean(s.answer(4), 2)
			s.clean(s.answer(6), 0)
			s.use("first", 0)
			newEpochs(s, first)
			marker(s)
			refusals(s)
			restart(s, version, address, dir, settings)
			deletion(s, dir)
		})
	}
}

// everyVersion makes, uses and deletes a topic with each version of the three requests.
func everyVersion(s *seat) {
	for v := range int16(9) {
		s.steer(seatEpoch, map[int16]int16{4: v, 5: v, 6: v})
		s.clean(s.answer(6), 0)
		name := fmt.Sprint("version-", v)
		s.peers.Announce(s.topic(name, byte(v+1)))
		s.clean(s.answer(4), 2)
		s.clean(s.answer(6), 0)
		s.use(name, 0)
		stopped := make(chan peers.Stopped, 1)
		s.peers.Delete(name, func(r peers.Stopped) { stopped <- r })
		s.clean(s.answer(6), 0)
		s.clean(s.answer(5), 2)
		if r := <-stopped; r.Err != nil || r.Code != 0 || len(r.Partitions) != 2 {
			s.t.Errorf("version %d: deletion: %+v", v, r)
		}
		if m := s.metadata(name); m.ErrorCode != 3 {
			s.t.Errorf("version %d: a deleted topic is %+v", v, m)
		}
		s.peers.Close()
	}
}

// newEpochs gives the partitions a later leader epoch, stops one, and starts it again.
func newEpochs(s *seat, topic peers.Topic) {
	later := func(epoch int32) peers.Topic {
		next := peers.Topic{Name: topic.Name, ID: topic.ID, Partitions: slices.Clone(topic.Partitions)}
		for i := range next.Partitions {
			next.Partitions[i].LeaderEpoch = epoch
		}
		return next
	}
	s.peers.Announce(later(1))
	s.clean(s.answer(4), 2)
	s.clean(s.answer(6), 0)
	for _, p := range s.metadata(topic.Name).Partitions {
		if p.Leader != 1 || p.LeaderEpoch != 1 {
			s.t.Errorf("after a later epoch: %+v", p)
		}
	}
	s.peers.Announce(topic) // an earlier epoch: Kafka keeps what it has and says so
	if a := s.answer(4); a.Code != 0 || len(a.Partitions) != 2 || a.Partitions[0].Code != 11 {
		s.t.Errorf("an earlier leader epoch: %+v", a)
	}
	s.peers.Update(later(2))
	s.peers.Stop(topic.Name, []int32{1}, []int32{1}, false, nil)
	s.clean(s.answer(5), 1)
	s.peers.Announce(later(3))
	s.clean(s.answer(4), 2)
	s.clean(s.answer(6), 0)
	s.use(topic.Name, 20)
}

// marker writes the marker of a transaction, as a coordinator elsewhere does.
func marker(s *seat) {
	pool := peers.NewPool(peers.Dialer{}, func(id int32) (peers.Broker, bool) { return s.live[0], id == 1 })
	defer pool.Close()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.Committed = 4242, true
	m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "first", Partitions: []int32{0, 1}}}
	for range 2 {
		resp, err := pool.Request(s.t.Context(), 1, &kmsg.WriteTxnMarkersRequest{Markers: []kmsg.WriteTxnMarkersRequestMarker{m}})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range resp.(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions {
			if p.ErrorCode != 0 {
				s.t.Errorf("marker: %+v", p)
			}
		}
	}
	s.use("first", 40)
}

// refusals: a controller whose seat is lost, and requests for an earlier start of the broker.
func refusals(s *seat) {
	current, live := s.peers, s.live
	s.steer(seatEpoch-1, nil)
	if a := s.answer(6); !a.SeatLost() {
		s.t.Errorf("an earlier controller epoch: %+v", a)
	}
	s.peers.Close()
	s.live = slices.Clone(live)
	s.live[0].Epoch--
	s.steer(seatEpoch, nil)
	if a := s.answer(6); a.Code != 77 {
		s.t.Errorf("an earlier broker epoch: %+v, want STALE_BROKER_EPOCH", a)
	}
	s.peers.Close()
	s.peers, s.live = current, live
}

// restart kills Kafka and starts another on its data. While it is away it is announced to; then it hears all, serves what it had, and a topic more.
func restart(s *seat, version, address, dir string, settings []string) {
	s.kafka.Stop(s.t)
	s.peers.SetBrokers(s.live[1:])
	second := s.topic("second", 101)
	s.peers.Announce(second)
	s.kafka = peer.StartOn(s.t, version, address, dir, settings...)
	s.live = s.registered()
	s.peers.SetBrokers(s.live)
	s.clean(s.answer(6), 0)
	s.clean(s.answer(4), 4)
	s.use("first", 60)
	s.use("second", 0)
}

// deletion: the topic is gone for clients, and its files are.
func deletion(s *seat, dir string) {
	stopped := make(chan peers.Stopped, 1)
	s.peers.Delete("first", func(r peers.Stopped) { stopped <- r })
	s.clean(s.answer(5), 2)
	if r := <-stopped; r.Err != nil || r.Code != 0 {
		s.t.Errorf("deletion: %+v", r)
	}
	s.peers.Forget("first")
	if m := s.metadata("first"); m.ErrorCode != 3 {
		s.t.Errorf("the deleted topic is %+v", m)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(dir, "first-*"))
		if err != nil {
			s.t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("still there: %s", strings.Join(left, " "))
		}
	}
	s.use("second", 20)
}
