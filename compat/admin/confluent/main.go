// Confluent calls each method of confluent-kafka-go's admin client (librdkafka) that makes sense on one broker and checks the results:
// confluent BROKER PREFIX. It prints a line for each; the first wrong result ends it.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// calls is one run.
type calls struct {
	admin        *kafka.AdminClient
	ctx          context.Context
	broker       string
	topic, group string
	user         string
	first        kafka.TopicPartition
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Println("wrong:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(broker, prefix string) error {
	admin, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": broker})
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := &calls{admin: admin, ctx: ctx, broker: broker, topic: prefix + "-topic", group: prefix + "-group", user: prefix + "-user"}
	c.first = kafka.TopicPartition{Topic: &c.topic, Partition: 0}
	for _, part := range []func() error{c.topics, c.cluster, c.configs, c.records, c.groups, c.credentials, c.acls, c.deletion} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// check prints the call's name when there is no error and what it should have shown is true.
func check(name string, err error, ok func() bool) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !ok() {
		return fmt.Errorf("%s: the result is not right", name)
	}
	fmt.Println("call", name)
	return nil
}

// all runs checks in turn.
func all(checks ...func() error) error {
	for _, f := range checks {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (c *calls) topics() error {
	spec := kafka.TopicSpecification{Topic: c.topic, NumPartitions: 2, ReplicationFactor: 1, Config: map[string]string{"retention.ms": "12345678"}}
	return all(func() error {
		r, err := c.admin.CreateTopics(c.ctx, []kafka.TopicSpecification{spec})
		return check("CreateTopics", err, func() bool { return r[0].Error.Code() == kafka.ErrNoError })
	}, func() error {
		r, err := c.admin.CreateTopics(c.ctx, []kafka.TopicSpecification{spec})
		return check("CreateTopics again", err, func() bool { return r[0].Error.Code() == kafka.ErrTopicAlreadyExists })
	}, func() error {
		r, err := c.admin.CreatePartitions(c.ctx, []kafka.PartitionsSpecification{{Topic: c.topic, IncreaseTo: 3}})
		return check("CreatePartitions", err, func() bool { return r[0].Error.Code() == kafka.ErrNoError })
	}, func() error {
		r, err := c.admin.DescribeTopics(c.ctx, kafka.NewTopicCollectionOfTopicNames([]string{c.topic}), kafka.SetAdminOptionIncludeAuthorizedOperations(true))
		return check("DescribeTopics", err, func() bool {
			d := r.TopicDescriptions[0]
			return len(d.Partitions) == 3 && len(d.AuthorizedOperations) > 0
		})
	}, func() error {
		r, err := c.admin.GetMetadata(&c.topic, false, 10_000)
		return check("GetMetadata", err, func() bool { return len(r.Topics[c.topic].Partitions) == 3 })
	})
}

func (c *calls) cluster() error {
	return all(func() error {
		id, err := c.admin.ClusterID(c.ctx)
		return check("ClusterID", err, func() bool { return id != "" })
	}, func() error {
		_, err := c.admin.ControllerID(c.ctx)
		return check("ControllerID", err, func() bool { return true })
	}, func() error {
		r, err := c.admin.DescribeCluster(c.ctx, kafka.SetAdminOptionIncludeAuthorizedOperations(true))
		return check("DescribeCluster", err, func() bool { return len(r.Nodes) == 1 && r.Controller != nil && len(r.AuthorizedOperations) > 0 })
	}, func() error {
		r, err := c.admin.ElectLeaders(c.ctx, kafka.NewElectLeadersRequest(kafka.ElectionTypePreferred, []kafka.TopicPartition{c.first}))
		return check("ElectLeaders", err, func() bool { return r.TopicPartitions[0].Error.(kafka.Error).Code() == kafka.ErrElectionNotNeeded })
	})
}

func (c *calls) value(key string) string {
	r, err := c.admin.DescribeConfigs(c.ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: c.topic}})
	if err != nil {
		return err.Error()
	}
	return r[0].Config[key].Value
}

func (c *calls) configs() error {
	resource := func(e kafka.ConfigEntry) []kafka.ConfigResource {
		return []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: c.topic, Config: []kafka.ConfigEntry{e}}}
	}
	return all(func() error {
		return check("DescribeConfigs", nil, func() bool { return c.value("retention.ms") == "12345678" })
	}, func() error {
		r, err := c.admin.IncrementalAlterConfigs(c.ctx, resource(kafka.ConfigEntry{Name: "cleanup.policy", Value: "compact", IncrementalOperation: kafka.AlterConfigOpTypeAppend}))
		return check("IncrementalAlterConfigs", err, func() bool {
			return r[0].Error.Code() == kafka.ErrNoError && c.value("cleanup.policy") == "delete,compact"
		})
	}, func() error {
		r, err := c.admin.IncrementalAlterConfigs(c.ctx, resource(kafka.ConfigEntry{Name: "retention.ms", Value: "soon", IncrementalOperation: kafka.AlterConfigOpTypeSet}))
		return check("IncrementalAlterConfigs with a wrong value", err, func() bool { return r[0].Error.Code() == kafka.ErrInvalidConfig })
	}, func() error {
		r, err := c.admin.AlterConfigs(c.ctx, resource(kafka.ConfigEntry{Name: "segment.ms", Value: "86400000"}))
		return check("AlterConfigs", err, func() bool {
			return r[0].Error.Code() == kafka.ErrNoError && c.value("segment.ms") == "86400000" && c.value("cleanup.policy") == "delete"
		})
	})
}

