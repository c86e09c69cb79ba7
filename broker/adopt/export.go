package adopt

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gregor/broker/controller"
	"gregor/broker/kraft"
	"gregor/broker/meta"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// ErrNotClean is a directory of a broker that was not stopped cleanly: its offsets are not final.
var ErrNotClean = errors.New("the last stop was not clean; start gregor on it, stop it, and try again")

// errKey is a value that zookeeper-shell cannot read.
var errKey = errors.New("cannot be given to zookeeper-shell: it has a quotation mark or a line break in it")

// Leave hands directories of this broker over to Apache Kafka. The broker is stopped; Locked by the caller.
type Leave struct {
	FS   vfs.FS
	Dirs []string // log.dirs, the first of which has the metadata
	Tree meta.Tree
	Now  time.Time
	// Release is the Apache Kafka, "4.4", whose features are finalized where there is no KRaft metadata yet.
	Release string
}

// Left says what was done.
type Left struct {
	Topics, Partitions int
	Records            int // appended to Kafka's metadata log
	ClusterID          string
	NodeID             int32
	// Changed are settings that Kafka gets another value of.
	Changed []string
}

// kafka4SegmentBytes is the least that Kafka 4.0 and newer take for segment.bytes (KIP-1030). With less in its metadata they do not start.
const kafka4SegmentBytes = 1 << 20

// fitConfig gives a topic's keys as the release takes them.
func (l *Leave) fitConfig(topic string, own map[string]string, left *Left) map[string]string {
	n, err := strconv.ParseInt(own["segment.bytes"], 10, 64)
	if err != nil || n >= kafka4SegmentBytes || strings.HasPrefix(l.Release, "3.") {
		return own
	}
	fit := maps.Clone(own)
	fit["segment.bytes"] = strconv.Itoa(kafka4SegmentBytes)
	left.Changed = append(left.Changed, fmt.Sprintf("topic %s: segment.bytes is %d, Kafka %s gets %s, the least that it takes", topic, n, l.Release, fit["segment.bytes"]))
	return fit
}

// ToKRaft makes the directories ready for an Apache Kafka in KRaft mode with one node that is broker and controller: what __cluster_metadata
// must say, meta.properties of version 1, and the marker of the clean stop with the broker's epoch. In this order, so that after a crash it can be done again.
func (l *Leave) ToKRaft(ctx context.Context) (Left, error) {
	surveys, id, err := l.look()
	if err != nil {
		return Left{}, err
	}
	levels, ok := kraft.Release(l.Release)
	if !ok {
		return Left{}, fmt.Errorf("release %q is not known; known are 3.9 and 4.0 to 4.4", l.Release)
	}
	w := &kraft.Wanted{Node: id.BrokerID, Features: levels, NowMs: l.Now.UnixMilli(), Configs: map[string]map[string]string{}}
	homes := map[logdir.TopicPartition][16]byte{}
	for _, s := range surveys {
		if s.Identity.DirectoryID == "" {
			s.Identity.DirectoryID = newDirectoryID()
		}
		dir, err := controller.ParseID(s.Identity.DirectoryID)
		if err != nil {
			return Left{}, fmt.Errorf("%s/meta.properties: directory.id: %w", s.Path, err)
		}
		w.LogDirs = append(w.LogDirs, dir)
		for _, p := range s.Partitions {
			homes[p.TopicPartition] = dir
		}
	}
	left := Left{ClusterID: id.ClusterID, NodeID: id.BrokerID}
	if err := l.want(ctx, w, homes, &left); err != nil {
		return Left{}, err
	}
	for _, s := range surveys { // first, since the metadata speaks of the ids of the directories
		if s.Identity.Version == 1 && s.Identity.BrokerID >= 0 {
			continue
		}
		s.Identity.Version, s.Identity.BrokerID, s.Identity.ClusterID = 1, id.BrokerID, id.ClusterID
		if err := logdir.WriteIdentity(l.FS, s.Path, s.Identity, l.Now); err != nil {
			return Left{}, err
		}
	}
	done, err := kraft.Write(l.FS, kraft.Path(l.metadataDir(surveys)), w)
	if err != nil {
		return Left{}, err
	}
	left.Records = done.Records
	for _, s := range surveys {
		if s.BrokerEpoch == done.BrokerEpoch {
			continue
		}
		if err := logdir.WriteMarker(l.FS, s.Path, done.BrokerEpoch); err != nil {
			return Left{}, err
		}
	}
	return left, nil
}

