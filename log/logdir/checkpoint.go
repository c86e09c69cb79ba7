package logdir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"gregor/log/vfs"
)

// Checkpoint files, in the order in which they are written.
const (
	recoveryPoints = iota
	highWatermarks
	logStarts
	cleanOffsets
	checkpointFiles
)

// checkpointNames are the names of the files.
func checkpointNames() [checkpointFiles]string {
	return [checkpointFiles]string{
		recoveryPoints: "recovery-point-offset-checkpoint",
		highWatermarks: "replication-offset-checkpoint",
		logStarts:      "log-start-offset-checkpoint",
		cleanOffsets:   "cleaner-offset-checkpoint",
	}
}

// maxCheckpointSize allows 60,000 partitions with the longest names.
const maxCheckpointSize = 16 << 20

// offsets is the content of a checkpoint file.
type offsets map[TopicPartition]int64

var errCheckpoint = errors.New("not a valid checkpoint")

// parseCheckpoint reads "0", the number of entries, and a line "topic partition offset" for each. Anything else makes the whole
// file invalid: which part of it is true cannot be told.
func parseCheckpoint(b []byte) (offsets, error) {
	version, b := nextLine(b)
	if version != "0" {
		return nil, fmt.Errorf("%w: version is %.20q, known is 0", errCheckpoint, version)
	}
	count, b := nextLine(b)
	n, err := strconv.ParseUint(count, 10, 31)
	const shortest = len("t 0 0\n")
	if err != nil || n > uint64(len(b)+1)/uint64(shortest) {
		return nil, fmt.Errorf("%w: the number of entries is %.20q in %d bytes", errCheckpoint, count, len(b))
	}
	entries := make(offsets, n)
	for range n {
		var line string
		line, b = nextLine(b)
		tp, offset, ok := parseEntry(line)
		if !ok {
			return nil, fmt.Errorf("%w: entry %.80q", errCheckpoint, line)
		}
		entries[tp] = offset
	}
	if len(b) > 0 || uint64(len(entries)) != n {
		return nil, fmt.Errorf("%w: %d bytes beyond the last entry, %d different of %d", errCheckpoint, len(b), len(entries), n)
	}
	return entries, nil
}

func nextLine(b []byte) (string, []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r"))), rest
}

func parseEntry(line string) (tp TopicPartition, offset int64, ok bool) {
	topic, rest, ok1 := cutByte(line, ' ')
	partition, off, ok2 := cutByte(rest, ' ')
	n, err1 := strconv.ParseInt(partition, 10, 32)
	offset, err2 := strconv.ParseInt(off, 10, 64)
	tp = TopicPartition{Topic: topic, Partition: int32(n)}
	return tp, offset, ok1 && ok2 && err1 == nil && err2 == nil && offset >= 0 && tp.valid()
}

func cutByte(s string, sep byte) (before, after string, ok bool) {
	for i := range len(s) {
		if s[i] == sep {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func (o offsets) format() []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(o))
	for _, tp := range slices.SortedFunc(maps.Keys(o), compareNames) {
		b = append(b, tp.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(tp.Partition), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, o[tp], 10)
		b = append(b, '\n')
	}
	return b
}

func compareNames(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// checkpointSet is the content of all checkpoint files.
type checkpointSet [checkpointFiles]offsets

// readCheckpoints reads what is there. A file that does not parse counts as empty and is reported. Kafka makes the cleaner's empty.
func readCheckpoints(fsys vfs.FS, dir string, report func(file string, err error)) (checkpointSet, error) {
	var set checkpointSet
	for i, name := range checkpointNames() {
		path := filepath.Join(dir, name)
		b, ok, err := readIfThere(fsys, path, maxCheckpointSize)
		if err != nil {
			return set, fmt.Errorf("reading a checkpoint: %w", err)
		}
		if !ok || i == cleanOffsets && len(b) == 0 {
			continue
		}
		if set[i], err = parseCheckpoint(b); err != nil {
			report(path, err)
		}
	}
	return set, nil
}

// write replaces the files whose content changed since old, and syncs dir. It returns what is there now: for a file that
// failed, the old; with an error of the sync, all old.
func (set checkpointSet) write(fsys vfs.FS, dir string, old checkpointSet) (checkpointSet, error) {
	var errs []error
	wrote := false
	for i, name := range checkpointNames() {
		if maps.Equal(set[i], old[i]) {
			continue
		}
		if err := replaceFile(fsys, dir, name, set[i].format()); err != nil {
			errs = append(errs, err)
			set[i] = old[i]
			continue
		}
		wrote = true
	}
	if wrote {
		if err := fsys.SyncDir(dir); err != nil {
			// Whoever writes the same next must not find that it is there already.
			return old, errors.Join(append(errs, err)...)
		}
	}
	return set, errors.Join(errs...)
}
