package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gregor/broker/controller"
	"gregor/broker/kraft"
)

// planTopics decides which topics there are.
func (in *inspection) planTopics() error {
	if in.image != nil {
		in.topicsOfMetadata()
	} else {
		in.topicsOfDirectories()
	}
	in.configure()
	return nil
}

// topicsOfDirectories is for Kafka with ZooKeeper: what is there is all that is known.
func (in *inspection) topicsOfDirectories() {
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(in.found)) {
		parts := in.found[name]
		if err := controller.CheckName(name); err != nil {
			in.plan.block(fmt.Sprintf("%s: %q cannot be a topic (%v); move the directory away", parts[slices.Min(slices.Collect(maps.Keys(parts)))].Path, name, err))
			continue
		}
		t := Topic{Name: name}
		described, known := in.Configs.Described[name]
		if !in.agreeOnID(&t, parts, described.ID) {
			continue
		}
		if t.NewID = t.ID == [16]byte{}; t.NewID {
			t.ID = controller.NewID()
		}
		n := slices.Max(slices.Collect(maps.Keys(parts))) + 1
		if n > maxPartitions {
			in.plan.block(fmt.Sprintf("%s: no topic has %d partitions; move the directory away", parts[n-1].Path, n))
			continue
		}
		if known && n > described.Partitions {
			in.plan.block(fmt.Sprintf("%s: the file says that topic %s has %d partitions; take a newer file, or move the directory away", parts[n-1].Path, name, described.Partitions))
			continue
		}
		if !known {
			unknown++
		}
		t.Partitions = make([]Partition, max(n, described.Partitions))
		in.locate(&t, parts, nil)
		in.plan.Topics = append(in.plan.Topics, t)
	}
	if unknown > 0 {
		in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("how many partitions %d topics have is in ZooKeeper, not in the directories: the highest number that is here counts, unless --configs is given what kafka-topics.sh --describe prints", unknown))
	}
}

// maxPartitions is more than any topic has: a larger number in the name of a directory is a mistake, and must not be filled up to.
const maxPartitions = 200_000

// agreeOnID takes the topic's id from its directories, or else what was given.
func (in *inspection) agreeOnID(t *Topic, parts map[int32]place, given [16]byte) bool {
	for _, n := range slices.Sorted(maps.Keys(parts)) {
		id := parts[n].TopicID
		switch {
		case id == [16]byte{} || id == t.ID:
		case t.ID == [16]byte{}:
			t.ID = id
		default:
			in.plan.block(fmt.Sprintf("%s belongs to topic id %s, other partitions of %s to %s: one is of an older topic of that name; move it away",
				parts[n].Path, controller.FormatID(id), t.Name, controller.FormatID(t.ID)))
			return false
		}
	}
	switch none := [16]byte{}; {
	case t.ID == none:
		t.ID = given
	case given != none && given != t.ID:
		in.plan.block(fmt.Sprintf("topic %s: its directories have id %s, the file has %s: it is of an older topic of that name", t.Name, controller.FormatID(t.ID), controller.FormatID(given)))
		return false
	}
	return true
}

// topicsOfMetadata is for KRaft: the metadata says which topics there are.
func (in *inspection) topicsOfMetadata() {
	p := in.plan
	elsewhere, wide := 0, 0
	for _, name := range in.image.TopicNames() {
		t := in.image.Topic(name)
		parts := in.found[name]
		delete(in.found, name)
		if !in.isHere(t) && len(parts) == 0 {
			elsewhere++
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(parts)) {
			if id := parts[n].TopicID; id != t.ID && id != [16]byte{} {
				p.block(fmt.Sprintf("%s belongs to topic id %s, the metadata has %s for %s: it is of an older topic of that name; move it away",
					parts[n].Path, controller.FormatID(id), controller.FormatID(t.ID), name))
			}
			if _, ok := t.Partitions[n]; !ok {
				p.block(fmt.Sprintf("%s is a partition that the metadata does not have; move it away", parts[n].Path))
			}
		}
		out := Topic{Name: name, ID: t.ID, Partitions: make([]Partition, len(t.Partitions))}
		in.locate(&out, parts, t)
		if slices.ContainsFunc(slices.Collect(maps.Values(t.Partitions)), func(p kraft.Partition) bool { return len(p.Replicas) > 1 }) {
			wide++
		}
		p.Topics = append(p.Topics, out)
	}
	if elsewhere > 0 {
		p.Lost = append(p.Lost, fmt.Sprintf("%d topics that have no partition on this broker", elsewhere))
	}
	if wide > 0 {
		p.Lost = append(p.Lost, fmt.Sprintf("replicas of %d topics on other brokers: this broker has the only one", wide))
	}
	for _, name := range slices.Sorted(maps.Keys(in.found)) {
		for _, n := range slices.Sorted(maps.Keys(in.found[name])) {
			p.Lost = append(p.Lost, in.found[name][n].Path+": its topic is not in the metadata, it was deleted; the directory is left alone")
		}
	}
	for _, t := range p.Topics {
		for n := range t.Partitions {
			if _, ok := in.image.Topic(t.Name).Partitions[int32(n)]; !ok {
				p.block(fmt.Sprintf("the metadata has %d partitions of topic %s, but none with number %d", len(t.Partitions), t.Name, n))
			}
		}
	}
}