// look surveys the directories: all of one broker, all stopped cleanly.
func (l *Leave) look() ([]*logdir.Survey, logdir.Identity, error) {
	var surveys []*logdir.Survey
	id := logdir.Identity{BrokerID: -1}
	for _, dir := range l.Dirs {
		s, err := logdir.Look(l.FS, dir)
		switch {
		case err != nil:
			return nil, id, err
		case !s.Clean:
			return nil, id, fmt.Errorf("%s: %w", dir, ErrNotClean)
		case s.Identity.BrokerID < 0 || s.Identity.ClusterID == "":
			return nil, id, fmt.Errorf("%s/meta.properties does not say which broker and cluster the directory belongs to; start gregor on it once", dir)
		case id.BrokerID >= 0 && (id.BrokerID != s.Identity.BrokerID || id.ClusterID != s.Identity.ClusterID):
			return nil, id, fmt.Errorf("%s belongs to another broker or cluster than %s; name directories of one broker", dir, l.Dirs[0])
		}
		id = s.Identity
		surveys = append(surveys, s)
	}
	return surveys, id, nil
}

// metadataDir is the directory that has Kafka's metadata, or is to have it: Kafka looks for it in the first of log.dirs.
func (l *Leave) metadataDir(surveys []*logdir.Survey) string {
	for _, s := range surveys {
		if _, err := l.FS.Stat(kraft.Path(s.Path)); !errors.Is(err, fs.ErrNotExist) {
			return s.Path
		}
	}
	return l.Dirs[0]
}

// want fills w with the topics of the tree.
func (l *Leave) want(ctx context.Context, w *kraft.Wanted, homes map[logdir.TopicPartition][16]byte, left *Left) error {
	topics, err := controller.ReadTopics(ctx, l.Tree)
	if err != nil {
		return fmt.Errorf("reading the topics: %w", err)
	}
	for i := range topics {
		t := &kraft.Topic{Name: topics[i].Name, ID: topics[i].ID, Partitions: map[int32]kraft.Partition{}}
		for n, p := range topics[i].Partitions {
			home, ok := homes[logdir.TopicPartition{Topic: t.Name, Partition: int32(n)}]
			if !ok {
				home = w.LogDirs[0] // Kafka makes it there
			}
			t.Partitions[int32(n)] = kraft.Partition{LeaderEpoch: max(p.LeaderEpoch, 0), Directories: [][16]byte{home}}
			left.Partitions++
		}
		left.Topics++
		w.Topics = append(w.Topics, t)
		w.Configs[t.Name] = l.fitConfig(t.Name, topics[i].Config, left)
	}
	if w.Quotas, err = quotasOf(ctx, l.Tree); err != nil {
		return err
	}
	block, err := lastBlock(ctx, l.Tree)
	if err == nil {
		w.NextProducerID = block.End + 1
	}
	return err
}

// lastBlock is the last block of producer ids; its end is -1 when none was given out.
func lastBlock(ctx context.Context, tree meta.Tree) (meta.ProducerIDBlock, error) {
	data, _, err := tree.Get(ctx, meta.ProducerIDBlockPath)
	if err != nil {
		return meta.ProducerIDBlock{}, err
	}
	if len(data) == 0 {
		return meta.ProducerIDBlock{End: -1}, nil
	}
	return meta.DecodeProducerIDBlock(data)
}

// newDirectoryID is an id for a log directory as Kafka makes them; the first hundred are reserved.
func newDirectoryID() string {
	var b [16]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if s := base64.RawURLEncoding.EncodeToString(b[:]); s[0] != '-' && b[0] != 0 {
			return s
		}
	}
}

