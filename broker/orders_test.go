package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/peers"
	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/faultfs"
	"gregor/wire"
)

// startShared starts a broker as one of a cluster whose controller is the test. It has a controller epoch of 1 of its own.
func startShared(t *testing.T, c Config, dir string, settings ...string) *testBroker {
	t.Helper()
	b := newBroker(t, c, dir, append([]string{"broker.id", "0"}, settings...)...)
	b.share(true)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	return b
}

// boss gives orders to a broker.
type boss struct {
	*client
	epoch       int32
	brokerEpoch int64
}

func (b *testBroker) boss() *boss { return &boss{b.dial(), 5, -1} }

// lead orders leadership of one partition at a version and returns its code.
func (o *boss) lead(version int16, topic string, id [16]byte, s kmsg.LeaderAndISRRequestTopicPartition) int16 {
	o.t.Helper()
	r := leadRequest(version, topic, id, s)
	r.ControllerEpoch, r.BrokerEpoch = o.epoch, o.brokerEpoch
	resp := ask[*kmsg.LeaderAndISRResponse](o.client, version, r)
	if version < 5 {
		if len(resp.Partitions) != 1 || resp.Partitions[0].Topic != topic || resp.Partitions[0].Partition != s.Partition {
			o.t.Fatalf("v%d: answer is %+v", version, resp)
		}
		return resp.Partitions[0].ErrorCode
	}
	if len(resp.Topics) != 1 || resp.Topics[0].TopicID != id || len(resp.Topics[0].Partitions) != 1 {
		o.t.Fatalf("v%d: answer is %+v", version, resp)
	}
	return resp.Topics[0].Partitions[0].ErrorCode
}

func leadRequest(version int16, topic string, id [16]byte, s kmsg.LeaderAndISRRequestTopicPartition) *kmsg.LeaderAndISRRequest {
	s.Topic = topic
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.ControllerID = neighbour
	if version < 2 {
		r.PartitionStates = append(r.PartitionStates, s)
	} else {
		rt := kmsg.NewLeaderAndISRRequestTopicState()
		rt.Topic, rt.TopicID, rt.PartitionStates = topic, id, []kmsg.LeaderAndISRRequestTopicPartition{s}
		r.TopicStates = append(r.TopicStates, rt)
	}
	return r
}

// alone is a partition that a broker leads without others.
func alone(partition, leader, epoch int32) kmsg.LeaderAndISRRequestTopicPartition {
	s := kmsg.NewLeaderAndISRRequestTopicPartition()
	s.Partition, s.Leader, s.LeaderEpoch, s.IsNew = partition, leader, epoch, true
	s.ISR, s.Replicas = []int32{leader}, []int32{leader}
	return s
}

// stop orders a replica away.
func (o *boss) stop(version int16, topic string, n, epoch int32, remove bool) int16 {
	o.t.Helper()
	r := stopRequest(version, topic, n, epoch, remove)
	r.ControllerEpoch, r.BrokerEpoch = o.epoch, o.brokerEpoch
	var body kmsg.Request = r
	if version < 4 {
		body = &r.StopReplicaRequest
	}
	resp := ask[*kmsg.StopReplicaResponse](o.client, version, body)
	if len(resp.Partitions) != 1 || resp.Partitions[0].Topic != topic || resp.Partitions[0].Partition != n {
		o.t.Fatalf("v%d: answer is %+v", version, resp)
	}
	return resp.Partitions[0].ErrorCode
}

func stopRequest(version int16, topic string, n, epoch int32, remove bool) *peers.StopReplicaRequest {
	r := &peers.StopReplicaRequest{StopReplicaRequest: kmsg.NewStopReplicaRequest()}
	r.Version, r.ControllerID, r.DeletePartitions = version, neighbour, remove
	rt := kmsg.NewStopReplicaRequestTopic()
	s := kmsg.NewStopReplicaRequestTopicPartitionState()
	s.Partition, s.LeaderEpoch, s.Delete = n, epoch, remove
	rt.Topic, rt.Partition, rt.Partitions = topic, n, []int32{n}
	rt.PartitionStates = append(rt.PartitionStates, s)
	r.Topics = append(r.Topics, rt)
	return r
}