// isHere reports if the metadata assigns a partition of the topic to this broker.
func (in *inspection) isHere(t *kraft.Topic) bool {
	for _, p := range t.Partitions {
		if slices.Contains(p.Replicas, in.plan.NodeID) {
			return true
		}
	}
	return false
}

// locate says where the partitions of t are; of is nil without metadata.
func (in *inspection) locate(t *Topic, parts map[int32]place, of *kraft.Topic) {
	var missing []string
	for n := range t.Partitions {
		p := &t.Partitions[n]
		p.LeaderEpoch, p.End = -1, -1
		fresh := false
		if of != nil {
			state := of.Partitions[int32(n)]
			p.LeaderEpoch = state.LeaderEpoch
			// Made by the controller just before the stop: the broker did not get to it.
			fresh = slices.Contains(state.Replicas, in.plan.NodeID) && state.LeaderEpoch == 0
		}
		if found, ok := parts[int32(n)]; ok {
			p.Path = found.Path
		} else if !fresh {
			missing = append(missing, fmt.Sprint(n))
		}
	}
	switch {
	case len(missing) == 0:
	case in.AllowMissing:
		in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("topic %s: partitions %s of %d are not here and will be made empty", t.Name, strings.Join(missing, ", "), len(t.Partitions)))
	default:
		in.plan.block(fmt.Sprintf("topic %s: partitions %s of %d are not in these directories; name all log.dirs of the broker, copy them from the broker that has them, or import with --allow-missing to begin them empty",
			t.Name, strings.Join(missing, ", "), len(t.Partitions)))
	}
}

// configure gives each topic its own keys.
func (in *inspection) configure() {
	guessed := 0
	for i := range in.plan.Topics {
		t := &in.plan.Topics[i]
		given, known := in.Configs.of(t.Name)
		switch {
		case known:
			t.Config, t.Source = given, FromFile
		case in.image != nil:
			t.Config, t.Source = maps.Clone(in.image.Configs[kraft.Resource{Type: kraft.TopicResource, Name: t.Name}]), FromMetadata
		case internal(t.Name) != nil:
			t.Config, t.Source = internal(t.Name), FromDefaults
		default:
			guessed++
			t.Config, t.Source = map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}, FromCaution
			if in.wasCleaned(t.Name) {
				t.Config["cleanup.policy"] = "compact"
			}
		}
		if t.Config == nil {
			t.Config = map[string]string{}
		}
		in.checkConfig(t)
	}
	if guessed > 0 {
		in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("the configurations of %d topics are in ZooKeeper: unless import is given a file with --configs, they keep their records for ever (retention.ms=-1), and are compacted if Kafka had compacted them", guessed))
	}
	for name := range in.Configs.Topics {
		if !slices.ContainsFunc(in.plan.Topics, func(t Topic) bool { return t.Name == name }) {
			in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("the file with configurations names topic %s, which is not here", name))
		}
	}
}

// internal is what Kafka configures its own topics with.
func internal(name string) map[string]string {
	switch name {
	case "__consumer_offsets":
		return map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
	case "__transaction_state":
		return map[string]string{"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600",
			"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
	}
	return nil
}

// wasCleaned reports if Kafka compacted a partition of the topic: only those are in its checkpoint.
func (in *inspection) wasCleaned(topic string) bool {
	for _, s := range in.surveys {
		for tp := range s.Cleaned {
			if tp.Topic == topic {
				return true
			}
		}
	}
	return false
}

// checkConfig leaves out keys that would not be accepted.
func (in *inspection) checkConfig(t *Topic) {
	if t.Config["remote.storage.enable"] == "true" {
		in.plan.Lost = append(in.plan.Lost, "topic "+t.Name+" is tiered: segments that are only in the remote storage are not served")
		delete(t.Config, "remote.storage.enable")
	}
	if in.CheckConfig == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(t.Config)) {
		if err := in.CheckConfig(map[string]string{key: t.Config[key]}); err != nil {
			in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("topic %s: %s=%s (%v)", t.Name, key, t.Config[key], err))
			delete(t.Config, key)
		}
	}
	if err := in.CheckConfig(t.Config); err != nil {
		in.plan.block(fmt.Sprintf("topic %s: its keys do not go together: %v; give others with --configs", t.Name, err))
	}
}
