package kraft

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"
)

// Resource types of configurations.
const (
	TopicResource  int8 = 2
	BrokerResource int8 = 4
)

// Resource is what a configuration belongs to. A broker's name is its id, "" stands for all brokers.
type Resource struct {
	Type int8
	Name string
}

// Topic is a topic with all its partitions.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions map[int32]Partition
}

// Partition is the state of one partition.
type Partition struct {
	Replicas    []int32
	ISR         []int32
	Leader      int32 // -1: none
	LeaderEpoch int32
	// Epoch grows with each change of the partition.
	Epoch int32
	// Directories are the ids of the log directories of Replicas, in their order; nil before KIP-858.
	Directories [][16]byte
}

// Broker is the registration of a broker.
type Broker struct {
	Epoch int64
	// LogDirs are the ids of its log directories, nil when not known.
	LogDirs [][16]byte
}

// Image is the metadata at one offset. Make it with NewImage.
type Image struct {
	Topics   map[[16]byte]*Topic
	Configs  map[Resource]map[string]string
	Features map[string]int16 // finalized levels
	Brokers  map[int32]Broker
	// NextProducerID is the first producer id that was not given to a broker.
	NextProducerID int64

	names     map[string][16]byte
	acls      map[[16]byte]struct{}
	quotas    map[string]*Quota
	scram     map[string]struct{}
	tokens    map[string]struct{}
	unknown   map[kind]int
	inTxn     bool
	suspended [][]byte // records of a transaction that has no end yet
}

// NewImage is an image of nothing.
func NewImage() *Image {
	return &Image{
		Topics: map[[16]byte]*Topic{}, Configs: map[Resource]map[string]string{}, Features: map[string]int16{}, Brokers: map[int32]Broker{},
		names: map[string][16]byte{}, acls: map[[16]byte]struct{}{}, quotas: map[string]*Quota{}, scram: map[string]struct{}{},
		tokens: map[string]struct{}{}, unknown: map[kind]int{},
	}
}

// Topic finds a topic by name, nil when there is none.
func (m *Image) Topic(name string) *Topic {
	id, ok := m.names[name]
	if !ok {
		return nil
	}
	return m.Topics[id]
}

// TopicNames are sorted.
func (m *Image) TopicNames() []string { return slices.Sorted(maps.Keys(m.names)) }

// Quota is what one entity may use.
type Quota struct {
	// Entity has the types that name it (user, client-id, ip); a nil name stands for all that have no quota of their own.
	Entity map[string]*string
	Values map[string]float64
}

// ACLs, Credentials and Tokens are how many access control entries, SCRAM credentials and delegation tokens there are.
func (m *Image) ACLs() int { return len(m.acls) }

// Quotas are the client quotas, in the order of their entities.
func (m *Image) Quotas() []Quota {
	all := make([]Quota, 0, len(m.quotas))
	for _, key := range slices.Sorted(maps.Keys(m.quotas)) {
		all = append(all, *m.quotas[key])
	}
	return all
}

// Credentials: see ACLs.
func (m *Image) Credentials() int { return len(m.scram) }

// Tokens: see ACLs.
func (m *Image) Tokens() int { return len(m.tokens) }

// Apply takes over one record's value. Records of a metadata transaction (KIP-868) count when it ends; b is not kept but for those.
func (m *Image) Apply(b []byte) error {
	k, version, r, err := frame(b)
	if err != nil {
		return err
	}
	newest, known := k.newest()
	switch {
	case !known:
		m.unknown[k]++
		return nil
	case version > newest:
		return fmt.Errorf("%w: record of kind %d has version %d, the newest known is %d", ErrFormat, k, version, newest)
	}
	switch k {
	case beginTransaction:
		m.inTxn, m.suspended = true, nil
		return nil
	case endTransaction:
		return m.endTransaction()
	case abortTransaction:
		m.inTxn, m.suspended = false, nil
		return nil
	}
	if m.inTxn {
		m.suspended = append(m.suspended, slices.Clone(b))
		return nil
	}
	if err := m.apply(k, version, &r); err != nil {
		return err
	}
	if err := r.Complete(); err != nil {
		return fmt.Errorf("%w: record of kind %d, version %d, is cut off or too long", ErrFormat, k, version)
	}
	return nil
}

