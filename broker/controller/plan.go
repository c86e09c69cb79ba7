package controller

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxPartitionsPerRequest is how many partitions Kafka makes in one request.
const maxPartitionsPerRequest = 10000

// NewTopic is a topic to be created.
type NewTopic struct {
	Name string
	// Partitions and Replication are -1 for the default, and with an Assignment.
	Partitions  int32
	Replication int16
	// Assignment chooses the replicas by hand; empty leaves it to the controller.
	Assignment []Assignment
	// Config is the topic's own keys. A nil value is an error that is reported for the topic.
	Config map[string]*string
}

// Assignment is the replicas of one partition, the preferred leader first.
type Assignment struct {
	Partition int32
	Replicas  []int32
}

// cluster is what planning needs to know.
type cluster struct {
	topics  map[string]struct{}
	brokers []int32
	start   int // broker that the first leader is chosen from, as an index
	conf    *Config
}

// plan is what becomes of one NewTopic: a topic with its state, or an *Error.
type plan struct {
	topic Topic
	err   error
}

// planTopics decides on a whole request, without side effects. Topics of one request see each other, in order. The caller has seen to it that
// no name is there twice.
func planTopics(cl *cluster, topics []NewTopic) []plan {
	taken := map[string]string{}
	for name := range cl.topics {
		taken[unified(name)] = name
	}
	total := 0
	plans := make([]plan, len(topics))
	for i := range topics {
		if total > maxPartitionsPerRequest {
			break // no more of what is not made anyway
		}
		p := &plans[i]
		p.topic, p.err = planTopic(cl, taken, &topics[i])
		if p.err != nil {
			continue
		}
		total += len(p.topic.Partitions)
		taken[unified(p.topic.Name)] = p.topic.Name
		cl.start += len(p.topic.Partitions)
	}
	if total > maxPartitionsPerRequest {
		for i := range plans {
			plans[i] = plan{err: tooManyPartitions()}
		}
	}
	return plans
}

// planTopic checks in Kafka's order: name, existence, configuration, numbers.
func planTopic(cl *cluster, taken map[string]string, n *NewTopic) (Topic, error) {
	if n.Name == clusterMetadata {
		return Topic{}, refuse(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", n.Name)
	}
	if err := CheckName(n.Name); err != nil {
		return Topic{}, err
	}
	if _, ok := cl.topics[n.Name]; ok {
		return Topic{}, refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", n.Name)
	}
	if other, ok := taken[unified(n.Name)]; ok {
		return Topic{}, refuse(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", n.Name, other)
	}
	config, err := planConfig(cl.conf, n.Config)
	if err != nil {
		return Topic{}, err
	}
	var replicas [][]int32
	if len(n.Assignment) > 0 {
		replicas, err = planManual(cl, n)
	} else {
		replicas, err = planAutomatic(cl, n)
	}
	if err != nil {
		return Topic{}, err
	}
	t := Topic{Name: n.Name, ID: NewID(), Config: config, Partitions: make([]Partition, len(replicas))}
	for i := range t.Partitions {
		t.Partitions[i].Replicas = replicas[i]
		lead(&t.Partitions[i], cl.brokers)
	}
	return t, nil
}

func planConfig(conf *Config, given map[string]*string) (map[string]string, error) {
	own := make(map[string]string, len(given))
	var null []string
	for k, v := range given {
		if v == nil {
			null = append(null, k)
			continue
		}
		own[k] = *v
	}
	if null != nil {
		slices.Sort(null)
		return nil, refuse(kerr.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	if err := conf.CheckConfig(own); err != nil {
		return nil, &Error{kerr.InvalidConfig, err.Error()}
	}
	return own, nil
}

func planAutomatic(cl *cluster, n *NewTopic) ([][]int32, error) {
	partitions, replication := n.Partitions, int(n.Replication)
	switch {
	case replication < -1 || replication == 0:
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case partitions < -1 || partitions == 0:
		return nil, refuse(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	if partitions == -1 {
		partitions = cl.conf.Partitions
	}
	possible := max(cl.conf.replicas(len(cl.brokers)), 1)
	if replication == -1 {
		replication = min(int(cl.conf.Replication), possible)
	}
	if IsInternal(n.Name) {
		// Kafka's defaults for its own topics, which tools repeat, are made for three brokers.
		replication = min(replication, possible)
	}
	if partitions > maxPartitionsPerRequest {
		return nil, tooManyPartitions()
	}
	if replication > len(cl.brokers) {
		return nil, tooFewBrokers(replication, len(cl.brokers))
	}
	if replication > possible {
		return nil, refuse(kerr.InvalidReplicationFactor, tooManyReplicas, replication, possible)
	}
	return assign(cl.brokers, 0, partitions, replication, cl.start), nil
}

// tooManyReplicas says that replicas would not follow their leader.
const tooManyReplicas = "Partitions with %d replicas cannot be made: replication between brokers is not built, there can be %d."

// replicas is how many a partition can have with so many brokers.
func (c *Config) replicas(brokers int) int {
	if c.MaxReplication > 0 {
		return min(brokers, int(c.MaxReplication))
	}
	return brokers
}

func tooManyPartitions() *Error {
	return refuse(kerr.PolicyViolation, "Excessively large number of partitions per request.")
}

func tooFewBrokers(replication, brokers int) *Error {
	return refuse(kerr.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): The target replication factor of %d cannot be reached because only %d broker(s) are registered.",
		replication, replication, brokers)
}

func planManual(cl *cluster, n *NewTopic) ([][]int32, error) {
	if n.Replication != -1 {
		return nil, refuse(kerr.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if n.Partitions != -1 {
		return nil, refuse(kerr.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	if len(n.Assignment) > maxPartitionsPerRequest {
		return nil, tooManyPartitions()
	}
	byNumber := make(map[int32][]int32, len(n.Assignment))
	width := len(n.Assignment[0].Replicas)
	for _, a := range n.Assignment {
		if _, ok := byNumber[a.Partition]; ok {
			return nil, refuse(kerr.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		if err := checkReplicas(a.Replicas, width, cl.brokers); err != nil {
			return nil, err
		}
		if n := cl.conf.replicas(len(a.Replicas)); len(a.Replicas) > n {
			return nil, refuse(kerr.InvalidReplicaAssignment, tooManyReplicas, len(a.Replicas), n)
		}
		byNumber[a.Partition] = a.Replicas
	}
	replicas := make([][]int32, len(n.Assignment))
	for i := range replicas {
		r, ok := byNumber[int32(i)]
		if !ok {
			return nil, refuse(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		replicas[i] = slices.Clone(r)
	}
	return replicas, nil
}

// checkReplicas checks the replicas that someone chose for one partition; width is how many the others have.
func checkReplicas(replicas []int32, width int, brokers []int32) error {
	if len(replicas) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for i, id := range sorted {
		if !slices.Contains(brokers, id) {
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if i > 0 && sorted[i-1] == id {
			return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if len(replicas) != width {
		return refuse(kerr.InvalidReplicaAssignment, "The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).",
			len(replicas), width)
	}
	return nil
}

// given makes a NewTopic's Config of keys that all have values.
func given(own map[string]string) map[string]*string {
	out := make(map[string]*string, len(own))
	for k, v := range own {
		out[k] = &v
	}
	return out
}
