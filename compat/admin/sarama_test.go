package admin

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"

	"gregor/compat/harness"
)

// saramaCalls is one run of sarama's ClusterAdmin against a broker.
type saramaCalls struct {
	*testing.T
	admin sarama.ClusterAdmin
	topic string
	node  int32
	conf  *sarama.Config
	addr  string
}

func TestSarama(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	conf := sarama.NewConfig()
	conf.Version = sarama.MaxVersion
	conf.Producer.Return.Successes, conf.Producer.RequiredAcks = true, sarama.WaitForAll
	admin, err := sarama.NewClusterAdmin([]string{b.Addr()}, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	s := &saramaCalls{T: t, admin: admin, topic: harness.Topic("sarama"), conf: conf, addr: b.Addr()}
	s.topics()
	s.configs()
	s.records()
	s.groups()
	s.security()
	s.rest()
	s.must("DeleteTopic", admin.DeleteTopic(s.topic))
	if all, err := admin.ListTopics(); err != nil || len(all[s.topic].ReplicaAssignment) > 0 {
		t.Errorf("after DeleteTopic: %v, %v", all, err)
	}
}

func (s *saramaCalls) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// refused demands an error.
func (s *saramaCalls) refused(what string, got error, want sarama.KError) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (s *saramaCalls) topics() {
	retention := "12345678"
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}
	s.must("CreateTopic", s.admin.CreateTopic(s.topic, detail, false))
	s.refused("CreateTopic again", s.admin.CreateTopic(s.topic, detail, false), sarama.ErrTopicAlreadyExists)
	all, err := s.admin.ListTopics()
	if s.must("ListTopics", err); all[s.topic].NumPartitions != 2 || *all[s.topic].ConfigEntries["retention.ms"] != retention {
		s.Errorf("ListTopics: %+v", all[s.topic])
	}
	s.must("CreatePartitions", s.admin.CreatePartitions(s.topic, 3, nil, false))
	s.refused("CreatePartitions of fewer", s.admin.CreatePartitions(s.topic, 1, nil, false), sarama.ErrInvalidPartitions)
	described, err := s.admin.DescribeTopics([]string{s.topic})
	if s.must("DescribeTopics", err); len(described[0].Partitions) != 3 {
		s.Errorf("DescribeTopics: %+v", described[0])
	}
	brokers, controller, err := s.admin.DescribeCluster()
	if s.must("DescribeCluster", err); len(brokers) != 1 || brokers[0].ID() != controller {
		s.Errorf("DescribeCluster: %v, controller %d", brokers, controller)
	}
	s.node = controller
	s.must("AlterPartitionReassignments", s.admin.AlterPartitionReassignments(s.topic, [][]int32{{s.node}, {s.node}, {s.node}}))
	under, err := s.admin.ListPartitionReassignments(s.topic, []int32{0, 1, 2})
	if s.must("ListPartitionReassignments", err); len(under[s.topic]) > 0 {
		s.Errorf("ListPartitionReassignments: %v", under)
	}
	elected, err := s.admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{s.topic: {0}})
	if s.must("ElectLeaders", err); elected[s.topic][0].ErrorCode != sarama.KError(84) {
		s.Errorf("ElectLeaders: %+v", elected[s.topic][0])
	}
}

// value is the present value of one of the topic's keys.
func (s *saramaCalls) value(key string) string {
	s.Helper()
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: s.topic, ConfigNames: []string{key}}
	found, err := s.admin.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
	if s.must("DescribeConfigs", err); len(found) != 1 || len(found[0].Configs) != 1 {
		s.Fatalf("DescribeConfigs %s: %v", key, found)
	}
	return found[0].Configs[0].Value
}

func (s *saramaCalls) configs() {
	day, soon := "86400000", "soon"
	s.must("AlterConfig", s.admin.AlterConfig(sarama.TopicResource, s.topic, map[string]*string{"segment.ms": &day}, false))
	if s.value("segment.ms") != day || s.value("retention.ms") == "12345678" {
		s.Errorf("AlterConfig: segment.ms=%s retention.ms=%s", s.value("segment.ms"), s.value("retention.ms"))
	}
	s.refused("AlterConfig with a wrong value", s.admin.AlterConfig(sarama.TopicResource, s.topic, map[string]*string{"segment.ms": &soon}, false), sarama.ErrInvalidConfig)
	s.must("IncrementalAlterConfig", s.admin.IncrementalAlterConfig(sarama.TopicResource, s.topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"segment.ms":   {Operation: sarama.IncrementalAlterConfigsOperationDelete},
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &day}}, false))
	if s.value("segment.ms") != "604800000" || s.value("retention.ms") != day {
		s.Errorf("IncrementalAlterConfig: segment.ms=%s retention.ms=%s", s.value("segment.ms"), s.value("retention.ms"))
	}
}