// ToZooKeeper makes the directories ready for an Apache Kafka with ZooKeeper (meta.properties of version 0) and prints commands of Kafka's zookeeper-shell that
// make or replace the nodes it must find. They are written for a ZooKeeper that has nothing yet as well as for the one that Kafka had.
func (l *Leave) ToZooKeeper(ctx context.Context, out io.Writer) (Left, error) {
	surveys, id, err := l.look()
	if err != nil {
		return Left{}, err
	}
	left := Left{ClusterID: id.ClusterID, NodeID: id.BrokerID}
	script, err := l.script(ctx, &left)
	if err != nil {
		return Left{}, err
	}
	if _, err := io.WriteString(out, script); err != nil {
		return Left{}, err
	}
	for _, s := range surveys {
		if s.Identity.Version == 0 {
			continue
		}
		s.Identity.Version, s.Identity.DirectoryID = 0, ""
		if err := logdir.WriteIdentity(l.FS, s.Path, s.Identity, l.Now); err != nil {
			return Left{}, err
		}
	}
	return left, nil
}

// script is the commands: each node is made, which fails where it is there, and then set.
func (l *Leave) script(ctx context.Context, left *Left) (string, error) {
	var b strings.Builder
	put := func(path string, data []byte) error {
		if data == nil {
			fmt.Fprintf(&b, "create %s ''\n", path)
			return nil
		}
		if strings.ContainsAny(string(data), "'\n\r") {
			return fmt.Errorf("node %s: %w", path, errKey)
		}
		fmt.Fprintf(&b, "create %s ''\nset %s '%s'\n", path, path, data)
		return nil
	}
	for _, path := range []string{"/cluster", "/config", "/config/topics", "/brokers", meta.BrokersPath, meta.TopicsPath} {
		if err := put(path, nil); err != nil {
			return "", err
		}
	}
	if err := put(meta.ClusterIDPath, meta.EncodeClusterID(left.ClusterID)); err != nil {
		return "", err
	}
	block, err := lastBlock(ctx, l.Tree)
	if err != nil {
		return "", err
	}
	if block.End >= 0 {
		if err := put(meta.ProducerIDBlockPath, block.Encode()); err != nil {
			return "", err
		}
	}
	topics, err := controller.ReadTopics(ctx, l.Tree)
	if err != nil {
		return "", fmt.Errorf("reading the topics: %w", err)
	}
	for _, t := range topics {
		if err := l.topicNodes(ctx, t, put); err != nil {
			return "", err
		}
		left.Topics++
		left.Partitions += len(t.Partitions)
	}
	if err := l.entityNodes(ctx, put); err != nil {
		return "", err
	}
	return b.String(), nil
}

// entityNodes puts the quotas and credentials of users, clients and addresses.
func (l *Leave) entityNodes(ctx context.Context, put func(path string, data []byte) error) error {
	all, err := controller.ReadEntities(ctx, l.Tree)
	if err != nil {
		return fmt.Errorf("reading the quotas: %w", err)
	}
	for _, e := range all {
		for i, c := range e.Path[1:] { // what is above, /config/users/U/clients for one
			if c == '/' {
				if err := put(e.Path[:i+1], nil); err != nil {
					return err
				}
			}
		}
		if err := put(e.Path, meta.EncodeConfig(e.Keys)); err != nil {
			return err
		}
	}
	return nil
}

// topicNodes puts the nodes of a topic as they are in the tree, which has Kafka's own schema.
func (l *Leave) topicNodes(ctx context.Context, t controller.Topic, put func(path string, data []byte) error) error {
	paths := []string{meta.TopicConfigPath(t.Name), meta.TopicPath(t.Name), meta.PartitionsPath(t.Name)}
	for n := range t.Partitions {
		paths = append(paths, meta.PartitionPath(t.Name, int32(n)), meta.PartitionStatePath(t.Name, int32(n)))
	}
	for _, path := range paths {
		data, _, err := l.Tree.Get(ctx, path)
		if errors.Is(err, meta.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if len(data) == 0 {
			data = nil
		}
		if err := put(path, slices.Clone(data)); err != nil {
			return err
		}
	}
	return nil
}
