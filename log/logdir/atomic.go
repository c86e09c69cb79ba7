package logdir

import (
	"errors"
	"io/fs"
	"path/filepath"

	"gregor/log/vfs"
)

const tmpSuffix = ".tmp"

// replaceFile writes a small file as name.tmp, syncs it and renames it, as Kafka does. The caller syncs dir.
func replaceFile(fsys vfs.FS, dir, name string, content []byte) error {
	tmp := filepath.Join(dir, name+tmpSuffix)
	if err := writeNew(fsys, tmp, content); err != nil {
		return err
	}
	return fsys.Rename(tmp, filepath.Join(dir, name))
}

// writeNew makes a synced file with content, in place of any of that name.
func writeNew(fsys vfs.FS, name string, content []byte) error {
	f, err := fsys.Create(name)
	if errors.Is(err, fs.ErrExist) { // of a crash
		if err := fsys.Remove(name); err != nil {
			return err
		}
		f, err = fsys.Create(name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readIfThere reads a small file; ok is false if there is none.
func readIfThere(fsys vfs.FS, name string, limit int64) (b []byte, ok bool, err error) {
	b, err = vfs.ReadFile(fsys, name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}
