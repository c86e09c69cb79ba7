package controller

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"gregor/broker/meta"
)

// Topic is one topic as the tree has it.
type Topic struct {
	Name string
	ID   [16]byte
	// Partitions is indexed by partition number.
	Partitions []Partition
	// Config is the topic's own keys, never nil.
	Config map[string]string
	// Deleting says that the topic is marked for deletion: its replicas are to be removed and CompleteDelete called.
	Deleting bool

	noID bool // the tree has none
}

// Partition is one partition's assignment and leadership.
type Partition struct {
	Replicas []int32
	ISR      []int32
	// Leader is -1 when no live replica may lead.
	Leader      int32
	LeaderEpoch int32
	// Version is that of the state's node, ControllerEpoch that of the controller that wrote it.
	Version         int32
	ControllerEpoch int32
}

// NewID makes an id for a topic or a cluster: a random UUID (RFC 9562 version 4), which is never one of Kafka's reserved ids and whose text
// never begins with "-", as tools could take it for an option.
func NewID() [16]byte {
	for {
		var id [16]byte
		rand.Read(id[:]) // never fails
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if FormatID(id)[0] != '-' {
			return id
		}
	}
}

// FormatID is an id's text: 22 characters of base64 for URLs.
func FormatID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads what FormatID writes.
func ParseID(s string) (id [16]byte, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("id %q is not 22 characters of base64", s)
	}
	return [16]byte(b), nil
}

// decodeTopic reads /brokers/topics/<name>. Partitions have no state yet.
func decodeTopic(name string, data []byte) (Topic, error) {
	n, err := meta.DecodeTopic(data)
	if err != nil {
		return Topic{}, at(meta.TopicPath(name), err)
	}
	t := Topic{Name: name, ID: n.ID, noID: n.ID == [16]byte{}, Partitions: make([]Partition, len(n.Replicas))}
	for i := range t.Partitions {
		replicas, ok := n.Replicas[int32(i)]
		if !ok {
			return Topic{}, fmt.Errorf("%w: %s: %d partitions, but none with number %d", meta.ErrBadNode, meta.TopicPath(name), len(t.Partitions), i)
		}
		t.Partitions[i] = Partition{Replicas: replicas, Leader: -1, LeaderEpoch: -1}
	}
	return t, nil
}

// encodeTopic is the reverse of decodeTopic.
func encodeTopic(t *Topic) []byte {
	n := meta.TopicNode{ID: t.ID, Replicas: make(meta.Replicas, len(t.Partitions)), Adding: meta.Replicas{}, Removing: meta.Replicas{}}
	for i := range t.Partitions {
		n.Replicas[int32(i)] = t.Partitions[i].Replicas
	}
	return n.Encode()
}