func (c *calls) records() error {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": c.broker, "go.delivery.reports": false})
	if err != nil {
		return err
	}
	defer producer.Close()
	for range 10 {
		if err := producer.Produce(&kafka.Message{TopicPartition: c.first, Value: []byte("v")}, nil); err != nil {
			return err
		}
	}
	if left := producer.Flush(20_000); left > 0 {
		return fmt.Errorf("%d records were not sent", left)
	}
	return all(func() error {
		to := c.first
		to.Offset = 4
		r, err := c.admin.DeleteRecords(c.ctx, []kafka.TopicPartition{to})
		return check("DeleteRecords", err, func() bool { return r.DeleteRecordsResults[0].DeletedRecords.LowWatermark == 4 })
	}, func() error {
		for spec, want := range map[kafka.OffsetSpec]kafka.Offset{kafka.EarliestOffsetSpec: 4, kafka.LatestOffsetSpec: 10} {
			r, err := c.admin.ListOffsets(c.ctx, map[kafka.TopicPartition]kafka.OffsetSpec{c.first: spec})
			if err != nil {
				return err
			}
			for _, info := range r.ResultInfos {
				if info.Offset != want {
					return fmt.Errorf("ListOffsets: %v, want %v", info.Offset, want)
				}
			}
		}
		return check("ListOffsets", nil, func() bool { return true })
	})
}

func (c *calls) groups() error {
	at := c.first
	at.Offset = 5
	commit := []kafka.ConsumerGroupTopicPartitions{{Group: c.group, Partitions: []kafka.TopicPartition{at}}}
	return all(func() error {
		r, err := c.admin.AlterConsumerGroupOffsets(c.ctx, commit)
		return check("AlterConsumerGroupOffsets", err, func() bool { return r.ConsumerGroupsTopicPartitions[0].Partitions[0].Error == nil })
	}, func() error {
		r, err := c.admin.ListConsumerGroupOffsets(c.ctx, []kafka.ConsumerGroupTopicPartitions{{Group: c.group, Partitions: []kafka.TopicPartition{c.first}}})
		return check("ListConsumerGroupOffsets", err, func() bool { return r.ConsumerGroupsTopicPartitions[0].Partitions[0].Offset == 5 })
	}, func() error {
		r, err := c.admin.ListConsumerGroups(c.ctx)
		return check("ListConsumerGroups", err, func() bool {
			found := false
			for _, g := range r.Valid {
				found = found || g.GroupID == c.group
			}
			return found && len(r.Errors) == 0
		})
	}, func() error {
		r, err := c.admin.DescribeConsumerGroups(c.ctx, []string{c.group})
		return check("DescribeConsumerGroups", err, func() bool { return r.ConsumerGroupDescriptions[0].State == kafka.ConsumerGroupStateEmpty })
	}, func() error {
		r, err := c.admin.DeleteConsumerGroups(c.ctx, []string{c.group})
		return check("DeleteConsumerGroups", err, func() bool { return r.ConsumerGroupResults[0].Error.Code() == kafka.ErrNoError })
	})
}

func (c *calls) credentials() error {
	info := kafka.ScramCredentialInfo{Iterations: 4096, Mechanism: kafka.ScramMechanismSHA256}
	return all(func() error {
		r, err := c.admin.AlterUserScramCredentials(c.ctx, []kafka.UserScramCredentialUpsertion{{User: c.user, ScramCredentialInfo: info, Password: []byte("secret"), Salt: []byte("salt")}}, nil)
		return check("AlterUserScramCredentials", err, func() bool { return r.Errors[c.user].Code() == kafka.ErrNoError })
	}, func() error {
		r, err := c.admin.DescribeUserScramCredentials(c.ctx, []string{c.user})
		return check("DescribeUserScramCredentials", err, func() bool { return r.Descriptions[c.user].ScramCredentialInfos[0] == info })
	}, func() error {
		r, err := c.admin.AlterUserScramCredentials(c.ctx, nil, []kafka.UserScramCredentialDeletion{{User: c.user, Mechanism: kafka.ScramMechanismSHA256}})
		return check("AlterUserScramCredentials that deletes", err, func() bool { return r.Errors[c.user].Code() == kafka.ErrNoError })
	})
}

func (c *calls) acls() error {
	r, err := c.admin.CreateACLs(c.ctx, kafka.ACLBindings{{Type: kafka.ResourceTopic, Name: c.topic, ResourcePatternType: kafka.ResourcePatternTypeLiteral,
		Principal: "User:a", Host: "*", Operation: kafka.ACLOperationRead, PermissionType: kafka.ACLPermissionTypeAllow}})
	return check("CreateACLs", err, func() bool { return r[0].Error.Code() == kafka.ErrSecurityDisabled })
}

func (c *calls) deletion() error {
	r, err := c.admin.DeleteTopics(c.ctx, []string{c.topic})
	return check("DeleteTopics", err, func() bool { return r[0].Error.Code() == kafka.ErrNoError })
}
