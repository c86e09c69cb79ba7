package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"gregor/log/vfs"
)

// Survey is what a log directory says about itself, whoever wrote it. Look makes it without changing anything.
type Survey struct {
	Path string
	// Identity is meta.properties; its Version is -1 when there is none.
	Identity Identity
	// Clean says that there is a marker of a clean stop, and BrokerEpoch what it says; -1 when it says nothing.
	Clean       bool
	BrokerEpoch int64
	// RecoveryPoints, HighWatermarks and LogStarts are the checkpoints; Cleaned is up to where compaction came, of the partitions that it came to.
	RecoveryPoints, HighWatermarks, LogStarts, Cleaned map[TopicPartition]int64
	// Ignored are checkpoints that do not parse.
	Ignored []error
	// Partitions are the directories of live logs, sorted; Others is all else.
	Partitions []Found
	Others     []Other
}

// Identity is the content of meta.properties: version 0 of Kafka with ZooKeeper, version 1 of Kafka in KRaft mode.
type Identity struct {
	Version     int
	BrokerID    int32  // broker.id or node.id, -1 for none
	ClusterID   string // "" for none
	DirectoryID string // version 1 only; "" for none
}

// Found is the directory of a live log.
type Found struct {
	TopicPartition
	Path    string
	TopicID [16]byte // zeros for none
	// Err says why partition.metadata cannot be read.
	Err error
}

// Other is a directory that holds no live log: Kind is delete, future or stray as in its name, metadata for the log of
// Kafka's controllers, or foreign.
type Other struct {
	Path string
	Kind string
}

const cleanerCheckpoint = "cleaner-offset-checkpoint"

// IdentityOf reads meta.properties in dir. One that is not there has no ids and the version -1.
func IdentityOf(fsys vfs.FS, dir string) (Identity, error) {
	name := filepath.Join(dir, metaFile)
	b, ok, err := readIfThere(fsys, name, maxMetaSize)
	if err != nil {
		return Identity{}, fmt.Errorf("reading the identity of the log directory: %w", err)
	}
	if !ok {
		return Identity{Version: -1, BrokerID: -1}, nil
	}
	id, err := parseIdentity(b)
	if err != nil {
		return Identity{}, fmt.Errorf("%s is not valid: %w; restore it, or remove it to have it written anew", name, err)
	}
	return id, nil
}

// Look reads what is in dir. It does not lock it. A meta.properties that does not parse is an error, a checkpoint is not.
func Look(fsys vfs.FS, dir string) (*Survey, error) {
	s := &Survey{Path: dir, BrokerEpoch: -1}
	var err error
	if s.Identity, err = IdentityOf(fsys, dir); err != nil {
		return nil, err
	}
	s.lookAtMarker(fsys)
	ignore := func(file string, err error) { s.Ignored = append(s.Ignored, fmt.Errorf("%s: %w", file, err)) }
	set, err := readCheckpoints(fsys, dir, ignore)
	if err != nil {
		return nil, err
	}
	s.RecoveryPoints, s.HighWatermarks, s.LogStarts = set[recoveryPoints], set[highWatermarks], set[logStarts]
	b, ok, err := readIfThere(fsys, filepath.Join(dir, cleanerCheckpoint), maxCheckpointSize)
	if err == nil && ok && len(b) > 0 { // Kafka 2.8 makes it empty
		cleaned, bad := parseCheckpoint(b)
		if bad != nil {
			ignore(filepath.Join(dir, cleanerCheckpoint), bad)
		}
		s.Cleaned = cleaned
	}
	if err != nil {
		return nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return s, s.lookAtDirectories(fsys)
}

func (s *Survey) lookAtMarker(fsys vfs.FS) {
	b, there, err := readIfThere(fsys, filepath.Join(s.Path, markerFile), maxMarkerSize)
	if s.Clean = there && err == nil; s.Clean {
		s.BrokerEpoch = markerEpoch(b)
	}
}

func (s *Survey) lookAtDirectories(fsys vfs.FS) error {
	entries, err := fsys.List(s.Path)
	if err != nil {
		return fmt.Errorf("listing the log directory: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(s.Path, e.Name())
		tp, kind := parseName(e.Name())
		if kind != live {
			names := map[dirKind]string{foreign: "foreign", deleted: "delete", future: "future", stray: "stray", metadata: "metadata"}
			s.Others = append(s.Others, Other{path, names[kind]})
			continue
		}
		f := Found{TopicPartition: tp, Path: path}
		f.TopicID, f.Err = readTopicID(fsys, path)
		s.Partitions = append(s.Partitions, f)
	}
	slices.SortFunc(s.Partitions, func(a, b Found) int { return compareNames(a.TopicPartition, b.TopicPartition) })
	return nil
}

// LockForLook takes the lock of a directory, so that no broker changes what is looked at. ErrInUse when one has it. Without the file of the lock
// nobody has it, and none is made.
func LockForLook(fsys vfs.FS, dir string) (io.Closer, error) {
	if _, err := fsys.Stat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return noLock{}, nil
	}
	return Lock(fsys, dir)
}

type noLock struct{}

func (noLock) Close() error { return nil }

// Lock takes the lock of a directory as Open does. ErrInUse when a broker has it.
func Lock(fsys vfs.FS, dir string) (io.Closer, error) {
	lock, err := fsys.Lock(filepath.Join(dir, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("%w: %s; stop that process first", ErrInUse, dir)
	}
	if err != nil {
		return nil, advise(fmt.Errorf("locking the log directory: %w", err))
	}
	return lock, nil
}

// WriteIdentity replaces meta.properties, durably. The caller holds the lock.
func WriteIdentity(fsys vfs.FS, dir string, id Identity, now time.Time) error {
	b := identity{BrokerID: id.BrokerID, ClusterID: id.ClusterID}.format(now)
	if id.Version == 1 {
		b = fmt.Appendf(nil, "#\n#%s\nnode.id=%d\ndirectory.id=%s\nversion=1\ncluster.id=%s\n",
			now.UTC().Format(javaDate), id.BrokerID, id.DirectoryID, id.ClusterID)
	}
	if err := replaceFile(fsys, dir, metaFile, b); err != nil {
		return fmt.Errorf("writing the identity of the log directory: %w", err)
	}
	return fsys.SyncDir(dir)
}

// WriteMarker marks a directory as stopped cleanly by a broker that was registered with that epoch. It must have been so: the caller holds the lock and
// found a marker.
func WriteMarker(fsys vfs.FS, dir string, brokerEpoch int64) error {
	return writeMarker(fsys, dir, brokerEpoch)
}
