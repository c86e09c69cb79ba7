package kraft

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"

	"gregor/log/vfs"
)

// Wanted is what the metadata shall say.
type Wanted struct {
	// Node is the one broker, which holds every partition.
	Node int32
	// Topics are all topics. Of a partition LeaderEpoch and Directories count; the rest follows.
	Topics []*Topic
	// Configs are the own keys of each topic, by name.
	Configs map[string]map[string]string
	// Quotas are all client quotas. nil leaves those that are there.
	Quotas []Quota
	// NextProducerID is the first producer id that was never given out.
	NextProducerID int64
	// LogDirs are the ids of the broker's log directories.
	LogDirs [][16]byte
	// Features are finalized where there is no metadata yet (Features of a Release); else those that are there stay.
	Features map[string]int16
	// NowMs is the time of the records, in milliseconds since 1970.
	NowMs int64
}

// Written says what Write did.
type Written struct {
	// Records is how many were appended, 0 when the metadata said it all before.
	Records int
	// BrokerEpoch is that of the broker's registration. A marker of a clean stop with another epoch makes Kafka take the stop for an unclean one.
	BrokerEpoch int64
}

// metadataVersion is the feature that says which record versions may be written.
const metadataVersion = "metadata.version"

// Levels of metadata.version.
const (
	levelDirectories = 17 // 3.7-IV2, KIP-858
	levelELR         = 23 // 4.0-IV1, KIP-966
)

// Write makes the metadata in dir, which ends in DirName, say what is wanted. The caller holds the lock of the log directory. It is durable when
// Write returns.
func Write(fsys vfs.FS, dir string, w *Wanted) (Written, error) {
	st, err := Read(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = format(fsys, dir, w); err == nil {
			st, err = Read(fsys, dir)
		}
	}
	if err != nil {
		return Written{}, err
	}
	records, epoch := delta(st, w)
	if len(records) == 0 {
		return Written{BrokerEpoch: epoch}, nil
	}
	if err := appendSegment(fsys, dir, st, records, w.NowMs); err != nil {
		return Written{}, fmt.Errorf("appending to the metadata in %s: %w", dir, err)
	}
	return Written{len(records), epoch}, nil
}

