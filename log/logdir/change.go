package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"gregor/log/commit"
	"gregor/log/vfs"
)

// Spec is a partition to make.
type Spec struct {
	TopicPartition
	TopicID [16]byte
}

// Create makes partitions, all or none, with one sync for all of them. They are durable when it returns.
func (d *Dir) Create(specs ...Spec) ([]*Partition, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.end()
	if err := d.reserve(specs); err != nil {
		return nil, err
	}
	made := make([]*Partition, len(specs))
	err := d.forget(specs)
	if err == nil {
		err = d.makeAll(specs, made)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range specs {
		delete(d.mu.busy, s.TopicPartition)
		if err == nil {
			d.mu.partitions[s.TopicPartition] = made[i]
		}
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// reserve marks names as busy, all or none.
func (d *Dir) reserve(specs []Spec) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, s := range specs {
		tp := s.TopicPartition
		_, exists := d.mu.partitions[tp]
		_, busy := d.mu.busy[tp]
		err := error(nil)
		switch {
		case exists || busy:
			err = fmt.Errorf("%w: %s in %s", ErrExists, tp, d.opts.Dir)
		case !tp.valid():
			err = fmt.Errorf("%q, partition %d, cannot be the name of a directory", tp.Topic, tp.Partition)
		}
		if err != nil {
			for _, s := range specs[:i] {
				delete(d.mu.busy, s.TopicPartition)
			}
			return err
		}
		d.mu.busy[tp] = struct{}{}
	}
	return nil
}

// forget takes entries out of the checkpoints that were left by an earlier partition of the same name: its offsets would
// hide records of the new one, or let unsynced ones pass as checked.
func (d *Dir) forget(specs []Spec) error {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	fresh := d.checkpoints.onDisk
	for i := range fresh {
		cloned := false
		for _, s := range specs {
			if _, stale := fresh[i][s.TopicPartition]; !stale {
				continue
			}
			if !cloned {
				fresh[i], cloned = maps.Clone(fresh[i]), true
			}
			delete(fresh[i], s.TopicPartition)
		}
	}
	var err error
	d.checkpoints.onDisk, err = fresh.write(d.opts.FS, d.opts.Dir, d.checkpoints.onDisk)
	return err
}

// makeAll makes the directories and logs and syncs them; after an error nothing is left of them.
func (d *Dir) makeAll(specs []Spec, made []*Partition) error {
	files := make([]vfs.File, len(specs))
	together := &gate{dir: d}
	err := d.parallel(len(specs), func(i int) (err error) {
		made[i], files[i], err = d.makeOne(specs[i], together)
		return err
	})
	together.release()
	if err == nil {
		err = d.syncNew(made, files)
	}
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err == nil {
		return nil
	}
	for _, p := range made {
		if p == nil {
			continue
		}
		if p.store != nil {
			p.store.Abandon()
		}
		if undo := d.opts.FS.RemoveAll(p.dir); undo != nil {
			d.opts.Logger.Error("directory of a partition that could not be made is left behind; remove it", "dir", p.dir, "error", undo)
		}
	}
	return advise(fmt.Errorf("making partitions in %s: %w", d.opts.Dir, err))
}

// makeOne makes a partition that is not durable yet. Once it returns a partition, there may be something to undo.
func (d *Dir) makeOne(s Spec, together *gate) (*Partition, vfs.File, error) {
	fsys := d.opts.FS
	p := &Partition{id: s.TopicPartition, dir: filepath.Join(d.opts.Dir, s.String()), topicID: s.TopicID}
	if _, err := fsys.Stat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.Join(fmt.Errorf("%w: %s is in the way", ErrExists, p.dir), err)
	}
	if err := fsys.MkdirAll(p.dir); err != nil {
		return p, nil, err
	}
	file, err := fsys.Create(filepath.Join(p.dir, topicIDFile))
	if err != nil {
		return p, nil, err
	}
	if _, err := file.WriteAt(formatTopicID(s.TopicID), 0); err != nil {
		return p, file, err
	}
	p.store, err = d.opts.open(d.logOptions(p, together))
	return p, file, err
}

// newEntry is a directory with its metadata file, as a source of the committer: with many of them one syncfs does it all.
type newEntry struct {
	files []commit.Syncer
	done  chan<- error
}

func (n *newEntry) BeginSync() (commit.Target, bool) { return commit.Target{Files: n.files}, true }

func (n *newEntry) EndSync(_ commit.Target, err error) { n.done <- err }

// dirSyncer is a directory as a commit.Syncer.
type dirSyncer struct {
	fsys vfs.FS
	dir  string
}

func (s dirSyncer) Sync() error { return s.fsys.SyncDir(s.dir) }

// syncNew makes new partitions durable.
func (d *Dir) syncNew(made []*Partition, files []vfs.File) error {
	fsys := d.opts.FS
	done := make(chan error, len(made)+1)
	for i, p := range made {
		d.committer.Dirty(&newEntry{done: done, files: []commit.Syncer{files[i], dirSyncer{fsys, p.dir}}})
	}
	d.committer.Dirty(&newEntry{done: done, files: []commit.Syncer{dirSyncer{fsys, d.opts.Dir}}})
	var err error
	for range len(made) + 1 {
		if e := <-done; e != nil {
			err = e // of a round all have the same
		}
	}
	return err
}

// Delete takes partitions away. It renames their directories, durably, and closes their logs; the files are removed after
// Options.FileDeleteDelay. One that cannot be renamed stays and is reported; the others are deleted.
func (d *Dir) Delete(tps ...TopicPartition) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	var errs []error
	var renamed []string
	for _, tp := range tps {
		path, err := d.deleteOne(tp)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		renamed = append(renamed, path)
	}
	if len(renamed) > 0 {
		errs = append(errs, d.opts.FS.SyncDir(d.opts.Dir))
		d.Touch()
	}
	due := d.opts.Now().Add(max(d.opts.FileDeleteDelay, 0))
	for _, path := range renamed {
		d.removal.add(path, due)
	}
	return errors.Join(errs...)
}

// deleteOne renames the directory of a partition and gives up its log.
func (d *Dir) deleteOne(tp TopicPartition) (path string, err error) {
	d.mu.Lock()
	p, ok := d.mu.partitions[tp]
	if ok {
		delete(d.mu.partitions, tp)
		d.mu.busy[tp] = struct{}{}
	}
	d.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("%w: %s in %s", ErrNotFound, tp, d.opts.Dir)
	}
	path = filepath.Join(d.opts.Dir, deletedName(tp))
	if p.store != nil {
		err = p.store.Rename(path)
	} else {
		err = d.opts.FS.Rename(p.dir, path)
	}
	if err == nil && p.store != nil {
		p.store.Abandon()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.busy, tp)
	if err != nil {
		d.mu.partitions[tp] = p
		return "", fmt.Errorf("deleting %s: %w", tp, err)
	}
	return path, nil
}
