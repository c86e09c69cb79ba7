package meta

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// FileName is the name of Local's file in a data directory.
const FileName = "gregor-meta.db"

// OpenLocal opens the tree in the file at path, or makes it with nothing but the root. The directory must exist. The whole file is read and
// checked. Errors name the file and what to do.
func OpenLocal(path string) (*Local, error) {
	_, statErr := os.Stat(path)
	l := &Local{path: path, now: time.Now, ephemeral: map[string]node{}, watchers: map[string]map[*watcher]struct{}{}}
	err := l.guard(func() (err error) {
		l.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      time.Nanosecond, // try once: whoever has the file open keeps it
			FreelistType: bbolt.FreelistMapType,
			NoStatistics: true,
		})
		return err
	})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := l.check(); err != nil {
		return nil, openError(path, errors.Join(err, l.db.Close()))
	}
	_ = reserve(path) // see there: the tree works without
	if errors.Is(statErr, os.ErrNotExist) {
		if err := syncDir(filepath.Dir(path)); err != nil {
			return nil, errors.Join(fmt.Errorf("make metadata file %s durable: %w", path, err), l.db.Close())
		}
	}
	return l, nil
}

// check reads every node, so that damage is met here and not in the middle of something.
func (l *Local) check() error {
	return l.guard(func() error {
		return l.db.View(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(bucketName())
			if bucket == nil {
				return nil
			}
			l.born, _ = counter(tx.Bucket(countersName()), bornKey)
			return bucket.ForEach(func(k, v []byte) error {
				n, err := decodeNode(v)
				if err != nil || bytes.IndexByte(k, 0) < 0 {
					return fmt.Errorf("%w: node %q is malformed", ErrDamaged, k)
				}
				l.born = max(l.born, n.born)
				return nil
			})
		})
	})
}

// guard makes errors of the panics and memory faults with which bbolt meets a damaged or cut file, which it maps into memory.
func (l *Local) guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return f()
}

func openError(path string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("metadata file %s is in use by another process; stop that one, or use another data directory", path)
	case errors.As(err, &errno):
		return fmt.Errorf("open metadata file %s: %w", path, err)
	case !errors.Is(err, ErrDamaged):
		err = fmt.Errorf("%w: %w", ErrDamaged, err) // all else that bbolt says is about the content
	}
	return fmt.Errorf("metadata file %s: %w; put a good copy in its place, or move it away to have the topics found again by their directories, without their configurations", path, err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