// tell updates the metadata of partitions of one topic.
func (o *boss) tell(version int16, topic string, id [16]byte, parts ...kmsg.UpdateMetadataRequestTopicPartition) int16 {
	o.t.Helper()
	r := tellRequest(version, topic, id, parts...)
	r.ControllerEpoch, r.BrokerEpoch = o.epoch, o.brokerEpoch
	return ask[*kmsg.UpdateMetadataResponse](o.client, version, r).ErrorCode
}

func tellRequest(version int16, topic string, id [16]byte, parts ...kmsg.UpdateMetadataRequestTopicPartition) *kmsg.UpdateMetadataRequest {
	r := kmsg.NewPtrUpdateMetadataRequest()
	r.Version, r.ControllerID = version, neighbour
	for i := range parts {
		parts[i].Topic = topic
	}
	r.PartitionStates = parts
	rt := kmsg.NewUpdateMetadataRequestTopicState()
	rt.Topic, rt.TopicID, rt.PartitionStates = topic, id, parts
	if len(parts) > 0 {
		r.TopicStates = append(r.TopicStates, rt)
	}
	for _, id := range []int32{neighbour, 0} {
		lb := kmsg.NewUpdateMetadataRequestLiveBroker()
		lb.ID, lb.Host, lb.Port, lb.Rack = id, "there", 9000+id, kmsg.StringPtr("r")
		e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		e.Host, e.Port, e.ListenerName = "there", 9000+id, "PLAINTEXT"
		lb.Endpoints = append(lb.Endpoints, e)
		r.LiveBrokers = append(r.LiveBrokers, lb)
	}
	return r
}

func toldOf(partition, leader, epoch int32) kmsg.UpdateMetadataRequestTopicPartition {
	s := kmsg.NewUpdateMetadataRequestTopicPartition()
	s.Partition, s.Leader, s.LeaderEpoch = partition, leader, epoch
	s.ISR, s.Replicas = []int32{leader}, []int32{leader}
	return s
}

// topicNow is what Metadata says of a topic, without making it: "error", or leader:epoch:error of each partition.
func (c *client) topicNow(name string) string {
	c.t.Helper()
	r := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &name
	r.Topics = append(r.Topics, rt)
	topic := ask[*kmsg.MetadataResponse](c, 9, r).Topics[0]
	if topic.ErrorCode != 0 {
		return kerr.ErrorForCode(topic.ErrorCode).(*kerr.Error).Message
	}
	var parts []string
	for _, p := range topic.Partitions {
		parts = append(parts, fmt.Sprint(p.Leader, ":", p.LeaderEpoch, ":", p.ErrorCode))
	}
	return strings.Join(parts, " ")
}

func wantCode(t *testing.T, what string, got int16, want *kerr.Error) {
	t.Helper()
	code := int16(0)
	if want != nil {
		code = want.Code
	}
	if got != code {
		t.Errorf("%s: %v, want %v", what, kerr.ErrorForCode(got), kerr.ErrorForCode(code))
	}
}