func (s *saramaCalls) records() {
	producer, err := sarama.NewSyncProducer([]string{s.addr}, s.conf)
	s.must("NewSyncProducer", err)
	defer producer.Close()
	for range 10 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: s.topic, Value: sarama.StringEncoder("v")})
		s.must("SendMessage", err)
	}
	oldest, newest := map[string]map[int32]int64{s.topic: {}}, map[string]map[int32]int64{s.topic: {}}
	for p := range int32(3) {
		oldest[s.topic][p], newest[s.topic][p] = sarama.OffsetOldest, sarama.OffsetNewest
	}
	ends, err := s.admin.ListOffsets(newest, nil)
	s.must("ListOffsets", err)
	cut, sum := map[int32]int64{}, int64(0)
	for p, r := range ends[s.topic] {
		cut[p], sum = r.Offset, sum+r.Offset
		if r.Err != nil && r.Err != sarama.ErrNoError {
			s.Errorf("ListOffsets of partition %d: %v", p, r.Err)
		}
	}
	if sum != 10 {
		s.Errorf("ListOffsets: %v, want 10 in all", cut)
	}
	s.must("DeleteRecords", s.admin.DeleteRecords(s.topic, cut))
	starts, err := s.admin.ListOffsets(oldest, nil)
	s.must("ListOffsets", err)
	for p, r := range starts[s.topic] {
		if r.Offset != cut[p] {
			s.Errorf("after DeleteRecords partition %d begins at %d, want %d", p, r.Offset, cut[p])
		}
	}
}

func (s *saramaCalls) groups() {
	group := s.topic + "-group"
	_, err := s.admin.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{s.topic: {0: {Offset: 1, LeaderEpoch: -1, Metadata: "note"}}}, nil)
	s.must("AlterConsumerGroupOffsets", err)
	offsets, err := s.admin.ListConsumerGroupOffsets(group, map[string][]int32{s.topic: {0}})
	if s.must("ListConsumerGroupOffsets", err); offsets.GetBlock(s.topic, 0).Offset != 1 || offsets.GetBlock(s.topic, 0).Metadata != "note" {
		s.Errorf("ListConsumerGroupOffsets: %+v", offsets.GetBlock(s.topic, 0))
	}
	all, err := s.admin.ListConsumerGroups()
	if _, ok := all[group]; err != nil || !ok {
		s.Errorf("ListConsumerGroups: %v, %v", all, err)
	}
	described, err := s.admin.DescribeConsumerGroups([]string{group})
	if s.must("DescribeConsumerGroups", err); described[0].State != "Empty" {
		s.Errorf("DescribeConsumerGroups: %+v", described[0])
	}
	s.must("DeleteConsumerGroupOffset", s.admin.DeleteConsumerGroupOffset(group, s.topic, 0))
	_, err = s.admin.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{s.topic: {0: {Offset: 1, LeaderEpoch: -1}}}, nil)
	s.must("AlterConsumerGroupOffsets", err)
	s.must("DeleteConsumerGroup", s.admin.DeleteConsumerGroup(group))
	s.refused("DeleteConsumerGroup of none", s.admin.DeleteConsumerGroup(group), sarama.ErrGroupIDNotFound)
}

func (s *saramaCalls) security() {
	user := s.topic + "-user"
	results, err := s.admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{Name: user, Mechanism: sarama.SCRAM_MECHANISM_SHA_256,
		Iterations: 4096, Salt: []byte("salt"), Password: []byte("secret")}})
	if s.must("UpsertUserScramCredentials", err); results[0].ErrorCode != sarama.ErrNoError {
		s.Errorf("UpsertUserScramCredentials: %+v", results[0])
	}
	described, err := s.admin.DescribeUserScramCredentials([]string{user})
	if s.must("DescribeUserScramCredentials", err); described[0].CredentialInfos[0].Iterations != 4096 {
		s.Errorf("DescribeUserScramCredentials: %+v", described[0])
	}
	results, err = s.admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{{Name: user, Mechanism: sarama.SCRAM_MECHANISM_SHA_256}})
	if s.must("DeleteUserScramCredentials", err); results[0].ErrorCode != sarama.ErrNoError {
		s.Errorf("DeleteUserScramCredentials: %+v", results[0])
	}
	s.must("AlterClientQuotas", s.admin.AlterClientQuotas([]sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: user}},
		sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6}, false))
	quotas, err := s.admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Match: user}}, true)
	if s.must("DescribeClientQuotas", err); len(quotas) != 1 || quotas[0].Values["producer_byte_rate"] != 1e6 {
		s.Errorf("DescribeClientQuotas: %+v", quotas)
	}
	s.must("AlterClientQuotas", s.admin.AlterClientQuotas([]sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: user}},
		sarama.ClientQuotasOp{Key: "producer_byte_rate", Remove: true}, false))
	_, err = s.admin.ListAcls(sarama.AclFilter{ResourceType: sarama.AclResourceAny, Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny,
		ResourcePatternTypeFilter: sarama.AclPatternAny})
	s.refused("ListAcls", err, sarama.ErrSecurityDisabled)
}

func (s *saramaCalls) rest() {
	dirs, err := s.admin.DescribeLogDirs([]int32{s.node})
	found := false
	for _, dir := range dirs[s.node] {
		for _, topic := range dir.Topics {
			found = found || topic.Topic == s.topic && len(topic.Partitions) == 3
		}
	}
	if s.must("DescribeLogDirs", err); !found {
		s.Errorf("DescribeLogDirs: %+v", dirs)
	}
}
