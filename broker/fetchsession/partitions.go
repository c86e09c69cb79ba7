package fetchsession

import "github.com/twmb/franz-go/pkg/kmsg"

// Partition is one partition to read.
type Partition struct {
	// Topic is "" and TopicID is set for requests of v13 and later; below v13 it is the reverse.
	Topic     string
	TopicID   [16]byte
	Partition int32

	FetchOffset        int64
	CurrentLeaderEpoch int32 // -1 for no check
	LastFetchedEpoch   int32 // -1 for no check
	LogStartOffset     int64 // a follower's log start, -1 for consumers
	MaxBytes           int32
	// HighWatermark is what a follower knows (KIP-1166), math.MaxInt64 when it did not say.
	HighWatermark int64
}

// key is what a session finds its partitions by. Topic ids and names never meet in one session.
type key struct {
	topic     string
	id        [16]byte
	partition int32
}

// entry is a partition and what the client was last told of it.
type entry struct {
	Partition
	highWatermark int64
	lastStable    int64
	logStart      int64
	free          bool // not in use
	answered      bool // had records in the answer that is being made
}

// unknown is told of a partition that was not answered yet or whose last answer was an error, so that the next one is sent.
const unknown = -1

// partitions is an ordered set of entries. The zero value is empty.
type partitions struct {
	entries []entry
	order   []int32 // indexes of entries in the order of reading
	scratch []int32
	unused  []int32       // indexes of free entries
	index   map[key]int32 // nil without a session
}

func (p *partitions) at(i int) *entry { return &p.entries[p.order[i]] }

// fill makes the set from a full request. Without index a partition that is asked for twice is there twice.
func (p *partitions) fill(topics []kmsg.FetchRequestTopic, indexed bool) {
	n := 0
	for i := range topics {
		n += len(topics[i].Partitions)
	}
	p.entries = make([]entry, 0, n)
	p.order = make([]int32, 0, n)
	if indexed {
		p.index = make(map[key]int32, n)
	}
	p.merge(topics)
}

// merge adds the partitions of a request and takes over what it says of those that are there.
func (p *partitions) merge(topics []kmsg.FetchRequestTopic) {
	for i := range topics {
		t := &topics[i]
		k := key{topic: t.Topic, id: t.TopicID}
		for j := range t.Partitions {
			k.partition = t.Partitions[j].Partition
			if at, ok := p.index[k]; ok {
				p.entries[at].request(&t.Partitions[j])
				continue
			}
			p.add(k, &t.Partitions[j])
		}
	}
}

func (p *partitions) add(k key, r *kmsg.FetchRequestTopicPartition) {
	var at int32
	if n := len(p.unused); n > 0 {
		at, p.unused = p.unused[n-1], p.unused[:n-1]
	} else {
		at = int32(len(p.entries))
		p.entries = append(p.entries, entry{})
	}
	e := &p.entries[at]
	*e = entry{
		Partition:     Partition{Topic: k.topic, TopicID: k.id, Partition: k.partition},
		highWatermark: unknown, lastStable: unknown, logStart: unknown,
	}
	e.request(r)
	p.order = append(p.order, at)
	if p.index != nil {
		p.index[k] = at
	}
}

// request takes over what a request says of the partition.
func (e *entry) request(r *kmsg.FetchRequestTopicPartition) {
	e.FetchOffset = r.FetchOffset
	e.CurrentLeaderEpoch = r.CurrentLeaderEpoch
	e.LastFetchedEpoch = r.LastFetchedEpoch
	e.LogStartOffset = r.LogStartOffset
	e.MaxBytes = r.PartitionMaxBytes
	e.HighWatermark = r.HighWatermark
}

// forget removes partitions. Unknown ones are passed over.
func (p *partitions) forget(topics []kmsg.FetchRequestForgottenTopic) {
	removed := false
	for i := range topics {
		k := key{topic: topics[i].Topic, id: topics[i].TopicID}
		for _, k.partition = range topics[i].Partitions {
			at, ok := p.index[k]
			if !ok {
				continue
			}
			delete(p.index, k)
			p.entries[at] = entry{free: true}
			p.unused = append(p.unused, at)
			removed = true
		}
	}
	if !removed {
		return
	}
	kept := p.order[:0]
	for _, at := range p.order {
		if !p.entries[at].free {
			kept = append(kept, at)
		}
	}
	p.order = kept
}

// rotate moves the partitions that had records behind those that had none, so that a busy one does not keep the others from being read.
func (p *partitions) rotate() {
	p.scratch = p.scratch[:0]
	kept := p.order[:0]
	for _, at := range p.order {
		if e := &p.entries[at]; e.answered {
			e.answered = false
			p.scratch = append(p.scratch, at)
		} else {
			kept = append(kept, at)
		}
	}
	p.order = append(kept, p.scratch...)
}
