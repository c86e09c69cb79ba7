package raw

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Error codes of the protocol that set-up has to tell apart.
const (
	codeUnknownTopic  = 3
	codeTopicExists   = 36
	adminTimeoutMilli = 60_000
)

// Versions asks ApiVersions and fails unless the answer is without error.
func (c *Conn) Versions() error {
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.SetVersion(3)
	versions.ClientSoftwareName, versions.ClientSoftwareVersion = "gregor-bench", "1"
	resp, err := c.Do(versions)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.ApiVersionsResponse).ErrorCode; code != 0 {
		return fmt.Errorf("ApiVersions: error code %d", code)
	}
	return nil
}

// Ready asks ApiVersions and Metadata for all topics, as a client does first, and fails unless both answer without error.
func (c *Conn) Ready() error {
	if err := c.Versions(); err != nil {
		return err
	}
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(9)
	resp, err := c.Do(meta)
	if err != nil {
		return err
	}
	if len(resp.(*kmsg.MetadataResponse).Brokers) == 0 {
		return errors.New("Metadata: no broker in the answer")
	}
	return nil
}

// CreateTopics makes topics of one partition and one replica in one request. The answer may come before they are led.
func (c *Conn) CreateTopics(names ...string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(5)
	req.TimeoutMillis = adminTimeoutMilli
	for _, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		req.Topics = append(req.Topics, topic)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("CreateTopics %s: error code %d", t.Topic, t.ErrorCode)
		}
	}
	return nil
}

// AllLed asks Metadata for all topics and fails unless there are at least so many, and all are led.
func (c *Conn) AllLed(topics int) error {
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(9)
	resp, err := c.Do(meta)
	if err != nil {
		return err
	}
	led := 0
	for _, t := range resp.(*kmsg.MetadataResponse).Topics {
		for _, p := range t.Partitions {
			if t.ErrorCode == 0 && p.ErrorCode == 0 && p.Leader >= 0 {
				led++
			}
		}
	}
	if led < topics {
		return fmt.Errorf("Metadata: %d of %d topics are led", led, topics)
	}
	return nil
}

// WaitLed repeats AllLed until it succeeds.
func (c *Conn) WaitLed(topics int, limit time.Duration) error {
	for start := time.Now(); ; time.Sleep(min(max(time.Since(start)/50, time.Millisecond), 50*time.Millisecond)) {
		err := c.AllLed(topics)
		if err == nil || errors.Is(err, ErrFrame) || time.Since(start) > limit {
			return err
		}
	}
}

// CreateTopic makes a topic with one replica and waits until every partition answers.
func (c *Conn) CreateTopic(name string, partitions int, configs map[string]string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(5)
	req.TimeoutMillis = adminTimeoutMilli
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), 1
	for k, v := range configs {
		cfg := kmsg.NewCreateTopicsRequestTopicConfig()
		cfg.Name, cfg.Value = k, &v
		topic.Configs = append(topic.Configs, cfg)
	}
	req.Topics = append(req.Topics, topic)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode != 0 && t.ErrorCode != codeTopicExists {
			return fmt.Errorf("CreateTopics %s: error code %d", name, t.ErrorCode)
		}
	}
	return c.WaitPartitions(name, partitions, 120*time.Second)
}

// DeleteTopic deletes a topic; one that is not there is no error.
func (c *Conn) DeleteTopic(name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.SetVersion(4)
	req.TimeoutMillis = adminTimeoutMilli
	req.TopicNames = []string{name}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
		if t.ErrorCode != 0 && t.ErrorCode != codeUnknownTopic {
			return fmt.Errorf("DeleteTopics %s: error code %d", name, t.ErrorCode)
		}
	}
	return nil
}

// SetTopicConfig sets one key of a topic.
func (c *Conn) SetTopicConfig(topic, key, value string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.SetVersion(1)
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	resource.Configs = append(resource.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: &value})
	req.Resources = append(req.Resources, resource)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if r.ErrorCode != 0 {
			return fmt.Errorf("IncrementalAlterConfigs %s: error code %d", topic, r.ErrorCode)
		}
	}
	return nil
}

// EndOffsets asks ListOffsets for the latest offset of every partition and fails unless all answer without error.
func (c *Conn) EndOffsets(topic string, partitions int) ([]int64, error) {
	return c.offsets(topic, partitions, -1)
}

// StartOffsets asks for the earliest.
func (c *Conn) StartOffsets(topic string, partitions int) ([]int64, error) {
	return c.offsets(topic, partitions, -2)
}

func (c *Conn) offsets(topic string, partitions int, timestamp int64) ([]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.SetVersion(5)
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for i := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = int32(i), timestamp, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	ends := make([]int64, partitions)
	seen := 0
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return nil, fmt.Errorf("ListOffsets %s: error code %d", t.Topic+"-"+strconv.Itoa(int(p.Partition)), p.ErrorCode)
			}
			if int(p.Partition) < partitions {
				ends[p.Partition] = p.Offset
				seen++
			}
		}
	}
	if seen != partitions {
		return nil, fmt.Errorf("ListOffsets %s: %d of %d partitions in the answer", topic, seen, partitions)
	}
	return ends, nil
}

// WaitPartitions repeats EndOffsets until it succeeds; it asks often at first and seldom later, so that asking costs the
// broker little.
func (c *Conn) WaitPartitions(topic string, partitions int, limit time.Duration) error {
	start := time.Now()
	for {
		_, err := c.EndOffsets(topic, partitions)
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrFrame) || time.Since(start) > limit {
			return err
		}
		time.Sleep(min(max(time.Since(start)/50, time.Millisecond), 50*time.Millisecond))
	}
}