// delta is what must be appended, and the epoch of the broker's registration then.
func delta(st *State, w *Wanted) (records [][]byte, epoch int64) {
	have := st.Image
	if len(have.Features) == 0 {
		records = append(records, features(w)...)
	}
	level := max(have.Features[metadataVersion], w.Features[metadataVersion])
	if b, ok := have.Brokers[w.Node]; ok {
		epoch = b.Epoch
	} else {
		epoch = st.End + int64(len(records)) // the offset of the record, as Kafka has it
		records = append(records, registerRecord(w, level, epoch))
	}
	wanted := make(map[string]*Topic, len(w.Topics))
	for _, t := range w.Topics {
		wanted[t.Name] = t
	}
	for _, name := range have.TopicNames() {
		if t := wanted[name]; t == nil || t.ID != have.Topic(name).ID {
			records = append(records, kbin.AppendUvarint(kbin.AppendUuid(appendFrame(removeTopic, 0), have.Topic(name).ID), 0))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		records = append(records, topicDelta(have, w, wanted[name], level)...)
	}
	if w.Quotas != nil {
		records = append(records, quotaDelta(have, w.Quotas)...)
	}
	if w.NextProducerID > have.NextProducerID {
		b := kbin.AppendInt32(appendFrame(producerIDs, 0), w.Node)
		b = kbin.AppendInt64(kbin.AppendInt64(b, epoch), w.NextProducerID)
		records = append(records, kbin.AppendUvarint(b, 0))
	}
	return records, epoch
}

// topicDelta is what must be said of one topic.
func topicDelta(have *Image, w *Wanted, t *Topic, level int16) (records [][]byte) {
	old := have.Topics[t.ID]
	own := have.Configs[Resource{TopicResource, t.Name}]
	if old == nil {
		own = nil // a topic of another id took its keys along
		b := kbin.AppendCompactString(appendFrame(topicRecord, 0), t.Name)
		records = append(records, kbin.AppendUvarint(kbin.AppendUuid(b, t.ID), 0))
		old = &Topic{}
	}
	for _, n := range slices.Sorted(maps.Keys(t.Partitions)) {
		before, there := old.Partitions[n]
		now := Partition{
			Replicas: []int32{w.Node}, ISR: []int32{w.Node}, Leader: -1,
			LeaderEpoch: max(t.Partitions[n].LeaderEpoch, before.LeaderEpoch), Epoch: before.Epoch, Directories: t.Partitions[n].Directories,
		}
		if there && samePartition(&before, &now) {
			continue
		}
		if there {
			now.Epoch++
		}
		records = append(records, partitionOf(t.ID, n, &now, level))
	}
	want := w.Configs[t.Name]
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, ok := want[key]; !ok {
			records = append(records, configOf(Resource{TopicResource, t.Name}, key, nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value := want[key]
		if before, ok := own[key]; !ok || before != value {
			records = append(records, configOf(Resource{TopicResource, t.Name}, key, &value))
		}
	}
	return records
}

// quotaDelta is what must be said of the client quotas.
func quotaDelta(have *Image, want []Quota) (records [][]byte) {
	wanted := map[string]Quota{}
	for _, q := range want {
		wanted[entityKey(q.Entity)] = q
	}
	for _, q := range have.Quotas() {
		now := wanted[entityKey(q.Entity)]
		for _, key := range slices.Sorted(maps.Keys(q.Values)) {
			if _, ok := now.Values[key]; !ok {
				records = append(records, quotaOf(q.Entity, key, 0, true))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		q, before := wanted[id], have.quotas[id]
		for _, key := range slices.Sorted(maps.Keys(q.Values)) {
			if before == nil || before.Values[key] != q.Values[key] {
				records = append(records, quotaOf(q.Entity, key, q.Values[key], false))
			}
		}
	}
	return records
}

func quotaOf(entity map[string]*string, key string, value float64, remove bool) []byte {
	b := kbin.AppendCompactArrayLen(appendFrame(clientQuota, 0), len(entity))
	for _, kind := range slices.Sorted(maps.Keys(entity)) {
		b = kbin.AppendCompactNullableString(kbin.AppendCompactString(b, kind), entity[kind])
		b = kbin.AppendUvarint(b, 0)
	}
	b = kbin.AppendFloat64(kbin.AppendCompactString(b, key), value)
	return kbin.AppendUvarint(kbin.AppendBool(b, remove), 0)
}

func samePartition(a, b *Partition) bool {
	return slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.ISR, b.ISR) && a.LeaderEpoch == b.LeaderEpoch &&
		slices.Equal(a.Directories, b.Directories)
}

func partitionOf(topic [16]byte, n int32, p *Partition, level int16) []byte {
	version := uint32(0)
	switch {
	case level >= levelELR:
		version = 2
	case level >= levelDirectories:
		version = 1
	}
	b := kbin.AppendInt32(appendFrame(partitionRecord, version), n)
	b = kbin.AppendUuid(b, topic)
	b = appendIDs32(appendIDs32(b, p.Replicas), p.ISR)
	b = appendIDs32(appendIDs32(b, nil), nil)
	b = kbin.AppendInt32(kbin.AppendInt32(kbin.AppendInt32(b, p.Leader), p.LeaderEpoch), p.Epoch)
	if version >= 1 {
		b = appendUUIDs(b, p.Directories)
	}
	return kbin.AppendUvarint(b, 0)
}

func configOf(of Resource, key string, value *string) []byte {
	b := kbin.AppendInt8(appendFrame(configRecord, 0), of.Type)
	b = kbin.AppendCompactString(kbin.AppendCompactString(b, of.Name), key)
	return kbin.AppendUvarint(kbin.AppendCompactNullableString(b, value), 0)
}

// registerRecord registers the broker as one that was stopped: fenced, without endpoints. It says the rest when it starts.
func registerRecord(w *Wanted, level int16, epoch int64) []byte {
	version := uint32(1)
	if level >= levelDirectories {
		version = 3
	}
	b := kbin.AppendInt32(appendFrame(registerBroker, version), w.Node)
	if version >= 2 {
		b = kbin.AppendBool(b, false)
	}
	b = kbin.AppendUuid(b, [16]byte{6: 0x40, 8: 0x80, 15: 1}) // an incarnation that no process has
	b = kbin.AppendInt64(b, epoch)
	b = kbin.AppendCompactArrayLen(b, 0)
	b = kbin.AppendCompactArrayLen(b, 0)
	b = kbin.AppendCompactNullableString(b, nil)
	b = kbin.AppendBool(kbin.AppendBool(b, true), false)
	if version < 3 || len(w.LogDirs) == 0 {
		return kbin.AppendUvarint(b, 0)
	}
	dirs := appendUUIDs(nil, w.LogDirs)
	b = kbin.AppendUvarint(kbin.AppendUvarint(b, 1), 0)
	return append(kbin.AppendUvarint(b, uint32(len(dirs))), dirs...)
}

func featureOf(name string, level int16) []byte {
	b := kbin.AppendCompactString(appendFrame(featureLevel, 0), name)
	return kbin.AppendUvarint(kbin.AppendInt16(b, level), 0)
}

// features finalizes w.Features, metadata.version first, which tells a reader what to expect.
func features(w *Wanted) [][]byte {
	records := [][]byte{featureOf(metadataVersion, w.Features[metadataVersion])}
	for _, name := range slices.Sorted(maps.Keys(w.Features)) {
		if name != metadataVersion && w.Features[name] > 0 {
			records = append(records, featureOf(name, w.Features[name]))
		}
	}
	if w.Features["eligible.leader.replicas.version"] > 0 { // Kafka sets it with the feature
		one := "1"
		records = append(records, configOf(Resource{BrokerResource, ""}, "min.insync.replicas", &one))
	}
	return records
}

// Release gives the features that `kafka-storage format` of an Apache Kafka release finalizes; ok is false for one that is not known.
func Release(version string) (levels map[string]int16, ok bool) {
	level, ok := map[string]int16{"3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30, "4.4": 33}[version]
	if !ok {
		return nil, false
	}
	levels = map[string]int16{metadataVersion: level}
	for _, f := range []struct {
		name  string
		from  int16 // level of metadata.version
		value int16
	}{
		{"group.version", 22, 1}, {"transaction.version", 24, 2}, {"eligible.leader.replicas.version", 26, 1},
		{"share.version", 28, 1}, {"share.version", 31, 2}, {"streams.version", 29, 1},
	} {
		if level >= f.from {
			levels[f.name] = f.value
		}
	}
	return levels, true
}

// Path is the directory of the metadata below a log directory.
func Path(logDir string) string { return filepath.Join(logDir, DirName) }
