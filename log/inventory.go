package log

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"gregor/log/vfs"
)

// inventory is what a log's directory holds.
type inventory struct {
	bases     []int64              // of the .log files, ascending
	files     map[fileKey]struct{} // .index, .timeindex and .txnindex files
	snapshots []int64              // ascending
	epochs    bool                 // there is a leader-epoch-checkpoint
	made      bool                 // the directory was made just now
}

type fileKey struct {
	base int64
	ext  string
}

// takeInventory lists dir, making it when it is missing, and removes what an earlier process left half done: files that were to
// be deleted, output of an unfinished compaction, temporary files.
func (l *Log) takeInventory() (*inventory, error) {
	dir := l.Dir()
	inv := &inventory{files: make(map[fileKey]struct{})}
	entries, err := l.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		inv.made = true
		return inv, l.fs.MkdirAll(dir)
	}
	if err != nil {
		return nil, err
	}
	swapped, err := l.endSwaps(entries)
	if err != nil {
		return nil, err
	}
	if swapped {
		if entries, err = l.fs.List(dir); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := inv.add(l, e.Name()); err != nil {
			return nil, err
		}
	}
	return inv, l.removeOrphans(inv)
}

func (inv *inventory) add(l *Log, name string) error {
	path := filepath.Join(l.Dir(), name)
	switch filepath.Ext(name) {
	case deletedExt, cleanedExt, ".tmp":
		l.logger.Info("removing a file that an earlier process left", "file", path)
		return l.fs.Remove(path)
	}
	if name == epochFile {
		inv.epochs = true
	}
	offset, ext, ok := parseFileName(name)
	if !ok {
		return nil
	}
	switch ext {
	case logExt:
		inv.bases = append(inv.bases, offset)
	case indexExt, timeExt, txnExt:
		inv.files[fileKey{offset, ext}] = struct{}{}
	case snapshotExt:
		inv.snapshots = append(inv.snapshots, offset)
	}
	return nil
}

// removeOrphans removes indexes without a log.
func (l *Log) removeOrphans(inv *inventory) error {
	for key := range inv.files {
		if _, ok := slices.BinarySearch(inv.bases, key.base); ok {
			continue
		}
		path := filepath.Join(l.Dir(), fileName(key.base, key.ext))
		l.logger.Warn("removing an index without its log file", "file", path)
		if err := l.fs.Remove(path); err != nil {
			return err
		}
		delete(inv.files, key)
	}
	return nil
}

// readEpochs loads the leader-epoch-checkpoint; nil if there is none that can be used; an empty one is not nil.
func (l *Log) readEpochs(inv *inventory) (epochList, error) {
	if !inv.epochs {
		return nil, nil
	}
	path := filepath.Join(l.Dir(), epochFile)
	b, err := vfs.ReadFile(l.fs, path, maxEpochFile)
	if err == nil {
		var list epochList
		if list, err = decodeEpochs(b); err == nil {
			return list, nil
		}
	}
	if !errors.Is(err, errEpochFile) {
		return nil, err
	}
	l.logger.Warn("leader epoch checkpoint is not usable, the batches are read instead", "file", path, "error", err)
	return nil, nil
}

// removeAll deletes segments, the newest first, so that what a crash in between leaves has no hole.
func removeAll(list []*segment) error {
	for _, s := range slices.Backward(list) {
		if err := s.remove(); err != nil {
			return err
		}
	}
	return nil
}

// hasIndexes says that both indexes of a segment exist.
func (inv *inventory) hasIndexes(base int64) bool {
	_, index := inv.files[fileKey{base, indexExt}]
	_, times := inv.files[fileKey{base, timeExt}]
	return index && times
}
