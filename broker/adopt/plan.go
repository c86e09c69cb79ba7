package adopt

import (
	"maps"
	"slices"
	"strings"

	"gregor/broker/controller"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// Options say what Inspect looks at.
type Options struct {
	FS   vfs.FS
	Dirs []string // log.dirs
	// Configs are the own keys of topics that the directories do not tell, nil for none; see ReadConfigs.
	Configs Configs
	// CheckConfig says what is wrong with a topic's keys, nil when nothing is.
	CheckConfig func(keys map[string]string) error
	// Full reads every segment and compares every checksum. Without, only what is needed is read.
	Full bool
	// AllowMissing plans topics whose partitions are not all here: those that are missing will be made, empty.
	AllowMissing bool
	// Locked says that the caller holds the locks of the directories.
	Locked bool
}

// Plan is what Inspect found and what would be made of it.
type Plan struct {
	Dirs      []Dir
	ClusterID string // "" when no directory has one
	NodeID    int32  // -1 when no directory has one
	// KRaft says that topics and configurations are from __cluster_metadata.
	KRaft           bool
	MetadataVersion int16

	Topics         []Topic // sorted by name
	Quotas         []controller.Entity
	NextProducerID int64
	Groups         Groups
	Transactions   Transactions

	// Blockers stand in the way, each with what to do. With one of them nothing is done.
	Blockers []string
	// Lost is what Kafka had and is not carried; the files of it stay where they are.
	Lost []string
	// Notes are what else should be known.
	Notes []string
}

// Dir is one log directory.
type Dir struct {
	Path  string
	Clean bool
	// Identity is meta.properties, Version -1 without one.
	Identity logdir.Identity
}

// Source says where a topic's configuration is from.
type Source string

// Sources of configurations.
const (
	FromMetadata Source = "KRaft metadata"
	FromFile     Source = "file"
	FromDefaults Source = "defaults of internal topics"
	FromCaution  Source = "not known: nothing is deleted until it is configured"
)

// Topic is a topic to be taken over.
type Topic struct {
	Name   string
	ID     [16]byte
	NewID  bool // no directory had an id
	Config map[string]string
	Source Source
	// Partitions is indexed by number.
	Partitions []Partition
}

// Partition is one partition of a Topic.
type Partition struct {
	// Path is its directory, "" when it is not here.
	Path string
	// LeaderEpoch is the newest that is known, -1 for none.
	LeaderEpoch int32
	Segments    int
	Bytes       int64
	Formats     [3]int // segments that begin with a batch of magic 0, 1, 2
	// Start and End are the offsets of the first record and after the last; End is -1 unless all was read.
	Start, End int64
}

// Groups is what is in __consumer_offsets.
type Groups struct {
	Groups  int // that have a committed offset or members
	Offsets int // committed
	Pending int // offsets in transactions without an end
	Newer   int // records of the group types of KIP-848 and later, which are kept and not served
	Bad     int // records that do not parse
}

// Transactions is what is in __transaction_state.
type Transactions struct {
	IDs  int // transactional ids
	Open int // transactions that are ongoing or being ended
}

func (p *Plan) block(text string) { p.Blockers = append(p.Blockers, text) }

// BlockedError says why directories cannot be taken over.
type BlockedError struct{ Blockers []string }

func (e *BlockedError) Error() string {
	return "this data directory of Apache Kafka cannot be taken over, and nothing was changed:\n" + strings.Join(e.Blockers, "\n")
}

// Err is nil when the plan can be carried out, else a *BlockedError.
func (p *Plan) Err() error {
	if len(p.Blockers) == 0 {
		return nil
	}
	return &BlockedError{p.Blockers}
}

// Adoption is the plan as the controller takes it. Partitions begin a new leader epoch.
func (p *Plan) Adoption() controller.Adoption {
	a := controller.Adoption{ClusterID: p.ClusterID, NextProducerID: p.NextProducerID, Entities: p.Quotas}
	for i := range p.Topics {
		t := controller.Topic{Name: p.Topics[i].Name, ID: p.Topics[i].ID, Config: p.Topics[i].Config}
		for _, part := range p.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, controller.Partition{LeaderEpoch: part.LeaderEpoch + 1})
		}
		a.Topics = append(a.Topics, t)
	}
	return a
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