func (m *Image) endTransaction() error {
	all := m.suspended
	m.inTxn, m.suspended = false, nil
	for _, b := range all {
		if err := m.Apply(b); err != nil {
			return err
		}
	}
	return nil
}

// apply changes nothing before the record was read whole; the caller says what is wrong with one that is not.
func (m *Image) apply(k kind, version uint32, r *kbin.Reader) error {
	switch k {
	case topicRecord:
		return m.addTopic(r)
	case partitionRecord:
		return m.addPartition(version, r)
	case partitionChange:
		return m.changePartition(r)
	case removeTopic:
		m.removeTopic(r)
	case configRecord:
		m.config(r)
	case featureLevel:
		m.feature(r)
	case producerIDs:
		m.producerIDs(r)
	case registerBroker, unregisterBroker, brokerRegistrationChange:
		m.broker(k, version, r)
	default:
		m.security(k, r)
	}
	return nil
}

func (m *Image) addTopic(r *kbin.Reader) error {
	name, id := r.CompactString(), r.Uuid()
	noTags(r)
	if !r.Ok() {
		return nil
	}
	if old, ok := m.names[name]; ok && old != id {
		return fmt.Errorf("%w: topic %.250q has two ids", ErrFormat, name)
	}
	if t := m.Topics[id]; t != nil && t.Name != name {
		return fmt.Errorf("%w: topics %.250q and %.250q have one id", ErrFormat, t.Name, name)
	}
	if m.Topics[id] == nil {
		m.Topics[id] = &Topic{Name: name, ID: id, Partitions: map[int32]Partition{}}
	}
	m.names[name] = id
	return nil
}

func (m *Image) removeTopic(r *kbin.Reader) {
	id := r.Uuid()
	noTags(r)
	if t := m.Topics[id]; t != nil && r.Ok() {
		delete(m.Topics, id)
		delete(m.names, t.Name)
		delete(m.Configs, Resource{TopicResource, t.Name})
	}
}

func (m *Image) addPartition(version uint32, r *kbin.Reader) error {
	n, id := r.Int32(), r.Uuid()
	p := Partition{Replicas: ids32(r), ISR: ids32(r)}
	ids32(r) // being removed
	ids32(r) // being added
	p.Leader, p.LeaderEpoch, p.Epoch = r.Int32(), r.Int32(), r.Int32()
	if version >= 1 {
		p.Directories = uuids(r)
	}
	noTags(r)
	if !r.Ok() {
		return nil
	}
	t := m.Topics[id]
	if t == nil || n < 0 {
		return fmt.Errorf("%w: partition %d of a topic that does not exist", ErrFormat, n)
	}
	t.Partitions[n] = p
	return nil
}

// leaderUnchanged stands in a PartitionChangeRecord for the leader as it was.
const leaderUnchanged = -2

func (m *Image) changePartition(r *kbin.Reader) error {
	n, id := r.Int32(), r.Uuid()
	leader := int32(leaderUnchanged)
	var isr, replicas []int32
	var dirs [][16]byte
	tags(r, func(tag uint32, r *kbin.Reader) {
		switch tag {
		case 0:
			isr = ids32(r)
		case 1:
			leader = r.Int32()
		case 2:
			replicas = ids32(r)
		case 8:
			dirs = uuids(r)
		}
	})
	if !r.Ok() {
		return nil
	}
	t := m.Topics[id]
	if t == nil {
		return fmt.Errorf("%w: change of partition %d of a topic that does not exist", ErrFormat, n)
	}
	p, ok := t.Partitions[n]
	if !ok {
		return fmt.Errorf("%w: change of partition %d of topic %.250q, which does not exist", ErrFormat, n, t.Name)
	}
	if isr != nil {
		p.ISR = isr
	}
	if replicas != nil {
		p.Replicas = replicas
	}
	if dirs != nil {
		p.Directories = dirs
	}
	if leader != leaderUnchanged {
		p.Leader = leader
		p.LeaderEpoch++
	}
	p.Epoch++
	t.Partitions[n] = p
	return nil
}