// TestOrdersOfEveryVersion: a topic is made, led, told of, stopped and removed by orders of each version that a Kafka sends together.
func TestOrdersOfEveryVersion(t *testing.T) {
	dir := t.TempDir()
	b := startShared(t, Config{}, dir)
	o, c := b.boss(), b.dial()
	for version := range int16(9) {
		lead, stop := min(version, 7), min(version, 4)
		name := fmt.Sprint("t", version)
		var id [16]byte
		if version >= 7 { // both have ids
			id[0] = byte(version)
		}
		wantCode(t, "lead", o.lead(lead, name, id, alone(0, 0, 3)), nil)
		wantCode(t, "tell", o.tell(version, name, id, toldOf(0, 0, 3), toldOf(1, neighbour, 8)), nil)
		if got := c.topicNow(name); got != "0:3:0 7:8:0" {
			t.Errorf("v%d: topic is %s", version, got)
		}
		wantCode(t, "produce", c.produce(name, 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
		wantCode(t, "produce elsewhere", c.produce(name, 1, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, kerr.NotLeaderForPartition)
		wantCode(t, "stop", o.stop(stop, name, 0, 3, false), nil)
		wantCode(t, "produce when stopped", c.produce(name, 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, kerr.NotLeaderForPartition)
		wantCode(t, "lead again", o.lead(lead, name, id, alone(0, 0, 4)), nil)
		if got := values(t, c.fetch(name, 0, 0, 0).RecordBatches, 0); len(got) != 1 {
			t.Errorf("v%d: records are %v", version, got)
		}
		wantCode(t, "remove", o.stop(stop, name, 0, epochDeleting, true), nil)
		if _, err := os.Stat(filepath.Join(dir, name+"-0")); !os.IsNotExist(err) {
			t.Errorf("v%d: directory is there: %v", version, err)
		}
		wantCode(t, "forget", o.tell(version, name, id, toldOf(0, leaderDeleting, epochDeleting), toldOf(1, leaderDeleting, epochDeleting)), nil)
		if got := c.topicNow(name); got != kerr.UnknownTopicOrPartition.Message {
			t.Errorf("v%d: topic is %s", version, got)
		}
	}
}

// TestView: clients hear of the live brokers and the controller that UpdateMetadata names.
func TestView(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o, c := b.boss(), b.dial()
	for version := range int16(9) {
		wantCode(t, "tell", o.tell(version, "", [16]byte{}), nil)
		resp := ask[*kmsg.MetadataResponse](c, 9, kmsg.NewPtrMetadataRequest())
		if resp.ControllerID != neighbour || len(resp.Brokers) != 2 {
			t.Fatalf("v%d: answer is %+v", version, resp)
		}
		other := resp.Brokers[1]
		if other.NodeID != neighbour || other.Host != "there" || other.Port != 9007 || (other.Rack != nil) != (version >= 2) {
			t.Errorf("v%d: broker is %+v", version, other)
		}
	}
}

// TestStaleOrders: orders of an older controller, or to an earlier self, change nothing.
func TestStaleOrders(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o := b.boss()
	b.brokerEpoch.Store(100)
	wantCode(t, "first", o.lead(7, "a", [16]byte{1}, alone(0, 0, 3)), nil)
	for _, tc := range []struct {
		epoch       int32
		brokerEpoch int64
		want        *kerr.Error
	}{
		{0, -1, kerr.StaleControllerEpoch}, // before our own seat
		{4, -1, kerr.StaleControllerEpoch},
		{5, 99, kerr.StaleBrokerEpoch},
		{4, 99, kerr.StaleBrokerEpoch},
		{5, 100, nil},
		{5, 101, nil},
		{6, -1, nil},
		{5, -1, kerr.StaleControllerEpoch},
	} {
		o.epoch, o.brokerEpoch = tc.epoch, tc.brokerEpoch
		name := fmt.Sprint("t", tc.epoch, ".", tc.brokerEpoch)
		wantCode(t, "lead "+name, o.lead(7, name, [16]byte{2, byte(tc.epoch), byte(tc.brokerEpoch)}, alone(0, 0, 3)), tc.want)
		if made := b.topics.name(name) != nil; made != (tc.want == nil) {
			t.Errorf("%s: topic is there: %v", name, made)
		}
		wantCode(t, "tell "+name, o.tell(8, "", [16]byte{}), tc.want)
		wantCode(t, "stop "+name, o.stop(4, name, 0, 3, false), tc.want)
	}
}

// TestLeaderEpochs: what LeaderAndIsr and StopReplica say of one partition, one after the other.
func TestLeaderEpochs(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o, c := b.boss(), b.dial()
	id := [16]byte{1}
	beside := alone(0, 0, 9)
	beside.ISR, beside.Replicas = []int32{0, neighbour}, []int32{0, neighbour}
	follow := alone(0, neighbour, 10)
	follow.ISR, follow.Replicas = beside.ISR, beside.Replicas
	past := alone(0, 0, 11)
	past.Replicas = []int32{neighbour}
	alive := alone(0, 0, 11)
	alive.Replicas = []int32{0, neighbour} // the other is not in sync
	far, negative := alone(1<<30, 0, 0), alone(-1, 0, 0)
	for i, tc := range []struct {
		name  string
		id    [16]byte
		order kmsg.LeaderAndISRRequestTopicPartition
		want  *kerr.Error
		then  string
	}{
		{"new", id, alone(0, 0, 3), nil, "0:3:0"},
		{"again", id, alone(0, 0, 3), kerr.StaleControllerEpoch, "0:3:0"},
		{"older", id, alone(0, 0, 2), kerr.StaleControllerEpoch, "0:3:0"},
		{"other topic", [16]byte{2}, alone(0, 0, 4), kerr.InconsistentTopicID, "0:3:0"},
		{"no id", [16]byte{}, alone(0, 0, 4), nil, "0:4:0"},
		{"in sync beside us", id, beside, kerr.KafkaStorageError, "0:4:0"},
		{"follower", id, follow, kerr.KafkaStorageError, "7:10:0"},
		{"no replica here", id, past, kerr.UnknownTopicOrPartition, "7:10:0"},
		{"not in sync beside us", id, alive, nil, "0:11:0"},
		{"nobody", id, alone(0, noLeader, 12), kerr.UnknownTopicOrPartition, "0:11:0"},
		{"number too large", id, far, kerr.InvalidPartitions, "0:11:0"},
		{"number below 0", id, negative, kerr.InvalidPartitions, "0:11:0"},
	} {
		wantCode(t, tc.name, o.lead(7, "a", tc.id, tc.order), tc.want)
		if i == 0 {
			wantCode(t, "tell", o.tell(8, "", id), nil)
		}
		if got := c.topicNow("a"); got != tc.then {
			t.Errorf("%s: topic is %s, want %s", tc.name, got, tc.then)
		}
	}
	wantCode(t, "bad name", o.lead(7, "../a", id, alone(0, 0, 0)), kerr.InvalidTopicException)
	wantCode(t, "stop with an old epoch", o.stop(3, "a", 0, 10, true), kerr.FencedLeaderEpoch)
	wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
	wantCode(t, "stop with ours", o.stop(3, "a", 0, 11, true), nil)
	wantCode(t, "stop what is gone", o.stop(3, "a", 0, 0, true), nil)
	wantCode(t, "stop what never was", o.stop(3, "nothing", 7, 0, true), nil)
	wantCode(t, "back again, empty", o.lead(7, "a", id, alone(0, 0, 1)), nil)
	if got := c.fetch("a", 0, 0, 0); got.ErrorCode != 0 || got.HighWatermark != 0 {
		t.Errorf("fetch: %+v", got)
	}
}

// TestOrderAfterRestart: the first order repeats the epoch that the tree had, and is carried out; records are there.
func TestOrderAfterRestart(t *testing.T) {
	dir := t.TempDir()
	b := startShared(t, Config{}, dir)
	c := b.dial()
	c.createTopic("a")
	wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
	id := b.topics.name("a").id
	b.stopClean()
	b = startShared(t, Config{}, dir)
	o := b.boss()
	wantCode(t, "order", o.lead(7, "a", id, alone(0, 0, 0)), nil)
	wantCode(t, "order again", o.lead(7, "a", id, alone(0, 0, 0)), kerr.StaleControllerEpoch)
	if got := values(t, b.dial().fetch("a", 0, 0, 0).RecordBatches, 0); len(got) != 1 {
		t.Errorf("records are %v", got)
	}
}

// TestToldOfOurs: UpdateMetadata makes this broker lead nothing, and takes from it only what a newer epoch gives to others.
func TestToldOfOurs(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o, c := b.boss(), b.dial()
	id := [16]byte{1}
	wantCode(t, "tell", o.tell(8, "a", id, toldOf(0, 0, 3)), nil)
	wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, kerr.NotLeaderForPartition)
	wantCode(t, "lead", o.lead(7, "a", id, alone(0, 0, 3)), nil)
	for _, tc := range []struct {
		leader, epoch int32
		then          string
		led           bool
	}{
		{0, 3, "0:3:0", true},
		{neighbour, 2, "0:3:0", true},
		{0, 4, "0:3:0", true},
		{neighbour, 5, "7:5:0", false},
		{noLeader, 6, "-1:6:5", false},
	} {
		wantCode(t, "tell", o.tell(8, "a", id, toldOf(0, tc.leader, tc.epoch)), nil)
		if got := c.topicNow("a"); got != tc.then {
			t.Errorf("leader %d epoch %d: topic is %s, want %s", tc.leader, tc.epoch, got, tc.then)
		}
		if led := b.topics.name("a").partition(0).offline() == nil; led != tc.led {
			t.Errorf("leader %d epoch %d: led is %v", tc.leader, tc.epoch, led)
		}
	}
	wantCode(t, "lead", o.lead(7, "a", id, alone(0, 0, 7)), nil)
	wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
}

// TestDeletedAndMadeAgain: in either order of the two requests, and with another id afterwards.
func TestDeletedAndMadeAgain(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o, c := b.boss(), b.dial()
	wantCode(t, "tell", o.tell(8, "", [16]byte{}), nil)
	stop := func() { wantCode(t, "remove", o.stop(4, "a", 0, epochDeleting, true), nil) }
	forget := func() {
		wantCode(t, "forget", o.tell(8, "a", [16]byte{}, toldOf(0, leaderDeleting, epochDeleting)), nil)
	}
	for i, end := range [][]func(){{stop, forget}, {forget, stop}} {
		wantCode(t, "lead", o.lead(7, "a", [16]byte{byte(i + 1)}, alone(0, 0, 0)), nil)
		if got := c.fetch("a", 0, 0, 0); got.ErrorCode != 0 || got.HighWatermark != 0 {
			t.Errorf("round %d: %+v", i, got)
		}
		wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
		end[0]()
		end[1]()
		if got := c.topicNow("a"); got != kerr.UnknownTopicOrPartition.Message {
			t.Errorf("round %d: topic is %s", i, got)
		}
	}
}

// TestWaitingFetchMoves: who waits for records of a partition that goes to another broker is told at once.
func TestWaitingFetchMoves(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	o := b.boss()
	for i, end := range []func(){
		func() { o.tell(8, "a", [16]byte{1}, toldOf(0, neighbour, 9)) },
		func() { o.stop(4, "a", 0, 20, false) },
		func() { o.stop(4, "a", 0, 40, true) },
	} {
		wantCode(t, "lead", o.lead(7, "a", [16]byte{1}, alone(0, 0, int32(i*10+5))), nil)
		r := fetchRequest("a", 0, 0, time.Hour)
		r.SetVersion(12)
		woken := make(chan struct{}, 9)
		reply := b.Handle(t.Context(), &wire.Request{Key: 1, Version: 12, Body: r, Conn: &wire.ConnInfo{}, Wake: func() { woken <- struct{}{} }})
		if reply.Pending == nil {
			t.Fatal("the fetch does not wait")
		}
		if _, ready := reply.Pending.Poll(time.Now()); ready {
			t.Fatal("the fetch has an answer")
		}
		end()
		<-woken
		if _, ready := reply.Pending.Poll(time.Now()); !ready {
			t.Errorf("round %d: the fetch still waits", i)
			reply.Pending.Cancel()
		}
	}
}

// TestOrdersOnBadDisks: what cannot be made or removed durably is KAFKA_STORAGE_ERROR, and can be ordered again.
func TestOrdersOnBadDisks(t *testing.T) {
	faults := faultfs.New(vfs.OS())
	b := startShared(t, Config{FS: faults}, t.TempDir())
	o, c := b.boss(), b.dial()
	wantCode(t, "tell", o.tell(8, "", [16]byte{}), nil)
	heal := faults.Add(faultfs.Rule{Kind: faultfs.MkdirAll, Path: "a-0", Err: syscall.EIO})
	wantCode(t, "make", o.lead(7, "a", [16]byte{1}, alone(0, 0, 3)), kerr.KafkaStorageError)
	if got := c.topicNow("a"); got != "-1:3:5" {
		t.Errorf("topic is %s", got)
	}
	wantCode(t, "stop", o.stop(4, "a", 0, 3, true), kerr.KafkaStorageError)
	heal()
	wantCode(t, "make again", o.lead(7, "a", [16]byte{1}, alone(0, 0, 3)), nil)
	wantCode(t, "produce", c.produce("a", 0, batchOf(t, batch.None, record{"k", "v", nowMillis()})).ErrorCode, nil)
	heal = faults.Add(faultfs.Rule{Kind: faultfs.SyncDir, Err: syscall.EIO})
	wantCode(t, "remove", o.stop(4, "a", 0, epochDeleting, true), kerr.KafkaStorageError)
	heal()
	wantCode(t, "remove again", o.stop(4, "a", 0, epochDeleting, true), nil)
	heal = faults.Add(faultfs.Rule{Kind: faultfs.Rename, Path: "b-0", Err: syscall.EIO})
	wantCode(t, "make", o.lead(7, "b", [16]byte{2}, alone(0, 0, 3)), nil)
	wantCode(t, "remove", o.stop(4, "b", 0, epochDeleting, true), kerr.KafkaStorageError)
	heal()
	wantCode(t, "remove again", o.stop(4, "b", 0, epochDeleting, true), nil)
}

// TestOrdersWithoutDirectory: with a directory out of use a partition that is not new may be in it; a new one goes elsewhere.
func TestOrdersWithoutDirectory(t *testing.T) {
	base := t.TempDir()
	dirs := filepath.Join(base, "d1") + "," + filepath.Join(base, "d2")
	b := startShared(t, Config{}, dirs)
	b.stopClean()
	faults := faultfs.New(vfs.OS())
	faults.Add(faultfs.Rule{Path: filepath.Join(base, "d2"), Err: syscall.EIO})
	b = startShared(t, Config{FS: faults}, dirs)
	o := b.boss()
	old := alone(0, 0, 3)
	old.IsNew = false
	wantCode(t, "old", o.lead(7, "a", [16]byte{1}, old), kerr.KafkaStorageError)
	wantCode(t, "new", o.lead(7, "b", [16]byte{2}, alone(0, 0, 0)), nil)
	if _, err := os.Stat(filepath.Join(base, "d1", "a-0")); !os.IsNotExist(err) {
		t.Errorf("the old one was made anew: %v", err)
	}
}

// TestControlledShutdown: by the controller only, for brokers that live as the controller knows them.
func TestControlledShutdown(t *testing.T) {
	b := startShared(t, Config{}, t.TempDir())
	v := *b.view.Load()
	v.brokers = append(v.brokers[:1:1], peer{id: neighbour, epoch: 50})
	b.view.Store(&v)
	c := b.dial()
	shut := func(version int16, id int32, epoch int64) int16 {
		r := kmsg.NewPtrControlledShutdownRequest()
		r.BrokerID, r.BrokerEpoch = id, epoch
		return ask[*kmsg.ControlledShutdownResponse](c, version, r).ErrorCode
	}
	for version := range int16(4) {
		wantCode(t, "lives", shut(version, neighbour, 50), nil)
		wantCode(t, "unknown", shut(version, 8, 50), kerr.BrokerNotAvailable)
	}
	wantCode(t, "no epoch", shut(3, neighbour, -1), nil)
	wantCode(t, "old epoch", shut(3, neighbour, 49), kerr.StaleBrokerEpoch)
	b.control.Resign()
	wantCode(t, "no controller", shut(3, neighbour, 50), kerr.StaleControllerEpoch)
}
