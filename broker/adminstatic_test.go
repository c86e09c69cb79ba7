package broker

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestElectLeaders: what leads need not be elected; what is not there says so. The texts are those of Kafka 4.4.0.
func TestElectLeaders(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("led")
	for version := int16(0); version <= 2; version++ {
		all := ask[*kmsg.ElectLeadersResponse](c, version, kmsg.NewPtrElectLeadersRequest())
		if all.ErrorCode != 0 || len(all.Topics) != 1 || len(all.Topics[0].Partitions) != 0 {
			t.Errorf("v%d: all: %+v", version, all)
		}
		r := kmsg.NewPtrElectLeadersRequest()
		for _, name := range []string{"led", "not"} {
			in := kmsg.NewElectLeadersRequestTopic()
			in.Topic, in.Partitions = name, []int32{0, 7}
			r.Topics = append(r.Topics, in)
		}
		resp := ask[*kmsg.ElectLeadersResponse](c, version, r)
		led, not := resp.Topics[0].Partitions, resp.Topics[1].Partitions
		if led[0].ErrorCode != kerr.ElectionNotNeeded.Code || *led[0].ErrorMessage != "Leader election not needed for topic partition." ||
			led[1].ErrorCode != kerr.UnknownTopicOrPartition.Code || *led[1].ErrorMessage != "No such partition as led-7" ||
			not[0].ErrorCode != kerr.UnknownTopicOrPartition.Code || *not[0].ErrorMessage != "No such topic as not" {
			t.Errorf("v%d: %+v", version, resp)
		}
	}
	r := kmsg.NewPtrElectLeadersRequest()
	r.ElectionType = 5
	if resp := ask[*kmsg.ElectLeadersResponse](c, 2, r); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("election type 5: %+v", resp)
	}
}

// TestElectOffline: no other replica can lead a partition that is offline.
func TestElectOffline(t *testing.T) {
	b := startBroker(t, t.TempDir())
	self := []int32{b.nodeID}
	p := &partition{}
	p.lead.Store(&leadership{leader: b.nodeID, led: true, replicas: self, isr: self}) // and no log
	if err := b.electPartition(p, 0); err != kerr.PreferredLeaderNotAvailable {
		t.Error(err)
	}
	if err := b.electPartition(p, electUnclean); err != kerr.EligibleLeadersNotAvailable {
		t.Error(err)
	}
}

// TestElsewhere: partitions that another live broker leads are neither offline nor to be elected, and who is not the controller does not answer.
func TestElsewhere(t *testing.T) {
	b := startBroker(t, t.TempDir(), "gregor.metrics.listener", "127.0.0.1:0")
	c := b.dial()
	c.createTopic("moved")
	b.seeNeighbour()
	there := &leadership{leader: neighbour, epoch: 3, replicas: []int32{neighbour}, isr: []int32{neighbour}}
	p := b.newPartition(b.topics.name("moved"), 0, there)
	if err := b.electPartition(p, 0); code(err) != kerr.ElectionNotNeeded.Code {
		t.Error(err)
	}
	b.topics.name("moved").partitions.Store(&[]*partition{p})
	text := "\n" + scrapeOf(t, b.Broker)
	for _, want := range []string{"partitions 0", "partitions_led 0", "partitions_offline 0", "cluster_partitions_leaderless 0", "cluster_brokers 2", "active_controller 1"} {
		if !strings.Contains(text, "\ngregor_"+want+"\n") {
			t.Errorf("no gregor_%s in%s", want, text)
		}
	}
	b.control.Resign()
	if resp := ask[*kmsg.ElectLeadersResponse](c, 2, kmsg.NewPtrElectLeadersRequest()); resp.ErrorCode != kerr.NotController.Code {
		t.Errorf("election without the seat: %+v", resp)
	}
	if resp := ask[*kmsg.AlterPartitionAssignmentsResponse](c, 0, kmsg.NewPtrAlterPartitionAssignmentsRequest()); resp.ErrorCode != kerr.NotController.Code {
		t.Errorf("reassignment without the seat: %+v", resp)
	}
	if resp := ask[*kmsg.ListPartitionReassignmentsResponse](c, 0, kmsg.NewPtrListPartitionReassignmentsRequest()); resp.ErrorCode != kerr.NotController.Code {
		t.Errorf("list without the seat: %+v", resp)
	}
}

func TestReassignments(t *testing.T) {
	b := startBroker(t, t.TempDir())
	c := b.dial()
	c.createTopic("here")
	for _, tc := range []struct {
		topic     string
		partition int32
		replicas  []int32
		want      *kerr.Error
		text      string
	}{
		{"here", 0, []int32{b.nodeID}, nil, ""},
		{"here", 0, nil, kerr.NoReassignmentInProgress, ""},
		{"here", 0, []int32{}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list."},
		{"here", 0, []int32{b.nodeID, b.nodeID}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker 0 more than once."},
		{"here", 0, []int32{b.nodeID, 99}, kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker 99, but no such broker is registered."},
		{"here", 9, []int32{b.nodeID}, kerr.UnknownTopicOrPartition, "Unable to find partition here:9."},
		{"not", 0, nil, kerr.UnknownTopicOrPartition, "Unable to find a topic named not."},
	} {
		for version := int16(0); version <= 1; version++ {
			r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			in := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			in.Topic = tc.topic
			in.Partitions = append(in.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: tc.partition, Replicas: tc.replicas})
			r.Topics = append(r.Topics, in)
			got := ask[*kmsg.AlterPartitionAssignmentsResponse](c, version, r).Topics[0].Partitions[0]
			text := ""
			if got.ErrorMessage != nil {
				text = *got.ErrorMessage
			}
			want := int16(0)
			if tc.want != nil {
				want = tc.want.Code
			}
			if got.ErrorCode != want || text != tc.text {
				t.Errorf("v%d %s-%d to %v: error %d %q, want %v %q", version, tc.topic, tc.partition, tc.replicas, got.ErrorCode, text, tc.want, tc.text)
			}
		}
	}
	if list := ask[*kmsg.ListPartitionReassignmentsResponse](c, 0, kmsg.NewPtrListPartitionReassignmentsRequest()); list.ErrorCode != 0 || len(list.Topics) != 0 {
		t.Errorf("in progress: %+v", list)
	}
}

func TestListConfigResources(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	c.createTopic("one")
	for _, tc := range []struct {
		version int16
		kinds   []int8
		want    map[string]int8
		code    int16
	}{
		{0, nil, map[string]int8{}, 0},
		{1, nil, map[string]int8{"one/2": 2, "0/4": 4, "0/8": 8}, 0},
		{1, []int8{2}, map[string]int8{"one/2": 2}, 0},
		{1, []int8{16, 32}, map[string]int8{}, 0},
		{1, []int8{2, 77}, map[string]int8{}, kerr.UnsupportedVersion.Code},
	} {
		r := kmsg.NewPtrListConfigResourcesRequest()
		r.ResourceTypes = tc.kinds
		resp := ask[*kmsg.ListConfigResourcesResponse](c, tc.version, r)
		got := map[string]int8{}
		for _, res := range resp.ConfigResources {
			got[res.Name+"/"+string(rune('0'+res.Type))] = res.Type
		}
		if resp.ErrorCode != tc.code || len(got) != len(tc.want) {
			t.Errorf("v%d %v: error %d, %v, want %d, %v", tc.version, tc.kinds, resp.ErrorCode, got, tc.code, tc.want)
		}
		for k := range tc.want {
			if _, ok := got[k]; !ok {
				t.Errorf("v%d %v: no %s in %v", tc.version, tc.kinds, k, got)
			}
		}
	}
}
